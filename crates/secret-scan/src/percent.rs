//! Decodes URL-encoded text, one level deep.

use memchr::memchr_iter;

/// Length of a `%XX` escape.
const ESCAPE: usize = 3;

/// A text with its `%XX` escapes decoded.
pub(crate) struct DecodedText {
    pub(crate) bytes: Vec<u8>,
    /// Offsets of the decoded escapes. Each shifts the following bytes by two.
    escapes: Vec<usize>,
}

/// Kind of the `%XX` escapes of a text.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Escapes {
    /// The text has no escapes.
    None,
    /// All escapes stand for characters that must be encoded, so keywords are still visible.
    Usual,
    /// Some escapes stand for letters or digits, which need no encoding, or for characters beyond ASCII. They may hide a
    /// keyword.
    Hiding,
}

/// Returns the kind of the escapes of a text.
pub(crate) fn escapes(text: &[u8]) -> Escapes {
    let mut found = Escapes::None;
    for at in memchr_iter(b'%', text) {
        match escape(text, at) {
            Some(byte) if byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-_.~".contains(&byte) => {
                return Escapes::Hiding;
            }
            Some(_) => found = Escapes::Usual,
            None => {}
        }
    }
    found
}

/// Decodes every `%XX` escape.
pub(crate) fn decode(text: &[u8]) -> DecodedText {
    let mut decoded = DecodedText { bytes: Vec::with_capacity(text.len()), escapes: Vec::new() };
    let mut from = 0;
    for at in memchr_iter(b'%', text) {
        let Some(byte) = escape(text, at) else { continue };
        decoded.bytes.extend_from_slice(text.get(from..at).unwrap_or_default());
        decoded.escapes.push(decoded.bytes.len());
        decoded.bytes.push(byte);
        from = at + ESCAPE;
    }
    decoded.bytes.extend_from_slice(text.get(from..).unwrap_or_default());
    decoded
}

impl DecodedText {
    /// Returns the offset in the original text of an offset in the decoded bytes.
    pub(crate) fn place(&self, at: usize) -> usize {
        at + (ESCAPE - 1) * self.escapes_before(at)
    }

    /// Returns true if a byte of this range was an escape. Any other range is unchanged from the text.
    pub(crate) fn differs(&self, from: usize, to: usize) -> bool {
        self.escapes.get(self.escapes_before(from)).is_some_and(|escape| *escape < to)
    }

    fn escapes_before(&self, at: usize) -> usize {
        self.escapes.partition_point(|escape| *escape < at)
    }
}

/// Returns the byte that a `%XX` escape at this offset stands for.
fn escape(text: &[u8], at: usize) -> Option<u8> {
    let [b'%', high, low] = text.get(at..at + 3)? else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_decoded_byte_has_its_place_in_the_text() {
        let decoded = decode(b"a%62c%zz%20%2");
        assert_eq!(decoded.bytes, b"abc%zz %2");
        let places: Vec<usize> = (0..=decoded.bytes.len()).map(|at| decoded.place(at)).collect();
        assert_eq!(places, [0, 1, 4, 5, 6, 7, 8, 11, 12, 13]);
        let differing = |from, to| decoded.differs(from, to);
        assert!(differing(0, 2) && differing(1, 2) && differing(2, 7) && differing(6, 9));
        assert!(!differing(0, 1) && !differing(2, 6) && !differing(7, 9) && !differing(9, 9));
    }
}
