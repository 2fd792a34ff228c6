//! Groups the lines of a text that describe the same object.
//!
//! Servers write lists as lines below a head, and objects as lines of properties, separated by blank lines or headings.
//! A group is one item of such a list, and all of its lines describe the same object:
//!
//! ```text
//! Orders of ann:                ## Order 17              1. book
//! - 17 book      one item       Title: book  one item       ID: 17     one item
//! - 18 pen       another        State: open              2. pen
//!                               ## Order 18                 ID: 18     another
//! ```

/// Line with the group it belongs to.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct TextLine<'a> {
    pub text: &'a str,
    pub group: usize,
    pub role: Role<'a>,
}

/// Role of a line in its text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Role<'a> {
    /// Describes all lines below it.
    Head,
    /// Item, or the first line of one.
    Item,
    /// Property of this name.
    Property(&'a str),
}

/// Lines of a text with their groups.
#[derive(Clone, PartialEq, Default, Debug)]
pub(super) struct TextLines<'a> {
    pub lines: Vec<TextLine<'a>>,
    /// Enclosing group of each group.
    pub parents: Vec<Option<usize>>,
}

/// Maximum length of a property's name.
const MAX_NAME: usize = 32;
const MARKS: [char; 6] = ['-', '*', '•', '+', '>', '|'];

impl<'a> TextLines<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        let mut found = Self::default();
        let (mut section, mut block) = (None, Vec::new());
        for line in text.lines() {
            if line.starts_with('#') {
                found.block(&std::mem::take(&mut block), section);
                let group = found.group(None);
                found.lines.push(TextLine { text: line, group, role: Role::Head });
                section = Some(group);
            } else if line.trim().is_empty() {
                found.block(&std::mem::take(&mut block), section);
            } else {
                block.push(line);
            }
        }
        found.block(&block, section);
        found
    }

    /// Returns `true` if the text has several items, rather than one object with properties.
    pub(super) fn is_list(&self) -> bool {
        self.parents.len() > 1
    }

    fn group(&mut self, parent: Option<usize>) -> usize {
        self.parents.push(parent);
        self.parents.len() - 1
    }

    fn push(&mut self, text: &'a str, group: usize) {
        let role = property(text).map_or(Role::Item, Role::Property);
        self.lines.push(TextLine { text, group, role });
    }

    /// Groups a block of lines without blank ones.
    fn block(&mut self, lines: &[&'a str], section: Option<usize>) {
        let Some((first, others)) = lines.split_first() else { return };
        let are_properties = !others.is_empty() && are_properties(others);
        if are_properties && (property(first).is_none() || are_properties_of_one(lines))
            || is_only_property(lines, section)
        {
            // Properties below a heading belong to the object that it names.
            let group = section.unwrap_or_else(|| self.group(None));
            return lines.iter().for_each(|line| self.push(line, group));
        }
        let is_head = !others.is_empty()
            && (first.trim_end().ends_with(':')
                || !is_marked(first) && others.iter().all(|line| is_below(first, line)));
        let (items, parent) = match is_head {
            true => {
                let group = self.group(section);
                self.lines.push(TextLine { text: first, group, role: Role::Head });
                (others, Some(group))
            }
            false => (lines, section),
        };
        self.items(items, parent);
    }

    /// Groups the lines of a list. An indented line belongs to the one above: a property joins its group, another line
    /// starts a nested item.
    fn items(&mut self, lines: &[&'a str], parent: Option<usize>) {
        let mut above: Vec<(usize, usize)> = Vec::new();
        for line in lines {
            let indent = indent(line);
            while above.last().is_some_and(|(other, _)| *other >= indent) {
                above.pop();
            }
            match above.last() {
                Some((_, group)) if property(line).is_some() => {
                    let group = *group;
                    self.push(line, group);
                }
                other => {
                    let parent = other.map(|(_, group)| *group).or(parent);
                    let group = self.group(parent);
                    self.lines.push(TextLine { text: line, group, role: Role::Item });
                    above.push((indent, group));
                }
            }
        }
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns `true` for a line that starts with a bullet or an item number.
fn is_marked(line: &str) -> bool {
    let line = line.trim_start();
    let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
    line.starts_with(MARKS) || after.len() < line.len() && after.starts_with(['.', ')'])
}

/// Returns `true` for an item below an unmarked first line.
fn is_below(first: &str, line: &str) -> bool {
    is_marked(line) || indent(line) > indent(first)
}

/// Returns the property name in a line such as `State: open` or `- **State**: open`.
fn property(line: &str) -> Option<&str> {
    let line = line.trim_start().trim_start_matches(MARKS).trim_start();
    let (name, value) = line.split_once(':')?;
    let name = name.trim_matches(|c: char| c.is_whitespace() || matches!(c, '*' | '`' | '_'));
    let is_name = name.len() <= MAX_NAME
        && name.starts_with(|c: char| c.is_alphabetic())
        && name.chars().all(|c| c.is_alphabetic() || matches!(c, ' ' | '_'));
    let value = value.trim_start_matches(['*', '`']);
    (is_name && value.starts_with(char::is_whitespace) && !value.trim().is_empty()).then_some(name)
}

fn are_properties(lines: &[&str]) -> bool {
    lines.iter().all(|line| property(line).is_some()) && are_properties_of_one(lines)
}

/// Returns `true` if no property occurs twice.
fn are_properties_of_one(lines: &[&str]) -> bool {
    let mut names: Vec<&str> = lines.iter().filter_map(|line| property(line)).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    names.len() == count
}

/// Returns `true` for a single property below a heading.
fn is_only_property(lines: &[&str], section: Option<usize>) -> bool {
    section.is_some() && matches!(lines, [line] if property(line).is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The group of each line, with the group around it.
    fn groups(text: &str) -> Vec<(usize, Option<usize>)> {
        let found = TextLines::of(text);
        found.lines.iter().map(|line| (line.group, found.parents[line.group])).collect()
    }

    #[test]
    fn lines_of_a_list_are_items_below_their_head() {
        assert_eq!(groups("- 1 book\n- 2 pen"), [(0, None), (1, None)]);
        let below = [(0, None), (1, Some(0)), (2, Some(0))];
        assert_eq!(groups("Orders of ann:\n- 1 book\n- 2 pen"), below);
        assert_eq!(groups("Orders of ann\n1. book\n2. pen"), below);
        assert_eq!(groups("# Orders\n\n- 1 book\n- 2 pen"), below);
        assert_eq!(groups("ord-1: book\nord-2: pen"), [(0, None), (1, None)], "a name with a digit is no property");
        assert_eq!(groups("State: open\nState: shipped"), [(0, None), (1, None)], "a property comes once");
    }

    #[test]
    fn lines_of_an_object_are_one_item() {
        let two = [(0, None), (0, None), (1, None), (1, None)];
        assert_eq!(groups("ID: 1\nTitle: book\n\nID: 2\nTitle: pen"), two);
        assert_eq!(groups("Order 1\nTitle: book\n\nOrder 2\nTitle: pen"), two);
        assert_eq!(groups("## Order 1\n- **Title**: book\n## Order 2\n\n- **Title**: pen"), two);
        assert_eq!(groups("1. book\n   ID: 1\n2. pen\n   ID: 2"), two);
        let nested = [(0, None), (1, Some(0)), (2, Some(0)), (3, None)];
        assert_eq!(groups("- order 1\n  - line 5\n  - line 6\n- order 2"), nested);
        assert!(!TextLines::of("ID: 1\nTitle: book").is_list());
        assert!(TextLines::of("ID: 1\nTitle: book\n\nID: 2\nTitle: pen").is_list());
    }
}
