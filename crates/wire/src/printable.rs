//! Makes untrusted text safe for logs, terminals and error messages.

use std::fmt::{self, Write};

/// Returns `true` for a character that could forge a line, move a cursor or change the reading direction: control
/// characters, line and paragraph separators, zero-width characters and direction marks.
#[must_use]
pub fn is_harmful(char: char) -> bool {
    char.is_control()
        || matches!(
            char,
            '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
                // Tag characters, which can hide text within text.
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// Returns the text on one line. Line breaks and tabs become spaces, other harmful characters become escapes.
#[must_use]
pub fn one_line(text: &str) -> String {
    clean(text, |char| matches!(char, '\n' | '\r' | '\t').then_some(' '))
}

/// Returns the first `most` characters of a text, cleaned up as by [`one_line`]. Marks a truncated text with `…`.
#[must_use]
pub fn beginning(text: &str, most: usize) -> String {
    let mut rest = text.chars();
    let mut shown: String = rest.by_ref().take(most).collect();
    if rest.next().is_some() {
        shown.push('…');
    }
    one_line(&shown)
}

/// Returns the text with harmful characters escaped, but keeps line breaks and tabs.
#[must_use]
pub fn lines(text: &str) -> String {
    clean(text, |char| matches!(char, '\n' | '\t').then_some(char))
}

/// Escapes harmful characters in a JSON document without changing its value. Line breaks and tabs between tokens stay.
#[must_use]
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if is_harmful(char) && !matches!(char, '\n' | '\r' | '\t') {
            for unit in char.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(char);
        }
    }
    out
}

/// Writer that applies [`one_line`] to everything written, without buffering.
#[derive(Debug)]
pub struct OneLine<W>(pub W);

impl<W: Write> Write for OneLine<W> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Most text is harmless and passes unchanged.
        if text.chars().any(is_harmful) { self.0.write_str(&one_line(text)) } else { self.0.write_str(text) }
    }
}

fn clean(text: &str, space: impl Fn(char) -> Option<char>) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match space(char) {
            Some(space) => out.push(space),
            None if is_harmful(char) => out.extend(char.escape_default()),
            None => out.push(char),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tag characters are invisible and hold ASCII.
    #[test]
    fn tag_characters_are_escaped() {
        let hidden = "a\u{e0041}\u{e007f}b";
        assert_eq!((one_line(hidden), lines(hidden)), ("a\\u{e0041}\\u{e007f}b".to_owned(), one_line(hidden)));
        assert_eq!(json(&format!("\"{hidden}\"")), r#""a\udb40\udc41\udb40\udc7fb""#);
    }

    #[test]
    fn a_beginning_is_marked_as_one() {
        assert_eq!((beginning("abc", 3), beginning("äbcd", 3)), ("abc".to_owned(), "äbc…".to_owned()));
        assert_eq!(beginning("a\nb\u{1b}", 10), "a b\\u{1b}");
    }

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(one_line("plain ü 漢\n\tx"), "plain ü 漢  x");
        assert_eq!(lines("a\n\tb\r\u{1b}[31m"), "a\n\tb\\r\\u{1b}[31m");
        for char in ['\u{1b}', '\u{9b}', '\u{202e}', '\u{2066}', '\u{200f}', '\u{feff}', '\u{61c}'] {
            let text = format!("a{char}b");
            assert!(!one_line(&text).contains(char) && !lines(&text).contains(char), "{char:?}");
            assert_eq!(json(&format!("{{\"a\":\n\t\"{char}\"}}")), format!("{{\"a\":\n\t\"\\u{:04x}\"}}", char as u32));
            let mut written = String::new();
            write!(OneLine(&mut written), "{text}").unwrap();
            assert_eq!(written, one_line(&text));
        }
    }
}
