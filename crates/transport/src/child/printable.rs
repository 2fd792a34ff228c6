//! Makes text from a child safe for a log, a terminal and an error message.

use signalbox_wire::printable::is_harmful;
use std::fmt::Write as _;

/// Returns the text as one line of at most `max` bytes. Characters that could forge a log line, move the cursor or
/// change the reading direction are escaped.
pub(super) fn printable(bytes: &[u8], max: usize) -> String {
    let mut out = String::with_capacity(bytes.len().min(max));
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            if out.len() >= max {
                return clip(out);
            }
            push(&mut out, char);
        }
        for byte in chunk.invalid() {
            if out.len() >= max {
                return clip(out);
            }
            // Writing to a string cannot fail.
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

fn clip(mut out: String) -> String {
    out.push('…');
    out
}

fn push(out: &mut String, char: char) {
    match char {
        '\t' => out.push(' '),
        _ if is_harmful(char) => out.extend(char.escape_default()),
        _ => out.push(char),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_escaped() {
        assert_eq!(printable("plain ü 漢".as_bytes(), 100), "plain ü 漢");
        assert_eq!(printable(b"\x1b[31mred\x07", 100), "\\u{1b}[31mred\\u{7}");
        assert_eq!(printable(b"a\nINFO forged\r", 100), "a\\nINFO forged\\r");
        assert_eq!(printable("\u{9b}1m\u{2028}\u{202e}".as_bytes(), 100), "\\u{9b}1m\\u{2028}\\u{202e}");
        assert_eq!(printable(b"a\xff\tb", 100), "a\\xff b");
    }

    #[test]
    fn long_text_is_clipped() {
        assert_eq!(printable(b"12345", 5), "12345");
        assert_eq!(printable(b"123456", 5), "12345…");
        assert!(printable(&[0xff; 1000], 20).len() < 30);
    }
}
