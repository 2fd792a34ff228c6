//! Control characters and invisible characters in values that name something.

use super::finding::{FilterKind, FindingRisk, Violation};
use crate::invisible::is_invisible;
use std::iter::once;

/// Checks a value that is written on one line. In `with_lines`, line breaks and tabs are allowed.
pub(super) fn check_control(value: &str, with_lines: bool) -> Option<Violation> {
    let mut before = None;
    let mut odd = false;
    let next = value.chars().skip(1).map(Some).chain(once(None));
    for (char, next) in value.chars().zip(next) {
        match char {
            '\n' | '\t' | '\r' if with_lines => {}
            // Commands that print in colour.
            '\u{1b}' if with_lines => odd = true,
            _ if char.is_control() => {
                return Some(Violation::new(FilterKind::Control, FindingRisk::High, "value with a control character"));
            }
            _ if is_invisible(char) && !is_joiner(before, char, next) => odd = true,
            _ => {}
        }
        before = Some(char);
    }
    odd.then(|| Violation::new(FilterKind::Control, FindingRisk::Medium, "value with an invisible character"))
}

/// Returns `true` for joiners and variation selectors that belong to the letters or the emoji around them.
fn is_joiner(before: Option<char>, char: char, next: Option<char>) -> bool {
    let joins = |neighbour: Option<char>| neighbour.is_some_and(|one| !one.is_ascii() && !is_invisible(one));
    let selects = |neighbour: Option<char>| neighbour.is_some_and(|one| one == '\u{fe0f}');
    match char {
        '\u{200c}' | '\u{200d}' => (joins(before) || selects(before)) && joins(next),
        '\u{fe0e}' | '\u{fe0f}' => before.is_some_and(|one| !is_invisible(one) && !one.is_ascii_alphabetic()),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn joiners_of_scripts_and_emoji_pass() {
        for value in ["", "a b", "é", "👩\u{200d}💻", "❤\u{fe0f}\u{200d}🔥", "1\u{fe0f}\u{20e3}", "می\u{200c}خواهم"]
        {
            assert_eq!(check_control(value, false), None, "{value:?}");
        }
        assert_eq!(check_control("ls\n\tx", true), None);
    }

    #[test]
    fn hidden_characters_are_found() {
        for (value, risk) in [
            ("a\0", FindingRisk::High),
            ("a\nb", FindingRisk::High),
            ("a\u{1b}[31m", FindingRisk::High),
            ("a\u{200b}b", FindingRisk::Medium),
            ("a\u{200d}b", FindingRisk::Medium),
            ("a\u{202e}b", FindingRisk::Medium),
            ("a\u{fe0f}", FindingRisk::Medium),
            ("\u{e0041}", FindingRisk::Medium),
        ] {
            assert_eq!(check_control(value, false).map(|found| found.risk), Some(risk), "{value:?}");
        }
    }
}
