//! Finds the keywords that begin at a place by a hash of their first bytes.
//!
//! An automaton of a thousand keywords fills megabytes, and each of its steps waits for memory. This index fits into the
//! first cache.

/// Number of first bytes that are hashed; fewer keywords are shorter.
const BEGINNING: usize = 4;
/// Bits of a hash.
const BITS: u32 = 12;
/// The bit in which large and small letters differ.
const CASE: u32 = 0x2020_2020;

#[derive(Debug)]
pub(crate) struct KeywordIndex {
    words: Vec<Box<[u8]>>,
    of_four: Buckets,
    of_three: Buckets,
}

/// Keywords by the hash of their beginning.
#[derive(Debug)]
struct Buckets {
    /// For each hash the place of its first entry.
    starts: Vec<u16>,
    entries: Vec<Entry>,
}

#[derive(Copy, Clone, Debug)]
struct Entry {
    beginning: u32,
    word: u16,
}

impl KeywordIndex {
    /// Indexes keywords of at least three bytes by their place in the list, of which there are fewer than 65,536.
    pub(crate) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let words: Vec<Box<[u8]>> = words.map(|word| word.as_bytes().into()).collect();
        let entries = |is_long: bool| {
            let chosen = (0u16..).zip(&words).filter(move |(_, word)| (word.len() >= BEGINNING) == is_long);
            chosen.map(|(index, word)| Entry { beginning: beginning(word), word: index }).collect()
        };
        let (of_four, of_three) = (Buckets::new(entries(true)), Buckets::new(entries(false)));
        Self { words, of_four, of_three }
    }

    /// Returns the keywords that stand at a place of the text, in any case, and their lengths.
    pub(crate) fn at<'a>(&'a self, text: &'a [u8], from: usize) -> impl Iterator<Item = (usize, usize)> + 'a {
        let rest = text.get(from..).unwrap_or_default();
        let first = beginning(rest);
        let found = self.of_three.of(first | OPEN_END).iter().chain(self.of_four.of(first));
        found.filter_map(move |entry| {
            let word = self.words.get(usize::from(entry.word))?;
            let is_there = rest.get(..word.len())?.eq_ignore_ascii_case(word);
            is_there.then_some((usize::from(entry.word), word.len()))
        })
    }
}

/// Stands for the fourth byte of a keyword of three.
const OPEN_END: u32 = 0xff00_0000;

/// Returns the first bytes in lower case, as far as ASCII letters go.
#[inline]
fn beginning(bytes: &[u8]) -> u32 {
    let mut first = [0xff; BEGINNING];
    match bytes.first_chunk() {
        Some(chunk) => first = *chunk,
        None => first.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
    }
    u32::from_le_bytes(first) | CASE
}

#[inline]
fn hash(beginning: u32) -> usize {
    (beginning.wrapping_mul(0x9e37_79b1) >> (u32::BITS - BITS)) as usize
}

impl Buckets {
    fn new(mut entries: Vec<Entry>) -> Self {
        entries.sort_by_key(|entry| hash(entry.beginning));
        let first = |at: usize| entries.partition_point(|entry| hash(entry.beginning) < at) as u16;
        Self { starts: (0..=1 << BITS).map(first).collect(), entries }
    }

    /// Returns the entries with this beginning.
    #[inline]
    fn of(&self, beginning: u32) -> &[Entry] {
        let at = hash(beginning);
        let bounds = (self.starts.get(at), self.starts.get(at + 1));
        let (Some(from), Some(to)) = bounds else { return &[] };
        let bucket = self.entries.get(usize::from(*from)..usize::from(*to)).unwrap_or_default();
        match bucket.iter().any(|entry| entry.beginning == beginning) {
            true => bucket,
            false => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_are_found_in_any_case_where_they_begin() {
        let words = ["key", "keys", "token", "-us", "passphrase"];
        let index = KeywordIndex::new(words.into_iter());
        let at = |text: &str, from: usize| {
            let mut found: Vec<&str> = index.at(text.as_bytes(), from).map(|(word, _)| words[word]).collect();
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
