//! Which tools of a backend are offered.

/// Include and exclude lists of patterns, in which `*` stands for any text and `?` for any one character.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolFilter {
    /// Only what matches one of these; everything, if there are none.
    pub include: Vec<String>,
    /// Nothing that matches one of these.
    pub exclude: Vec<String>,
}

impl ToolFilter {
    /// Whether the tool is offered.
    pub fn allows(&self, tool: &str) -> bool {
        let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, tool));
        (self.include.is_empty() || any(&self.include)) && !any(&self.exclude)
    }
}

/// Whether all of `text` matches the pattern. Takes at most the product of both lengths.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let (mut p, mut t) = (0, 0);
    // After a mismatch the last star takes one character more. Earlier stars never need to be tried again.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(wanted) if *wanted == '?' || *wanted == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some((star_p, star_t)) => {
                    star = Some((star_p, star_t + 1));
                    (p, t) = (star_p + 1, star_t + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        for (pattern, text, expected) in [
            ("read_file", "read_file", true),
            ("read_file", "read_files", false),
            ("read_*", "read_", true),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("?", "é", true),
            ("?", "", false),
            ("*_file", "a_file_file", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b-d", false),
            ("*a*a*a*b", &"a".repeat(2000), false),
            ("[a]", "a", false),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn exclude_wins() {
        let filter =
            ToolFilter { include: vec!["read_*".to_owned(), "list".to_owned()], exclude: vec!["*_secret".to_owned()] };
        assert!(filter.allows("read_file"));
        assert!(filter.allows("list"));
        assert!(!filter.allows("read_secret"));
        assert!(!filter.allows("write"));
        assert!(ToolFilter::default().allows("anything"));
    }
}
