//! Newline-delimited messages, as stdio carries them.

use crate::long_line::LongLine;
use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// Why a line was not delivered.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LineError {
    /// The line is longer than allowed; it was skipped.
    #[error("a line longer than {max} bytes was skipped")]
    TooLong {
        /// The bound.
        max: usize,
        /// What is kept of it.
        line: LongLine,
    },
}

/// Cuts a stream of bytes into lines. Empty lines are skipped, a trailing CR is dropped, and a line that grows too
/// long is skipped without being kept, and reported where it ends.
#[derive(Debug)]
pub struct LineDecoder {
    max: usize,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no newline.
    searched: usize,
    /// The rest of a line that was too long is still to come.
    skipping: Option<LongLine>,
    /// Such a line has ended, and is to be reported.
    skipped: Option<LongLine>,
}

impl LineDecoder {
    /// A decoder for lines of at most `max` bytes.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max, buffer: BytesMut::new(), searched: 0, skipping: None, skipped: None }
    }

    /// Takes in what was read.
    pub fn push(&mut self, chunk: &[u8]) {
        let Some(line) = &mut self.skipping else { return self.buffer.extend_from_slice(chunk) };
        let Some(newline) = memchr(b'\n', chunk) else { return line.push(chunk) };
        line.push(&chunk[..newline]);
        self.skipped = self.skipping.take();
        self.buffer.extend_from_slice(&chunk[newline + 1..]);
    }

    /// The next complete line, without its end. To be called until there is none.
    pub fn next_line(&mut self) -> Option<Result<Bytes, LineError>> {
        if let Some(line) = self.skipped.take() {
            return Some(Err(self.too_long(line)));
        }
        loop {
            let Some(found) = memchr(b'\n', self.buffer.get(self.searched..).unwrap_or(&[])) else {
                self.searched = self.buffer.len();
                // One byte more than the bound may still turn out to be the CR of the line's end.
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

    /// The last line, if the stream ended without a newline.
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

    /// How many bytes are held for a line that is not complete.
    #[must_use]
    pub fn buffered(&self) -> usize {
        self.buffer.len()
    }

    /// Gives up what is buffered, and the rest of the line that was begun.
    pub fn skip_line(&mut self) {
        self.skipping.get_or_insert_default().push(&self.buffer);
        self.searched = 0;
        self.buffer = BytesMut::new();
    }

    fn too_long(&self, line: LongLine) -> LineError {
        LineError::TooLong { max: self.max, line: line.ended() }
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
