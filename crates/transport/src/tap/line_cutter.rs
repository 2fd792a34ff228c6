//! Splits a stream of bytes into lines without losing a byte.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// A line with its end, or a part of one that is too long.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinePiece {
    /// Bytes, including the end of the line.
    pub bytes: Bytes,
    /// Set unless this is only a part of a line.
    pub whole: bool,
}

/// Splits bytes into pieces whose concatenation is exactly the input. The splits do not depend on how the input was
/// chunked.
#[derive(Debug)]
pub struct LineCutter {
    max: usize,
    held: BytesMut,
    /// Set if a part of the current line was already emitted.
    broken: bool,
}

impl LineCutter {
    /// Creates a cutter that holds at most `max` bytes. A longer line is emitted in several pieces.
    #[must_use]
    pub fn new(max: usize) -> Self {
        Self { max: max.max(1), held: BytesMut::new(), broken: false }
    }

    /// Appends received bytes and emits complete pieces.
    pub fn push(&mut self, mut chunk: Bytes, out: &mut Vec<LinePiece>) {
        while let Some(end) = memchr(b'\n', &chunk) {
            let line = chunk.split_to(end + 1);
            self.take(line, true, out);
        }
        if !chunk.is_empty() {
            self.take(chunk, false, out);
        }
    }

    /// Emits the last line, if the stream ended without a line end.
    pub fn finish(&mut self, out: &mut Vec<LinePiece>) {
        let whole = !std::mem::take(&mut self.broken);
        if !self.held.is_empty() {
            out.push(LinePiece { bytes: self.held.split().freeze(), whole });
        }
    }

    /// Number of bytes that wait for the end of their line.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn take(&mut self, mut bytes: Bytes, ends: bool, out: &mut Vec<LinePiece>) {
        while bytes.len() > self.max - self.held.len() {
            let part = bytes.split_to(self.max - self.held.len());
            self.broken = true;
            out.push(LinePiece { bytes: self.join(part), whole: false });
        }
        if ends {
            let whole = !std::mem::take(&mut self.broken);
            out.push(LinePiece { bytes: self.join(bytes), whole });
        } else {
            self.held.extend_from_slice(&bytes);
        }
    }

    /// Joins held bytes with these; copies only if bytes are held.
    fn join(&mut self, bytes: Bytes) -> Bytes {
        if self.held.is_empty() {
            return bytes;
        }
        self.held.extend_from_slice(&bytes);
        std::mem::take(&mut self.held).freeze()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cut(chunks: &[&[u8]], max: usize) -> Vec<LinePiece> {
        let mut cutter = LineCutter::new(max);
        let mut out = Vec::new();
        for chunk in chunks {
            cutter.push(Bytes::copy_from_slice(chunk), &mut out);
            assert!(cutter.held() <= max);
        }
        cutter.finish(&mut out);
        out
    }

    fn shown(pieces: &[LinePiece]) -> Vec<(String, bool)> {
        pieces.iter().map(|piece| (String::from_utf8_lossy(&piece.bytes).into_owned(), piece.whole)).collect()
    }

    /// Proves N-12.
    #[test]
    fn lines_keep_their_ends_and_blank_lines_are_lines() {
        let pieces = cut(&[b"{}\r\n\n  \n", b"a\rb", b"\nlast"], 100);
        let whole = |text: &str| (text.to_owned(), true);
        assert_eq!(shown(&pieces), [whole("{}\r\n"), whole("\n"), whole("  \n"), whole("a\rb\n"), whole("last")]);
    }

    #[test]
    fn a_line_that_is_too_long_comes_in_pieces_and_the_next_one_is_whole_again() {
        let pieces = cut(&[b"12345678901\nok\n"], 5);
        let piece = |text: &str, whole| (text.to_owned(), whole);
        assert_eq!(
            shown(&pieces),
            [piece("12345", false), piece("67890", false), piece("1\n", false), piece("ok\n", true)]
        );
    }

    proptest! {
        #[test]
        fn however_the_bytes_are_chunked_no_byte_is_lost_and_the_cuts_are_the_same(
            bytes in proptest::collection::vec(prop_oneof![3 => Just(b'\n'), 1 => Just(b'\r'), 12 => any::<u8>()], 0..600),
            sizes in proptest::collection::vec(1_usize..40, 1..200),
            max in 1_usize..64,
        ) {
            let mut chunks = Vec::new();
            let (mut rest, mut turn) = (&bytes[..], sizes.iter().cycle());
            while !rest.is_empty() {
                let size = (*turn.next().unwrap()).min(rest.len());
                let (chunk, more) = rest.split_at(size);
                chunks.push(chunk);
                rest = more;
            }
            let pieces = cut(&chunks, max);
            let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
            prop_assert_eq!(&joined, &bytes);
            prop_assert_eq!(pieces, cut(&[&bytes], max));
        }
    }
}
