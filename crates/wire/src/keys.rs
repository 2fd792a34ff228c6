//! Keys of all open objects, for detecting duplicates.

use std::ops::Range;

use crate::json;

/// Number of keys up to which pairwise comparison is faster than sorting.
const PAIRWISE_LIMIT: usize = 16;
/// Number of keys open at once in an ordinary message.
const TYPICAL_KEYS: usize = 16;

/// Stack of key lists, one for each open object. Keys are compared in decoded form.
pub(crate) struct Keys {
    keys: Vec<Key>,
    /// Decoded text of keys with escapes.
    decoded: Vec<u8>,
}

#[derive(Copy, Clone)]
struct Key {
    /// Fingerprint of the decoded text. Equal texts have equal marks.
    mark: u64,
    start: u32,
    /// Position in `decoded`, if the key has escapes. `start` remains its position in the message.
    decoded_at: Option<u32>,
}

impl Keys {
    /// Creates a stack with capacity for an ordinary message, which then costs one allocation.
    pub fn new() -> Self {
        Self { keys: Vec::with_capacity(TYPICAL_KEYS), decoded: Vec::new() }
    }

    /// Starts the key list of an object. The result must be passed to [`Self::close`].
    #[inline]
    pub fn open(&self) -> usize {
        self.keys.len()
    }

    /// Adds a key of the innermost object. `token` is the range of a valid string token.
    #[inline]
    pub fn push(&mut self, bytes: &[u8], token: Range<usize>, escaped: bool) {
        if escaped {
            return self.push_decoded(bytes, token);
        }
        let text = bytes.get(token.start + 1..token.end - 1).unwrap_or(&[]);
        self.keys.push(Key { mark: mark(text), start: token.start as u32, decoded_at: None });
    }

    #[cold]
    fn push_decoded(&mut self, bytes: &[u8], token: Range<usize>) {
        let start = token.start as u32;
        let text = bytes.get(token).and_then(json::string).unwrap_or_default();
        let decoded_at = Some(self.decoded.len() as u32);
        self.decoded.extend_from_slice(text.as_bytes());
        self.keys.push(Key { mark: mark(text.as_bytes()), start, decoded_at });
    }

    /// Removes the keys of the closing object, from `start` on. Returns the position of a duplicate key, if there is
    /// one.
    #[inline]
    pub fn close(&mut self, bytes: &[u8], start: usize) -> Option<usize> {
        let keys = self.keys.get_mut(start..)?;
        let duplicate = match keys.len() {
            0 | 1 => None,
            few if few <= PAIRWISE_LIMIT => among_few(keys, bytes, &self.decoded),
            _ => among_many(keys, bytes, &self.decoded),
        };
        self.keys.truncate(start);
        if start == 0 {
            self.decoded.clear();
        }
        duplicate
    }
}

/// Combines the length of a text with its first and last bytes. Different texts rarely collide.
#[inline]
fn mark(text: &[u8]) -> u64 {
    let ends = match (text.first_chunk::<4>(), text.last_chunk::<4>()) {
        (Some(first), Some(last)) => u32::from_le_bytes(*first) ^ u32::from_le_bytes(*last).rotate_left(13),
        _ => text.iter().fold(0, |all, byte| all << 8 | u32::from(*byte)),
    };
    (text.len() as u64) << 32 | u64::from(ends)
}

impl Key {
    #[inline]
    fn text<'a>(&self, bytes: &'a [u8], decoded: &'a [u8]) -> &'a [u8] {
        let (from, start) = match self.decoded_at {
            None => (bytes, self.start as usize + 1),
            Some(at) => (decoded, at as usize),
        };
        from.get(start..start + (self.mark >> 32) as usize).unwrap_or(&[])
    }
}

fn among_few(keys: &[Key], bytes: &[u8], decoded: &[u8]) -> Option<usize> {
    for (index, key) in keys.iter().enumerate() {
        let same = |other: &Key| other.mark == key.mark && other.text(bytes, decoded) == key.text(bytes, decoded);
        if keys.iter().take(index).any(same) {
            return Some(key.start as usize);
        }
    }
    None
}

/// Sorts instead of hashing, so that no input chosen by a sender makes it slow.
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
    fn texts_that_begin_and_end_alike_are_told_apart() {
        assert_eq!(check(r#"{"abcd_efgh":1,"abcdxefgh":2,"abc":3,"abd":4,"":5,"é":6}"#), None);
        assert_eq!(check(r#"{"abcd_efgh":1,"abcdxefgh":2,"abcd_efgh":3}"#), Some(29));
        assert_eq!(check(r#"{"":1,"":2}"#), Some(6));
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
