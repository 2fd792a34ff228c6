//! URL-encoded text, decoded once.

use memchr::memchr_iter;

/// What a text means once its `%XX` are decoded, and where each byte of that is written.
pub(crate) struct Decoded {
    pub(crate) bytes: Vec<u8>,
    /// One more than there are bytes: the last is the end of the text.
    places: Vec<u32>,
}

/// What the `%XX` of a text are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Escapes {
    /// There are none.
    None,
    /// Only such as stand for what has to be encoded: keywords are still to be seen.
    Usual,
    /// Some stand for letters or digits, which nobody has to encode: they may hide a keyword.
    Hiding,
}

/// Which kind of escapes a text has.
pub(crate) fn escapes(text: &[u8]) -> Escapes {
    let mut found = Escapes::None;
    for at in memchr_iter(b'%', text) {
        match escape(text, at) {
            Some(byte) if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => return Escapes::Hiding,
            Some(_) => found = Escapes::Usual,
            None => {}
        }
    }
    found
}

/// Decodes every `%XX`.
pub(crate) fn decode(text: &[u8]) -> Decoded {
    let mut decoded = Decoded { bytes: Vec::with_capacity(text.len()), places: Vec::with_capacity(text.len() + 1) };
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        decoded.places.push(at as u32);
        match (byte, escape(text, at)) {
            (b'%', Some(byte)) => {
                decoded.bytes.push(byte);
                at += 3;
            }
            _ => {
                decoded.bytes.push(*byte);
                at += 1;
            }
        }
    }
    decoded.places.push(text.len() as u32);
    decoded
}

impl Decoded {
    /// Where in the text this position of the decoded bytes is written.
    pub(crate) fn place(&self, at: usize) -> usize {
        self.places.get(at).or(self.places.last()).map_or(0, |place| *place as usize)
    }
}

/// What the `%XX` at this position stands for.
fn escape(text: &[u8], at: usize) -> Option<u8> {
    let [b'%', high, low] = text.get(at..at + 3)? else { return None };
    let digit = |byte: &u8| char::from(*byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}
