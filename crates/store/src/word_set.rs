//! The distinct words of a text.

use crate::short_word::{MAX_SHORT, ShortWord};
use crate::text::Word;
use foldhash::HashSet;

/// Number of recent words that are looked up first. Most words of a text are among a few hundred.
const RECENT: usize = 1024;

/// Set of words, of which most are compared as numbers.
#[derive(Debug)]
pub struct WordSet {
    /// Recent short words, each at the place of its hash.
    recent: Box<[u128]>,
    short: HashSet<u128>,
    long: HashSet<Box<str>>,
}

impl Default for WordSet {
    fn default() -> Self {
        Self { recent: vec![0; RECENT].into(), short: HashSet::default(), long: HashSet::default() }
    }
}

impl WordSet {
    /// Adds a word, which must not contain a NUL. Returns false if the set has it already.
    pub fn insert(&mut self, word: Word<'_>) -> bool {
        match word {
            Word::Short(word, _) => self.insert_short(word),
            Word::Text(text) => {
                let mut bytes = [0; MAX_SHORT];
                if let Some(place) = bytes.get_mut(..text.len()) {
                    place.copy_from_slice(text.as_bytes());
                    return self.insert_short(ShortWord(u128::from_le_bytes(bytes)));
                }
                !self.long.contains(text) && self.long.insert(text.into())
            }
        }
    }

    fn insert_short(&mut self, ShortWord(word): ShortWord) -> bool {
        let recent = &mut self.recent[place(word)];
        if *recent == word {
            return false;
        }
        *recent = word;
        self.short.insert(word)
    }

    pub fn clear(&mut self) {
        self.recent.fill(0);
        self.short.clear();
        self.long.clear();
    }
}

/// Returns the place of a word among the recent ones.
fn place(word: u128) -> usize {
    // A multiplication spreads the letters over the high bits.
    let mixed = (word as u64 ^ (word >> 64) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - RECENT.ilog2())) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::words_of;

    #[test]
    fn a_word_is_added_once_however_it_is_written() {
        let mut set = WordSet::default();
        let long = "donaudampfschifffahrt";
        let text = format!("Fox fox f\\u006fx Gr\u{fc}n gr\u{fc}n {long} {} fox ", long.to_uppercase());
        let mut words = Vec::new();
        words_of(format!("\"{text}\"").as_bytes(), |word| {
            if set.insert(word) {
                words.push(word.with(str::to_owned));
            }
        });
        assert_eq!(words, ["fox", "gr\u{fc}n", long]);
        set.clear();
        assert!(set.insert(Word::Text("fox")));
    }
}
