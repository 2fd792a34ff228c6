//! The keys of all open objects, kept to find one that occurs twice.

use std::ops::Range;

use crate::json;

/// Up to this many keys, comparing each with each is faster than sorting.
const FEW: usize = 16;

/// A stack of key lists, one for every object that is open. Keys are compared as decoded.
pub(crate) struct Keys {
    keys: Vec<Key>,
    /// Keys that were written with escapes, decoded.
    decoded: Vec<u8>,
}

#[derive(Copy, Clone)]
struct Key {
    start: u32,
    length: u32,
    /// Where the key is in `decoded`, if it had to be decoded; `start` stays its place in the message.
    decoded_at: Option<u32>,
}

impl Keys {
    /// Room for the keys of an ordinary message, so that it costs one allocation.
    pub fn new() -> Self {
        Self { keys: Vec::with_capacity(32), decoded: Vec::new() }
    }

    /// Where the keys of an object that opens now will begin; to be given back when it closes.
    #[inline]
    pub fn open(&self) -> usize {
        self.keys.len()
    }

    /// Adds a key of the innermost open object, given by the place of its token, which is a valid string.
    pub fn push(&mut self, bytes: &[u8], token: Range<usize>, escaped: bool) {
        let mut key =
            Key { start: token.start as u32, length: (token.len() as u32).saturating_sub(2), decoded_at: None };
        if escaped {
            let text = bytes.get(token).and_then(json::string).unwrap_or_default();
            key.decoded_at = Some(self.decoded.len() as u32);
            key.length = text.len() as u32;
            self.decoded.extend_from_slice(text.as_bytes());
        }
        self.keys.push(key);
    }

    /// Forgets the keys from `start` on: those of the object that closes. Gives the position of one that occurred
    /// before in it.
    #[inline]
    pub fn close(&mut self, bytes: &[u8], start: usize) -> Option<usize> {
        let keys = self.keys.get_mut(start..)?;
        let duplicate = if keys.len() <= FEW {
            among_few(keys, bytes, &self.decoded)
        } else {
            among_many(keys, bytes, &self.decoded)
        };
        self.keys.truncate(start);
        if start == 0 {
            self.decoded.clear();
        }
        duplicate
    }
}

impl Key {
    #[inline]
    fn text<'a>(&self, bytes: &'a [u8], decoded: &'a [u8]) -> &'a [u8] {
        let (from, start) = match self.decoded_at {
            None => (bytes, self.start as usize + 1),
            Some(at) => (decoded, at as usize),
        };
        from.get(start..start + self.length as usize).unwrap_or(&[])
    }
}

fn among_few(keys: &[Key], bytes: &[u8], decoded: &[u8]) -> Option<usize> {
    for (index, key) in keys.iter().enumerate() {
        let text = key.text(bytes, decoded);
        let same = |other: &Key| other.length == key.length && other.text(bytes, decoded) == text;
        if keys.iter().take(index).any(same) {
            return Some(key.start as usize);
        }
    }
    None
}

/// Sorting rather than hashing: nothing that a sender can choose makes it slow.
fn among_many(keys: &mut [Key], bytes: &[u8], decoded: &[u8]) -> Option<usize> {
    keys.sort_unstable_by(|one, other| one.text(bytes, decoded).cmp(other.text(bytes, decoded)));
    let mut pairs = keys.windows(2);
    let pair = pairs.find(|pair| pair[0].text(bytes, decoded) == pair[1].text(bytes, decoded))?;
    pair.iter().map(|key| key.start as usize).max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Option<usize> {
        let mut keys = Keys::new();
        let start = keys.open();
        for member in json::members(text.as_bytes()) {
            let token = member.key.range();
            let escaped = text[token.clone()].contains('\\');
            keys.push(text.as_bytes(), token, escaped);
        }
        keys.close(text.as_bytes(), start)
    }

    #[test]
    fn finds_duplicates_among_few_and_many() {
        assert_eq!(check(r#"{"a":1,"b":2}"#), None);
        assert_eq!(check(r#"{"a":1,"a":2}"#), Some(7));
        assert_eq!(check(r#"{"a":1,"\u0061":2}"#), Some(7));
        let many: String = (0..100).map(|n| format!("\"k{n}\":0,")).collect();
        assert_eq!(check(&format!("{{{many}\"z\":0}}")), None);
        assert!(check(&format!("{{{many}\"k50\":0}}")).is_some());
        assert!(check(&format!("{{{many}\"\\u006b50\":0}}")).is_some());
    }

    #[test]
    fn objects_do_not_mix() {
        let text = br#"{"a":{"a":1}}"#;
        let mut keys = Keys::new();
        let outer = keys.open();
        keys.push(text, 1..4, false);
        let inner = keys.open();
        keys.push(text, 6..9, false);
        assert_eq!(keys.close(text, inner), None);
        assert_eq!(keys.close(text, outer), None);
        assert_eq!(keys.close(text, 7), None);
    }
}
