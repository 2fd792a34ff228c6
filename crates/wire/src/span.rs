//! Byte ranges within a message.

use std::ops::Range;

/// Half-open range of byte positions. Positions have 32 bits, because no message is larger than 4 GiB.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Span {
    /// Position of the first byte.
    pub start: u32,
    /// Position after the last byte.
    pub end: u32,
}

impl Span {
    /// Creates a span from `usize` positions. Clamps positions beyond 32 bits.
    #[inline]
    #[must_use]
    pub fn new(start: usize, end: usize) -> Self {
        Self { start: narrow(start), end: narrow(end) }
    }

    /// Returns the bytes of `base` in this span. Empty if the span lies outside.
    #[inline]
    #[must_use]
    pub fn of<'a>(&self, base: &'a [u8]) -> &'a [u8] {
        base.get(self.range()).unwrap_or(&[])
    }

    /// Returns the span as a range of `usize` positions.
    #[inline]
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    /// Returns the span relative to a base that starts `by` bytes earlier.
    #[inline]
    #[must_use]
    pub fn shift(&self, by: u32) -> Self {
        Self { start: self.start.saturating_add(by), end: self.end.saturating_add(by) }
    }

    /// Returns the number of bytes covered.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Returns `true` if no byte is covered.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.end <= self.start
    }
}

#[inline]
fn narrow(position: usize) -> u32 {
    u32::try_from(position).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covers_shifts_and_never_panics() {
        let span = Span::new(1, 3);
        assert_eq!(span.of(b"abcd"), b"bc");
        assert_eq!(span.shift(1).of(b"abcd"), b"cd");
        assert_eq!(span.len(), 2);
        assert_eq!(Span::new(3, 9).of(b"abcd"), b"");
        assert_eq!(Span { start: 3, end: 1 }.of(b"abcd"), b"");
        assert!(Span { start: 3, end: 1 }.is_empty());
        assert_eq!(span.shift(u32::MAX).of(b"abcd"), b"");
    }
}
