//! SHA-256, and bytes as hexadecimal digits.

use aws_lc_rs::digest;

/// The SHA-256 of `bytes`.
#[must_use]
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut sum = [0; 32];
    sum.copy_from_slice(digest::digest(&digest::SHA256, bytes).as_ref());
    sum
}

/// The SHA-256 of these bytes, one after the other, without putting them together.
#[must_use]
pub fn sha256_of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    parts.into_iter().for_each(|part| context.update(part));
    let mut sum = [0; 32];
    sum.copy_from_slice(context.finish().as_ref());
    sum
}

/// Bytes as lower-case hexadecimal digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap_or('0');
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// The bytes of hexadecimal digits of either case; none where it is not that.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let (pairs, []) = text.as_bytes().as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_written_and_read_as_digits() {
        assert_eq!(hex(&[0, 0x9f, 0xff]), "009fff");
        assert_eq!(unhex("009FfF"), Some(vec![0, 0x9f, 0xff]));
        for text in ["0", "0g", "é", "0x00"] {
            assert_eq!(unhex(text), None, "{text}");
        }
        assert_eq!(sha256_of([&b"a"[..], b"", b"bc"]), sha256(b"abc"));
        assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    }
}
