//! Newline-delimited messages, as stdio carries them.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// Why a line was not delivered.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LineError {
    /// The line is longer than allowed; it was skipped.
    #[error("a line longer than {max} bytes was skipped")]
    TooLong {
        /// The bound.
        max: usize,
    },
}

/// Cuts a stream of bytes into lines. Empty lines are skipped, a trailing CR is dropped, and a line that grows too
/// long is reported once and skipped without being kept.
#[derive(Debug)]
pub struct LineDecoder {
    max: usize,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
    /// The rest of a line that was too long is still to come.
    skipping: bool,
}

impl LineDecoder {
    /// A decoder for lines of at most `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, buffer: BytesMut::new(), searched: 0, skipping: false }
    }

    /// Takes in what was read.
    pub fn push(&mut self, chunk: &[u8]) {
        if !self.skipping {
            self.buffer.extend_from_slice(chunk);
        } else if let Some(newline) = memchr(b'\n', chunk) {
            self.skipping = false;
            self.buffer.extend_from_slice(&chunk[newline + 1..]);
        }
    }

    /// The next complete line, without its end. To be called until there is none.
    pub fn next_line(&mut self) -> Option<Result<Bytes, LineError>> {
        loop {
            let Some(found) = memchr(b'\n', self.buffer.get(self.searched..).unwrap_or(&[])) else {
                self.searched = self.buffer.len();
                return self.give_up_on_long();
            };
            let mut line = self.buffer.split_to(self.searched + found + 1);
            self.searched = 0;
            line.truncate(line.len() - 1);
            if let Some(outcome) = self.accept(line) {
                return Some(outcome);
            }
        }
    }

    /// The last line, if the stream ended without a newline.
    pub fn finish(&mut self) -> Option<Result<Bytes, LineError>> {
        if let Some(outcome) = self.next_line() {
            return Some(outcome);
        }
        self.skipping = false;
        self.searched = 0;
        let line = std::mem::take(&mut self.buffer);
        self.accept(line)
    }

    /// How many bytes are held for a line that is not complete.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Gives up what is buffered, and the rest of the line that was begun.
    pub fn skip_line(&mut self) {
        self.skipping = true;
        self.searched = 0;
        self.buffer = BytesMut::new();
    }

    fn accept(&self, mut line: BytesMut) -> Option<Result<Bytes, LineError>> {
        if line.last() == Some(&b'\r') {
            line.truncate(line.len() - 1);
        }
        if line.len() > self.max {
            return Some(Err(LineError::TooLong { max: self.max }));
        }
        let blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        (!blank).then(|| Ok(line.freeze()))
    }

    /// One byte more than the bound may still turn out to be the CR of the line's end.
    fn give_up_on_long(&mut self) -> Option<Result<Bytes, LineError>> {
        if self.buffer.len() <= self.max.saturating_add(1) {
            return None;
        }
        self.skip_line();
        Some(Err(LineError::TooLong { max: self.max }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Result<&str, LineError> = Err(LineError::TooLong { max: 8 });

    /// Feeds `text` whole and byte by byte; both must give the same lines.
    fn check(text: &str, expected: &[Result<&str, LineError>]) {
        for size in [text.len().max(1), 1, 3] {
            let mut decoder = LineDecoder::new(8);
            let mut lines = Vec::new();
            for chunk in text.as_bytes().chunks(size) {
                decoder.push(chunk);
                lines.extend(std::iter::from_fn(|| decoder.next_line()));
                assert!(decoder.buffered() <= 9 + size);
            }
            lines.extend(std::iter::from_fn(|| decoder.finish()));
            let lines: Vec<_> = lines
                .iter()
                .map(|line| line.as_ref().map(|line| std::str::from_utf8(line).unwrap()).map_err(|e| *e))
                .collect();
            assert_eq!(lines, expected, "{text:?} in pieces of {size}");
        }
    }

    #[test]
    fn n_15_one_message_per_line() {
        check("", &[]);
        check("a\nb\n", &[Ok("a"), Ok("b")]);
        check("a\r\nb", &[Ok("a"), Ok("b")]);
        check("\n \t\r\n\na\n\r\n", &[Ok("a")]);
        check(" a \n", &[Ok(" a ")]);
        check("a\rb\n", &[Ok("a\rb")]);
    }

    #[test]
    fn s_66_a_long_line_is_reported_once_and_skipped() {
        check("12345678\r\n", &[Ok("12345678")]);
        check("123456789\nx\n", &[LONG, Ok("x")]);
        check("123456789012345678901234567890\nx\ny", &[LONG, Ok("x"), Ok("y")]);
        check("x\n1234567890123456", &[Ok("x"), LONG]);
        check("123456789", &[LONG]);
        check("             \nx\n", &[LONG, Ok("x")]);
    }

    #[test]
    fn lines_are_slices_of_one_buffer() {
        let mut decoder = LineDecoder::new(100);
        decoder.push(b"first\nsecond\n");
        let first = decoder.next_line().unwrap().unwrap();
        let second = decoder.next_line().unwrap().unwrap();
        assert_eq!(second.as_ptr() as usize - first.as_ptr() as usize, 6);
    }
}
