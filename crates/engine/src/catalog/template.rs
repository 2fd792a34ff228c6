//! Matching of URIs against URI templates.

/// Returns true if the literal parts of the template occur in the URI in order, with at least one character for each
/// expression. Templates come from backends, so this is linear in the URI for every literal and never backtracks.
pub fn matches(template: &str, uri: &str) -> bool {
    let mut rest = uri;
    let mut parts = Parts(template);
    let mut after_hole = false;
    while let Some((literal, hole)) = parts.next_part() {
        if after_hole {
            let found = if hole { find_after_first(rest, literal) } else { tail_after_first(rest, literal) };
            match found {
                Some(end) => rest = &rest[end..],
                None => return false,
            }
        } else {
            match rest.strip_prefix(literal) {
                Some(left) => rest = left,
                None => return false,
            }
        }
        if !hole {
            return rest.is_empty();
        }
        after_hole = true;
    }
    false
}

/// Returns the end of the first `literal` that leaves at least one character for the expression before it.
fn find_after_first(rest: &str, literal: &str) -> Option<usize> {
    let skip = rest.chars().next()?.len_utf8();
    rest[skip..].find(literal).map(|at| skip + at + literal.len())
}

/// Returns the end of `rest`, if it ends with `literal` and leaves at least one character for the expression before it.
fn tail_after_first(rest: &str, literal: &str) -> Option<usize> {
    (rest.len() > literal.len() && rest.ends_with(literal)).then_some(rest.len())
}

struct Parts<'a>(&'a str);

impl<'a> Parts<'a> {
    /// Returns the next literal, and true if an expression follows it. A brace that never closes is part of the
    /// literal.
    fn next_part(&mut self) -> Option<(&'a str, bool)> {
        let text = self.0;
        let hole = text.find('{').and_then(|open| Some((open, open + text[open..].find('}')?)));
        Some(match hole {
            Some((open, close)) => {
                self.0 = &text[close + 1..];
                (&text[..open], true)
            }
            None => {
                self.0 = "";
                (text, false)
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_in_order_with_something_in_each_hole() {
        for (template, uri, fits) in [
            ("test://t/{id}/data", "test://t/12/data", true),
            ("test://t/{id}/data", "test://t//data", false),
            ("test://t/{id}/data", "test://t/1/dat", false),
            ("file:///{path}", "file:///a/b", true),
            ("file:///{path}", "file:///", false),
            ("a{x}b{y}", "a1b2", true),
            ("a{x}b{y}", "a1b", false),
            ("plain", "plain", true),
            ("plain", "plain2", false),
            ("odd{brace", "odd{brace", true),
            ("{x}", "ü", true),
        ] {
            assert_eq!(matches(template, uri), fits, "{template} {uri}");
        }
    }
}
