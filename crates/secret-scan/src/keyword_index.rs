//! Finds the keywords that begin at a position by a hash of their first bytes.
//!
//! An automaton of a thousand keywords fills megabytes, and each of its steps waits for memory. This index fits into
//! the first-level cache.

use std::ops::ControlFlow;

/// Number of first bytes that are hashed, and of those that are compared at once.
const HASHED: usize = 4;
const COMPARED: usize = 8;
/// Number of bits of the hash for the filter, and of the one for the lookup.
const FILTER_BITS: u32 = 15;
const BITS: u32 = 12;
/// Bit in which capital and small letters differ, in each byte.
const CASE: u64 = 0x2020_2020_2020_2020;

#[derive(Debug)]
pub(crate) struct KeywordIndex {
    words: Vec<Box<[u8]>>,
    of_four: Buckets,
    of_three: Buckets,
}

/// Keywords by the hash of their first bytes.
#[derive(Debug)]
struct Buckets {
    /// Mask of the first bytes that are hashed.
    mask: u32,
    /// Bit set of the hashes that keywords have.
    filter: Vec<u64>,
    /// Index of the first entry for each lookup hash.
    starts: Vec<u16>,
    entries: Vec<Entry>,
}

#[derive(Copy, Clone, Debug)]
struct Entry {
    /// First bytes of the keyword, and a mask of their number.
    first: u64,
    mask: u64,
    word: u16,
}

impl KeywordIndex {
    /// Indexes keywords of at least three bytes by their position in the list, which must be shorter than 65,536.
    pub(crate) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let words: Vec<Box<[u8]>> = words.map(|word| word.as_bytes().into()).collect();
        let entries = |is_long: bool| {
            let chosen = (0u16..).zip(&words).filter(move |(_, word)| (word.len() >= HASHED) == is_long);
            chosen.map(|(index, word)| Entry::new(word, index)).collect()
        };
        let (of_four, of_three) = (Buckets::new(u32::MAX, entries(true)), Buckets::new(0x00ff_ffff, entries(false)));
        Self { words, of_four, of_three }
    }

    /// Calls `found` with the index and length of each keyword at a position of the text, regardless of case.
    #[inline]
    pub(crate) fn at(
        &self,
        text: &[u8],
        from: usize,
        mut found: impl FnMut(usize, usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let first = first_bytes(text.get(from..).unwrap_or_default());
        for buckets in [&self.of_three, &self.of_four] {
            if buckets.may_have(first) {
                for entry in buckets.of(first).iter().filter(|entry| (entry.first ^ first) & entry.mask == 0) {
                    let word = self.words.get(usize::from(entry.word)).map(|word| &**word).unwrap_or_default();
                    if text.get(from..from + word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word)) {
                        found(usize::from(entry.word), word.len())?;
                    }
                }
            }
        }
        ControlFlow::Continue(())
    }
}

/// Returns the first bytes with ASCII letters in lower case, padded at the end of a text.
#[inline]
fn first_bytes(bytes: &[u8]) -> u64 {
    let mut first = [0; COMPARED];
    match bytes.first_chunk() {
        Some(chunk) => first = *chunk,
        None => first.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
    }
    u64::from_le_bytes(first) | CASE
}

impl Entry {
    fn new(keyword: &[u8], word: u16) -> Self {
        let length = keyword.len().min(COMPARED) as u32;
        Self { first: first_bytes(keyword), mask: u64::MAX >> (u64::BITS - 8 * length), word }
    }
}

impl Buckets {
    fn new(mask: u32, mut entries: Vec<Entry>) -> Self {
        let mut filter = vec![0; 1 << (FILTER_BITS - 6)];
        for entry in &entries {
            let place = hash(entry.first as u32 & mask, FILTER_BITS);
            filter.iter_mut().skip(place / 64).take(1).for_each(|bits| *bits |= 1 << (place % 64));
        }
        let of = |entry: &Entry| hash(entry.first as u32 & mask, BITS);
        entries.sort_by_key(of);
        let first = |at: usize| entries.partition_point(|entry| of(entry) < at) as u16;
        Self { mask, filter, starts: (0..=1 << BITS).map(first).collect(), entries }
    }

    #[inline]
    fn may_have(&self, first: u64) -> bool {
        let place = hash(first as u32 & self.mask, FILTER_BITS);
        self.filter.get(place / 64).is_some_and(|bits| bits >> (place % 64) & 1 == 1)
    }

    fn of(&self, first: u64) -> &[Entry] {
        let at = hash(first as u32 & self.mask, BITS);
        let (Some(from), Some(to)) = (self.starts.get(at), self.starts.get(at + 1)) else { return &[] };
        self.entries.get(usize::from(*from)..usize::from(*to)).unwrap_or_default()
    }
}

#[inline]
fn hash(beginning: u32, bits: u32) -> usize {
    (beginning.wrapping_mul(0x9e37_79b1) >> (u32::BITS - bits)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_found_in_any_case_where_they_begin() {
        let words = ["key", "keys", "token", "-us", "passphrase"];
        let index = KeywordIndex::new(words.into_iter());
        let at = |text: &str, from: usize| {
            let mut found = Vec::new();
            let _ = index.at(text.as_bytes(), from, |word, length| {
                assert_eq!(words[word].len(), length);
                found.push(words[word]);
                ControlFlow::Continue(())
            });
            found.sort_unstable();
            found.join(" ")
        };
        assert_eq!(at("my Keys", 3), "key keys");
        assert_eq!(at("my Keys", 4), "");
        assert_eq!(at("KEY", 0), "key");
        assert_eq!(at("ke", 0), "");
        assert_eq!(at("TOKEN", 0), "token");
        assert_eq!(at("toke", 0), "");
        assert_eq!(at("a-us\u{ff}", 1), "-us");
        assert_eq!(at("x", 9), "");
    }
}
