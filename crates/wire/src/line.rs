//! Newline-delimited messages, as used on stdio.

use crate::long_line::LongLine;
use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// Reason why a line was not delivered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LineError {
    /// The line exceeds the limit and was skipped.
    #[error("a line longer than {max} bytes was skipped")]
    TooLong {
        /// Maximum length in bytes.
        max: usize,
        /// Both ends of the line.
        line: LongLine,
    },
}

/// Decoder that splits a byte stream into lines. Skips empty lines and drops a trailing CR. Skips an oversized line
/// without buffering it, and reports it at its end.
#[derive(Debug)]
pub struct LineDecoder {
    max: usize,
    buffer: BytesMut,
    /// Length of the buffer prefix without newlines.
    searched: usize,
    /// Oversized line whose rest is still to be skipped.
    skipping: Option<LongLine>,
    /// Oversized line that has ended and is still to be reported.
    skipped: Option<LongLine>,
}

impl LineDecoder {
    /// Creates a decoder for lines of at most `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, buffer: BytesMut::new(), searched: 0, skipping: None, skipped: None }
    }

    /// Appends received bytes to the buffer.
    pub fn push(&mut self, chunk: &[u8]) {
        let Some(line) = &mut self.skipping else { return self.buffer.extend_from_slice(chunk) };
        let Some(newline) = memchr(b'\n', chunk) else { return line.push(chunk) };
        line.push(&chunk[..newline]);
        self.skipped = self.skipping.take();
        self.buffer.extend_from_slice(&chunk[newline + 1..]);
    }

    /// Returns the next complete line, without its end. Call until it returns `None`.
    pub fn next_line(&mut self) -> Option<Result<Bytes, LineError>> {
        if let Some(line) = self.skipped.take() {
            return Some(Err(self.too_long(line)));
        }
        loop {
            let Some(found) = memchr(b'\n', self.buffer.get(self.searched..).unwrap_or(&[])) else {
                self.searched = self.buffer.len();
                // One byte above the limit may still be the CR of the line's end.
                if self.buffer.len() > self.max.saturating_add(1) {
                    self.skip_line();
                }
                return None;
            };
            let mut line = self.buffer.split_to(self.searched + found + 1);
            self.searched = 0;
            line.truncate(line.len() - 1);
            if let Some(outcome) = self.accept(line) {
                return Some(outcome);
            }
        }
    }

    /// Returns the last line if the stream ended without a newline.
    pub fn finish(&mut self) -> Option<Result<Bytes, LineError>> {
        if let Some(outcome) = self.next_line() {
            return Some(outcome);
        }
        if let Some(line) = self.skipping.take() {
            return Some(Err(self.too_long(line)));
        }
        self.searched = 0;
        let line = std::mem::take(&mut self.buffer);
        self.accept(line)
    }

    /// Returns the number of bytes buffered for an incomplete line.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Drops the buffer and skips the rest of the current line.
    pub fn skip_line(&mut self) {
        self.skipping.get_or_insert_default().push(&self.buffer);
        self.searched = 0;
        self.buffer = BytesMut::new();
    }

    fn too_long(&self, line: LongLine) -> LineError {
        LineError::TooLong { max: self.max, line: line.finish() }
    }

    fn accept(&self, mut line: BytesMut) -> Option<Result<Bytes, LineError>> {
        let with_cr = line.last() == Some(&b'\r');
        if line.len() - usize::from(with_cr) > self.max {
            let mut long = LongLine::default();
            long.push(&line);
            return Some(Err(self.too_long(long)));
        }
        if with_cr {
            line.truncate(line.len() - 1);
        }
        let blank = line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'));
        (!blank).then(|| Ok(line.freeze()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Result<&str, usize> = Err(8);

    /// Feeds `text` whole and byte by byte; both must give the same lines.
    fn check(text: &str, expected: &[Result<&str, usize>]) {
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
                .map(|line| match line {
                    Ok(line) => Ok(std::str::from_utf8(line).unwrap()),
                    Err(LineError::TooLong { max, .. }) => Err(*max),
                })
                .collect();
            assert_eq!(lines, expected, "{text:?} in pieces of {size}");
        }
    }

    /// Proves N-3, N-15 and N-30.
    #[test]
    fn one_message_per_line() {
        check("", &[]);
        check("a\nb\n", &[Ok("a"), Ok("b")]);
        check("a\r\nb", &[Ok("a"), Ok("b")]);
        check("\n \t\r\n\na\n\r\n", &[Ok("a")]);
        check(" a \n", &[Ok(" a ")]);
        check("a\rb\n", &[Ok("a\rb")]);
    }

    /// Proves S-66.
    #[test]
    fn a_long_line_is_reported_once_and_skipped() {
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
