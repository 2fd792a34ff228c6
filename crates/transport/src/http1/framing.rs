//! Framing of response bodies.

use bytes::{Buf as _, Bytes, BytesMut};

/// Maximum length of a line between chunks, in bytes.
const MAX_CHUNK_LINE: usize = 4096;
/// Maximum total size of chunk extensions and trailers in one body.
const MAX_BESIDES: usize = 16 * 1024;
/// Maximum number of digits of a chunk size.
const MAX_SIZE_DIGITS: usize = 15;

/// A violation of HTTP/1.1 in a response, or of one of our limits.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct MalformedBody(pub &'static str);

/// Method by which the end of a body is determined.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum Framing {
    /// The body is complete.
    Done,
    /// This many bytes remain.
    Length(u64),
    /// The body is chunked.
    Chunked(ChunkedState),
    /// The body ends with the connection.
    UntilClose,
}

/// Parser state of a chunked body.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct ChunkedState {
    at: At,
    besides: usize,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum At {
    Size,
    Data(u64),
    /// The line break after a chunk.
    Break,
    Trailers,
}

/// The next piece of a body.
#[derive(PartialEq, Eq, Debug)]
pub(crate) enum BodyPiece {
    /// Bytes of the body.
    Data(Bytes),
    /// More bytes must arrive first.
    More,
    /// The body has ended.
    End,
}

impl Framing {
    /// Creates the state of a chunked body.
    pub(crate) fn chunked() -> Self {
        Self::Chunked(ChunkedState { at: At::Size, besides: 0 })
    }

    /// Takes the next piece of the body from the received bytes.
    pub(crate) fn next(&mut self, received: &mut BytesMut) -> Result<BodyPiece, MalformedBody> {
        let step = match self {
            Self::Done => BodyPiece::End,
            Self::Length(left) => data(received, left),
            Self::Chunked(chunked) => chunked.next(received)?,
            Self::UntilClose if received.is_empty() => BodyPiece::More,
            Self::UntilClose => BodyPiece::Data(received.split().freeze()),
        };
        if step == BodyPiece::End || *self == Self::Length(0) {
            *self = Self::Done;
        }
        Ok(step)
    }
}

/// Takes as many of the next `left` bytes as have arrived.
fn data(received: &mut BytesMut, left: &mut u64) -> BodyPiece {
    if *left == 0 {
        return BodyPiece::End;
    }
    if received.is_empty() {
        return BodyPiece::More;
    }
    let length = usize::try_from(*left).map_or(received.len(), |left| left.min(received.len()));
    *left -= length as u64;
    BodyPiece::Data(received.split_to(length).freeze())
}

impl ChunkedState {
    fn next(&mut self, received: &mut BytesMut) -> Result<BodyPiece, MalformedBody> {
        loop {
            if let At::Data(left) = &mut self.at {
                let step = data(received, left);
                if *left == 0 {
                    self.at = At::Break;
                }
                return Ok(step);
            }
            let Some(line) = line(received)? else { return Ok(BodyPiece::More) };
            match self.at {
                At::Size => {
                    let (size, besides) = chunk_size(&line)?;
                    self.spend(besides)?;
                    self.at = if size == 0 { At::Trailers } else { At::Data(size) };
                }
                At::Break if line.is_empty() => self.at = At::Size,
                At::Trailers if line.is_empty() => return Ok(BodyPiece::End),
                At::Trailers if !is_field(&line) => return Err(MalformedBody("a trailer is no header field")),
                At::Trailers => self.spend(line.len())?,
                At::Break | At::Data(_) => return Err(MalformedBody("a chunk is longer than its size")),
            }
        }
    }

    fn spend(&mut self, bytes: usize) -> Result<(), MalformedBody> {
        self.besides += bytes;
        if self.besides > MAX_BESIDES {
            Err(MalformedBody("chunk extensions and trailers are too long"))
        } else {
            Ok(())
        }
    }
}

/// Takes the next line without its end, if it is complete.
fn line(received: &mut BytesMut) -> Result<Option<BytesMut>, MalformedBody> {
    let Some(end) = memchr::memchr(b'\n', received) else {
        return if received.len() > MAX_CHUNK_LINE {
            Err(MalformedBody("a line between chunks is too long"))
        } else {
            Ok(None)
        };
    };
    let mut line = received.split_to(end);
    received.advance(1);
    if line.last() != Some(&b'\r') || line.len() > MAX_CHUNK_LINE {
        return Err(MalformedBody("a line between chunks is too long or does not end in CR LF"));
    }
    line.truncate(line.len() - 1);
    // A proxy on the way may take a bare CR for the end of a line.
    if line.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
        return Err(MalformedBody("a line between chunks holds a control character"));
    }
    Ok(Some(line))
}

/// Returns `true` if a line looks like a header field, judged by its name.
fn is_field(line: &[u8]) -> bool {
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    memchr::memchr(b':', line).is_some_and(|colon| colon > 0 && line.iter().take(colon).all(token))
}

/// Parses the size in a chunk line, and returns the number of other bytes in it.
fn chunk_size(line: &[u8]) -> Result<(u64, usize), MalformedBody> {
    let bad = MalformedBody("the size of a chunk is invalid");
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let (number, rest) = line.split_at_checked(digits).ok_or(bad)?;
    if digits == 0 || digits > MAX_SIZE_DIGITS || !matches!(rest.trim_ascii_start().first(), None | Some(b';')) {
        return Err(bad);
    }
    let number = std::str::from_utf8(number).map_err(|_| bad)?;
    // Blanks after a size are not counted; the limit on the line bounds them.
    Ok((u64::from_str_radix(number, 16).map_err(|_| bad)?, rest.trim_ascii().len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A body, and what follows it; none where it does not end.
    type Read = Result<Option<(Vec<u8>, Vec<u8>)>, MalformedBody>;

    /// Everything that a body of these bytes holds, if they come in pieces of this size; and what follows it.
    fn read(mut framing: Framing, bytes: &[u8], piece: usize) -> Read {
        let (mut received, mut body) = (BytesMut::new(), Vec::new());
        let mut pieces = bytes.chunks(piece.max(1));
        loop {
            match framing.next(&mut received)? {
                BodyPiece::Data(data) => body.extend_from_slice(&data),
                BodyPiece::End => {
                    assert_eq!(framing, Framing::Done);
                    return Ok(Some((body, [&received[..], &pieces.collect::<Vec<_>>().concat()].concat())));
                }
                BodyPiece::More => match pieces.next() {
                    Some(piece) => received.extend_from_slice(piece),
                    None => return Ok(None),
                },
            }
        }
    }

    #[test]
    fn a_body_ends_where_it_says() {
        let both = |framing: fn() -> Framing, bytes: &str, body: &str, rest: &str| {
            for piece in [1, 2, 3, 7, 1000] {
                let expected = Some((body.as_bytes().to_vec(), rest.as_bytes().to_vec()));
                assert_eq!(read(framing(), bytes.as_bytes(), piece), Ok(expected), "{bytes:?} by {piece}");
            }
        };
        both(|| Framing::Length(5), "helloHTTP", "hello", "HTTP");
        both(|| Framing::Length(0), "x", "", "x");
        both(|| Framing::Done, "x", "", "x");
        both(Framing::chunked, "5\r\nhello\r\n0\r\n\r\nrest", "hello", "rest");
        let padded = format!("{}0\r\n\r\n", "1    \r\n!\r\n".repeat(MAX_BESIDES / 4 + 1));
        both(Framing::chunked, &padded, &"!".repeat(MAX_BESIDES / 4 + 1), "");
        both(Framing::chunked, "a ;x=y\r\n0123456789\r\n1\r\n!\r\n0\r\nx: y\r\n\r\n", "0123456789!", "");
        assert_eq!(read(Framing::chunked(), b"5\r\nhel", 1), Ok(None));
        assert_eq!(read(Framing::Length(5), b"hell", 1), Ok(None));
        assert_eq!(read(Framing::UntilClose, b"hell", 1), Ok(None));
    }

    #[test]
    fn chunks_that_lie_are_refused() {
        let endless = format!("1{}\r\na\r\n0\r\n\r\n", " ".repeat(MAX_CHUNK_LINE + 2));
        let chatty = format!("1;{}\r\na\r\n", "x".repeat(4000)).repeat(5) + "0\r\n\r\n";
        let trailing = format!("0\r\n{}\r\n", "a: b\r\n".repeat(MAX_BESIDES));
        for bytes in [
            "\r\n",
            "g\r\n",
            "-1\r\n",
            "+5\r\nhello\r\n0\r\n\r\n",
            "0x5\r\n",
            "5\nhello\r\n0\r\n\r\n",
            "5\r\nhello!\r\n",
            "5\r\nhello\n0\r\n\r\n",
            "1111111111111111\r\n",
            "5 5\r\nhello\r\n",
            &endless,
            &chatty,
            &trailing,
        ] {
            for piece in [1, 5000] {
                assert!(
                    read(Framing::chunked(), bytes.as_bytes(), piece).is_err(),
                    "{:?}",
                    &bytes[..bytes.len().min(40)]
                );
            }
        }
    }

    proptest! {
        #[test]
        fn what_was_put_into_chunks_comes_out(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..50), 0..9), piece in 1_usize..60) {
            let mut bytes = Vec::new();
            for chunk in &chunks {
                bytes.extend_from_slice(format!("{:X}\r\n", chunk.len()).as_bytes());
                bytes.extend_from_slice(chunk);
                bytes.extend_from_slice(b"\r\n");
            }
            bytes.extend_from_slice(b"0\r\n\r\n");
            prop_assert_eq!(read(Framing::chunked(), &bytes, piece), Ok(Some((chunks.concat(), Vec::new()))));
        }

        #[test]
        fn no_bytes_harm_it(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..60) {
            let _ = read(Framing::chunked(), &bytes, piece);
        }
    }
}
