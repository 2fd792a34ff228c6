//! Part of a text between two placeholders.

use std::ops::Range;

/// Part of a text that is searched on its own.
#[derive(Copy, Clone, Debug)]
pub(super) struct Segment<'a> {
    text: &'a str,
    /// Offset in the whole text.
    start: usize,
    /// True if a placeholder ends where the segment starts.
    has_placeholder_before: bool,
    /// True if a placeholder starts where the segment ends.
    has_placeholder_after: bool,
}

impl<'a> Segment<'a> {
    /// Creates the segment at a range of the whole text, which both ends of the text and placeholders bound.
    pub(super) fn new(whole: &'a str, range: Range<usize>) -> Self {
        Self {
            start: range.start,
            has_placeholder_before: range.start > 0,
            has_placeholder_after: range.end < whole.len(),
            text: whole.get(range).unwrap_or_default(),
        }
    }

    pub(super) fn text(&self) -> &'a str {
        self.text
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Returns the range in the whole text.
    pub(super) fn place(&self, range: Range<usize>) -> Range<usize> {
        self.start + range.start..self.start + range.end
    }

    /// Returns the byte at an offset. Beyond the segment, a placeholder reads as a letter and the end as a space.
    pub(super) fn byte(&self, at: usize) -> u8 {
        let beyond = if self.has_placeholder_after { b'x' } else { b' ' };
        self.bytes().get(at).copied().unwrap_or(beyond)
    }

    /// Returns the byte `distance` bytes before an offset, under the same rule.
    pub(super) fn byte_before(&self, at: usize, distance: usize) -> u8 {
        let beyond = if self.has_placeholder_before { b'x' } else { b' ' };
        at.checked_sub(distance).and_then(|at| self.bytes().get(at)).copied().unwrap_or(beyond)
    }

    /// Returns true if a letter, digit or underscore is directly before an offset, unless it ends an escape like `\n`,
    /// `\u003c` or `%3C`.
    pub(super) fn is_word_before(&self, at: usize) -> bool {
        let last = self.byte_before(at, 1);
        is_word(last) && !self.is_escape_before(at)
    }

    /// Returns true if a letter, digit or underscore is at an offset.
    pub(super) fn is_word_at(&self, at: usize) -> bool {
        is_word(self.byte(at))
    }

    fn is_escape_before(&self, at: usize) -> bool {
        let before = |distance| self.byte_before(at, distance);
        let is_hex = |mut distances: Range<usize>| distances.all(|distance| before(distance).is_ascii_hexdigit());
        before(2) == b'\\' && b"nrtbf".contains(&before(1))
            || before(3) == b'%' && is_hex(1..3)
            || before(6) == b'\\' && before(5) == b'u' && is_hex(1..5)
    }

    /// Returns the last offset of a character that is not after `at`.
    pub(super) fn boundary(&self, mut at: usize) -> usize {
        while !self.text.is_char_boundary(at) {
            at = at.saturating_sub(1);
        }
        at
    }
}

const fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
