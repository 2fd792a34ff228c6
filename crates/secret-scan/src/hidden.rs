//! Removes what splits a value without being seen: terminal sequences, zero-width characters, soft line breaks of mail
//! and joints of literals. Decodes `\u0061`, where a letter or digit is written that way.

use memchr::memchr3_iter;
use memchr::memmem::Finder;
use std::sync::LazyLock;

/// Maximum length of a terminal sequence that is removed, in bytes.
const LONGEST_SEQUENCE: usize = 64;
/// Beginning of an escape. Most texts in JSON have many backslashes and few of these.
static ESCAPE: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));
/// Maximum length of the blanks in a joint, in bytes.
const LONGEST_JOINT: usize = 32;

/// A text without what splits its values.
pub(crate) struct RevealedText {
    pub(crate) bytes: Vec<u8>,
    /// Offsets from which on the text is further behind, with the sum of the bytes left out by then.
    shifts: Vec<(usize, usize)>,
}

/// Part of a text that is left out, or replaced by one byte.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
struct Piece {
    start: usize,
    end: usize,
    byte: Option<u8>,
}

/// Returns the text without what splits its values, or `None` if nothing does.
pub(crate) fn reveal(text: &[u8]) -> Option<RevealedText> {
    let mut pieces = Vec::new();
    pieces.extend(memchr3_iter(0x1b, 0xc2, 0xe2, text).filter_map(|at| unseen(text, at)));
    pieces.extend(ESCAPE.find_iter(text).filter_map(|at| escape(text, at)));
    pieces.extend(memchr3_iter(b'\n', b'+', 0xef, text).filter_map(|at| match text.get(at) {
        Some(b'\n') => soft_break(text, at),
        Some(b'+') => joint(text, at),
        _ => unseen(text, at),
    }));
    if pieces.is_empty() {
        return None;
    }
    pieces.sort_unstable_by_key(|piece| piece.start);
    Some(RevealedText::new(text, &pieces))
}

impl RevealedText {
    fn new(text: &[u8], pieces: &[Piece]) -> Self {
        let (mut bytes, mut shifts) = (Vec::with_capacity(text.len()), Vec::with_capacity(pieces.len()));
        let (mut at, mut left_out) = (0, 0);
        for piece in pieces.iter().copied() {
            let Some(between) = text.get(at..piece.start) else { continue };
            bytes.extend_from_slice(between);
            bytes.extend(piece.byte);
            left_out += piece.end - piece.start - usize::from(piece.byte.is_some());
            shifts.push((bytes.len(), left_out));
            at = piece.end;
        }
        bytes.extend_from_slice(text.get(at..).unwrap_or_default());
        Self { bytes, shifts }
    }

    /// Returns the offset in the original text of an offset in these bytes.
    pub(crate) fn place(&self, at: usize) -> usize {
        let before = self.shifts.get(..self.shifts_until(at)).and_then(<[_]>::last);
        at + before.map_or(0, |(_, left_out)| *left_out)
    }

    /// Returns true if a part of this range was left out or replaced. Any other range is unchanged from the text.
    pub(crate) fn differs(&self, from: usize, to: usize) -> bool {
        self.shifts.get(self.shifts_until(from)).is_some_and(|(at, _)| *at <= to)
    }

    fn shifts_until(&self, at: usize) -> usize {
        self.shifts.partition_point(|(from, _)| *from <= at)
    }
}

/// Returns the piece if it stands within a word.
fn splitting(text: &[u8], start: usize, end: usize) -> Option<Piece> {
    let is_word = |at: usize| text.get(at).is_some_and(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte));
    (is_word(start.checked_sub(1)?) && is_word(end)).then_some(Piece { start, end, byte: None })
}

/// Returns the soft line break of mail whose last character is at this offset.
fn soft_break(text: &[u8], at: usize) -> Option<Piece> {
    let line = text.get(..at)?;
    let line = line.strip_suffix(b"\r").unwrap_or(line).strip_suffix(b"=")?;
    splitting(text, line.len(), at + 1)
}

/// Returns the joint of two literals whose operator is at this offset.
fn joint(text: &[u8], at: usize) -> Option<Piece> {
    let [b'+', b' ', quote @ (b'\'' | b'"'), ..] = text.get(at..)? else { return None };
    let before = text.get(..at)?;
    let blanks = before.iter().rev().take(LONGEST_JOINT).take_while(|byte| byte.is_ascii_whitespace()).count();
    let start = at.checked_sub(blanks + 1)?;
    splitting(text, start, at + 3).filter(|_| before.get(start) == Some(quote))
}

/// Returns the terminal sequence or zero-width character at this offset.
fn unseen(text: &[u8], at: usize) -> Option<Piece> {
    let length = match text.get(at..)? {
        [0x1b, rest @ ..] => 1 + sequence(rest)?,
        [0xc2, 0xad, ..] => 2,
        [0xe2, 0x80, 0x8b..=0x8f | 0xaa..=0xae, ..] | [0xe2, 0x81, 0xa0..=0xaf, ..] | [0xef, 0xbb, 0xbf, ..] => 3,
        _ => return None,
    };
    Some(Piece { start: at, end: at + length, byte: None })
}

/// Returns the length of a terminal sequence behind its first character.
fn sequence(rest: &[u8]) -> Option<usize> {
    let rest = rest.get(..rest.len().min(LONGEST_SEQUENCE))?;
    match rest.first()? {
        b'[' => rest.iter().skip(1).position(|byte| (b'@'..=b'~').contains(byte)).map(|at| at + 2),
        b']' => rest.iter().position(|byte| *byte == 0x07).map(|at| at + 1),
        _ => None,
    }
}

/// Returns the escape `\uXXXX` at this offset if it stands for a letter, a digit or nothing that can be seen.
fn escape(text: &[u8], at: usize) -> Option<Piece> {
    let digits = std::str::from_utf8(text.get(at + 2..at + 6)?).ok()?;
    let unit = u32::from_str_radix(digits, 16).ok()?;
    let before = text.get(..at)?.iter().rev().take_while(|byte| **byte == b'\\').count();
    let piece = |length, byte| Some(Piece { start: at - before, end: at + 6 + length, byte });
    match (unit, u8::try_from(unit)) {
        (0x1b, _) => piece(sequence(text.get(at + 6..)?)?, None),
        (0xad | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x206f | 0xfeff, _) => piece(0, None),
        (_, Ok(byte)) if byte.is_ascii_alphanumeric() || b"!#$*+-._?@~".contains(&byte) => piece(0, Some(byte)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revealed(text: &str) -> Option<String> {
        reveal(text.as_bytes()).map(|text| String::from_utf8_lossy(&text.bytes).into_owned())
    }

    #[test]
    fn what_splits_a_value_is_left_out() {
        for (text, plain) in [
            ("\u{1b}[1;33mab\u{1b}[0mcd", "abcd"),
            ("ab\u{200b}c\u{2060}d\u{feff}\u{ad}", "abcd"),
            ("p\\u0061ss\\\\u0061", "passa"),
            ("\\u001b[1mab\\u200bcd", "abcd"),
            ("ab=\ncd=\r\nef", "abcdef"),
            ("'ab' + 'cd'\n  + 'ef'", "'abcdef'"),
        ] {
            assert_eq!(revealed(text).as_deref(), Some(plain), "{text:?}");
        }
    }

    #[test]
    fn ordinary_texts_are_left_alone() {
        for text in
            ["", "a = b", "caf\u{e9} \u{2014} 10 \u{20ac}", "{\"a\":\"\\u003cb\\u003e\"}", "C:\\users\\u", "\u{1b}"]
        {
            assert_eq!(revealed(text), None, "{text:?}");
        }
    }

    #[test]
    fn each_byte_has_its_place_in_the_text() {
        let text = reveal(b"a\x1b[0mb\\u0063d").unwrap();
        assert_eq!(text.bytes, b"abcd");
        let places: Vec<usize> = (0..=text.bytes.len()).map(|at| text.place(at)).collect();
        assert_eq!(places, [0, 5, 6, 12, 13]);
        assert!(text.differs(0, 1) && text.differs(1, 3) && !text.differs(3, 4));
    }
}
