//! Replacement of one part of a text.

use super::RemovalClass;

/// Replacement of the bytes `start..end` of a text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) struct Edit {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) class: RemovalClass,
    /// Text that takes the place of the removed part; empty for what is invisible anyway.
    pub(crate) replacement: &'static str,
}

/// Adds an edit, and joins it with the last one if that ends here and both delete the same class.
pub(super) fn push(edits: &mut Vec<Edit>, edit: Edit) {
    if let Some(last) = edits.last_mut()
        && last.end == edit.start
        && last.class == edit.class
        && last.replacement.is_empty()
        && edit.replacement.is_empty()
    {
        last.end = edit.end;
        return;
    }
    edits.push(edit);
}

/// Sorts edits and drops those that begin within an earlier one.
pub(super) fn settle(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| (edit.start, std::cmp::Reverse(edit.end)));
    let mut end = 0;
    edits.retain(|edit| {
        let fits = edit.start >= end;
        end = if fits { edit.end } else { end };
        fits
    });
    edits
}

/// Returns the text after edits that are in order and do not overlap.
///
/// A space follows a placeholder where its bracket would otherwise open a Markdown link with the text behind it.
pub(super) fn apply(text: &str, edits: &[Edit]) -> String {
    let mut result = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        result.push_str(text.get(at..edit.start).unwrap_or_default());
        result.push_str(edit.replacement);
        at = edit.end;
        let rest = text.get(at..).unwrap_or_default();
        if edit.replacement.ends_with(']') && rest.starts_with(['(', '[', ':']) {
            result.push(' ');
        }
    }
    result.push_str(text.get(at..).unwrap_or_default());
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(start: usize, end: usize, replacement: &'static str) -> Edit {
        Edit { start, end, class: RemovalClass::Comment, replacement }
    }

    #[test]
    fn an_edit_within_another_is_dropped() {
        let settled = settle(vec![edit(4, 6, ""), edit(2, 8, "x"), edit(8, 9, "y")]);
        assert_eq!(settled, [edit(2, 8, "x"), edit(8, 9, "y")]);
        assert_eq!(apply("0123456789", &settled), "01xy9");
    }

    #[test]
    fn a_placeholder_never_becomes_the_text_of_a_link() {
        assert_eq!(apply("<>(a)", &[edit(0, 2, "[removed]")]), "[removed] (a)");
    }

    #[test]
    fn deletions_side_by_side_are_one() {
        let mut edits = vec![edit(0, 1, "")];
        push(&mut edits, edit(1, 3, ""));
        push(&mut edits, edit(3, 4, "x"));
        assert_eq!(edits, [edit(0, 3, ""), edit(3, 4, "x")]);
    }
}
