//! Bodies of the fuzz targets: each takes any bytes and asserts what must hold for all of them.
//!
//! They live here so that the ordinary tests run them too, over mutated seeds.

use crate::http1::framing::{BodyPiece, Framing, MalformedBody};
use crate::http1::head;
use crate::tls::der;
use bytes::BytesMut;

/// Name and body of a target.
pub type NamedFuzzTarget = (&'static str, fn(&[u8]));

/// All targets by name.
pub const TARGETS: &[NamedFuzzTarget] = &[("http_head", http_head), ("http_body", http_body), ("der", der)];

/// Maximum length of inputs whose every prefix is tried.
const TRIED_AT_EVERY_BYTE: usize = 400;

/// Asserts that a head is consumed exactly when its last byte has arrived, and that an incomplete head consumes
/// nothing.
pub fn http_head(data: &[u8]) {
    let mut received = BytesMut::from(data);
    let Ok(Some((whole, handling))) = head::take(&mut received) else {
        assert_eq!(&received[..], data);
        return;
    };
    assert!(!received.is_empty() || data.ends_with(b"\n"));
    assert!(data.ends_with(&received) && received.len() < data.len());
    let length = data.len() - received.len();
    for end in length.saturating_sub(TRIED_AT_EVERY_BYTE)..length {
        let mut early = BytesMut::from(&data[..end]);
        assert!(matches!(head::take(&mut early), Ok(None)), "a head of {length} bytes was taken at {end}");
        assert!(end == 0 || head::may_end(&data[..length], end), "the end of a head was overlooked after {end} bytes");
    }
    let (again, same) = head::take(&mut BytesMut::from(&data[..length])).ok().flatten().unwrap_or_else(|| {
        unreachable!("a head is one without what follows it");
    });
    assert_eq!((again.status, again.content), (whole.status, whole.content));
    assert_eq!(
        (same.framing, same.reusable, same.idle_timeout),
        (handling.framing, handling.reusable, handling.idle_timeout)
    );
}

/// Asserts that a body reads the same in pieces of any size. The first byte of the input selects the framing, the
/// second one the announced length and the size of the pieces.
pub fn http_body(data: &[u8]) {
    let [how, piece, body @ ..] = data else { return };
    let framing = || match how % 4 {
        0 => Framing::UntilClose,
        1 => Framing::Length(u64::from(*piece)),
        _ => Framing::chunked(),
    };
    let whole = read(framing(), body, body.len());
    for piece in [1, usize::from(*piece) + 2] {
        assert_eq!(read(framing(), body, piece), whole, "in pieces of {piece}");
    }
    assert!(whole.body.len() <= body.len());
    if let BodyEnd::Whole(rest) = &whole.ended {
        assert!(body.ends_with(rest));
    }
}

#[derive(PartialEq, Eq, Debug)]
struct Read {
    body: Vec<u8>,
    ended: BodyEnd,
}

#[derive(PartialEq, Eq, Debug)]
enum BodyEnd {
    /// The body is whole, and this follows it.
    Whole(Vec<u8>),
    /// The input ended before the body did.
    Early,
    Malformed(MalformedBody),
}

fn read(mut framing: Framing, bytes: &[u8], piece: usize) -> Read {
    let (mut received, mut body) = (BytesMut::new(), Vec::new());
    let mut pieces = bytes.chunks(piece.max(1));
    let ended = loop {
        match framing.next(&mut received) {
            Ok(BodyPiece::Data(data)) => body.extend_from_slice(&data),
            Ok(BodyPiece::End) => break BodyEnd::Whole([&received[..], &pieces.collect::<Vec<_>>().concat()].concat()),
            Ok(BodyPiece::More) => match pieces.next() {
                Some(piece) => received.extend_from_slice(piece),
                None => break BodyEnd::Early,
            },
            Err(error) => break BodyEnd::Malformed(error),
        }
    };
    Read { body, ended }
}

/// Asserts that a certificate's validity lies within the range of its two time formats, and that bytes after the
/// certificate do not change it.
pub fn der(data: &[u8]) {
    let Some((from, until)) = der::validity(data) else { return };
    // The years 0 to 9999.
    let years = -62_167_219_200..=253_402_300_800;
    assert!(years.contains(&from) && years.contains(&until));
    assert_eq!(der::validity(&[data, b"\x30\0"].concat()), Some((from, until)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::fuzzing::run_mutated;

    /// Pieces that matter to some parser, to be put anywhere.
    const PIECES: &[&[u8]] = &[
        b"\r\n",
        b"\n",
        b"\r",
        b"\r\n\r\n",
        b" ",
        b"\t",
        b":",
        b";a=\"b\"",
        b"0\r\n",
        b"5\r\n",
        b"HTTP/1.1 200 OK\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"\0",
        b"\xff",
        b"\x30\x80",
        b"\x30\x82\x01\x00",
        b"\x17\x0d700101000000Z",
        b"\x18\x0f19700101000000Z",
    ];

    fn seeds() -> Vec<Vec<u8>> {
        let texts: [&[u8]; 8] = [
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 5\r\n\r\nhello",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nkeep-alive: timeout=5, max=3\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            b"\r\nHTTP/1.0 404 \nconnection: Keep-Alive, x\ncontent-length: 1, 1\n\nx",
            b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
            b"\x02\x035\r\nhello\r\n6;a=\"b;c\"\r\n world\r\n0\r\nx: y\r\n\r\nrest",
            b"\x02\x0010    \r\n0123456789abcdef\r\n0\r\n\r\n",
            b"\x01\x05hello, and more",
            b"\x00\x00until the end",
        ];
        let certificate = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let mut seeds: Vec<_> = texts.map(<[u8]>::to_vec).into();
        seeds.push(certificate.cert.der().to_vec());
        seeds
    }

    #[test]
    fn all_targets_hold_on_seeds_and_mutations() {
        let seeds = seeds();
        assert!(der::validity(&seeds[8]).is_some());
        run_mutated(TARGETS, &seeds, PIECES, 4_000);
    }
}
