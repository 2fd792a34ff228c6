//! Selects the grams of a text that are recorded and looked up.

use super::gram_hasher::GramHasher;

/// Scan of one text.
///
/// A gram is selected if the smallest hash of its inner runs is the first or the last one (a closed syncmer). This
/// depends on nothing but the gram, so that both of two texts select the same ones, and there is at least one among any
/// `spread` successive grams.
pub(super) struct GramScan {
    hasher: GramHasher,
    /// Latest characters, as many as an inner run has.
    characters: Vec<u32>,
    /// Hashes of the latest inner runs, as many as a gram has.
    hashes: Vec<u64>,
    hash: u64,
    /// Number of characters so far.
    count: usize,
    oldest_character: usize,
    oldest_hash: usize,
}

impl GramScan {
    pub(super) fn new(hasher: GramHasher) -> Self {
        Self {
            hasher,
            characters: vec![0; hasher.inner],
            hashes: vec![0; hasher.spread + 1],
            hash: 0,
            count: 0,
            oldest_character: 0,
            oldest_hash: 0,
        }
    }

    /// Adds the next character. Returns the hash of the gram that ends with it, if that gram is selected.
    #[inline]
    pub(super) fn push(&mut self, character: char) -> Option<u64> {
        let slot = self.characters.get_mut(self.oldest_character)?;
        let oldest = std::mem::replace(slot, u32::from(character));
        self.oldest_character = next_index(self.oldest_character, self.hasher.inner);
        self.hash = self.hasher.advance(self.hash, u32::from(character), oldest);
        self.count += 1;
        *self.hashes.get_mut(self.oldest_hash)? = self.hash;
        self.oldest_hash = next_index(self.oldest_hash, self.hasher.spread + 1);
        if self.count < self.hasher.gram() {
            return None;
        }
        let first = *self.hashes.get(self.oldest_hash)?;
        let smallest = self.hashes.iter().fold(u64::MAX, |smallest, hash| smallest.min(*hash));
        (smallest == first || smallest == self.hash).then(|| self.hasher.join(first, self.hash))
    }

    /// Returns the number of characters so far.
    pub(super) const fn count(&self) -> usize {
        self.count
    }
}

const fn next_index(index: usize, length: usize) -> usize {
    if index + 1 == length { 0 } else { index + 1 }
}

#[cfg(test)]
mod tests {
    use super::super::{FlowKey, FlowLimits};
    use super::*;
    use proptest::prelude::*;

    /// Places and hashes of the selected grams.
    fn select(hasher: GramHasher, text: &str) -> Vec<(usize, u64)> {
        let mut scan = GramScan::new(hasher);
        text.chars().filter_map(|character| scan.push(character).map(|hash| (scan.count(), hash))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_run_of_the_minimum_length_holds_a_selected_gram(
            key in any::<[u8; 16]>(), min_chars in 8_usize..80, text in "[ab]{80,300}|[a-z ]{80,300}|.{80,200}"
        ) {
            let hasher = GramHasher::new(FlowKey(key), &FlowLimits { min_chars, ..FlowLimits::default() });
            let characters: Vec<char> = text.chars().collect();
            let whole = select(hasher, &text);
            for (start, window) in characters.windows(min_chars).enumerate() {
                let run: String = window.iter().collect();
                let selected = select(hasher, &run);
                prop_assert!(!selected.is_empty(), "{run:?}");
                for (end, hash) in selected {
                    prop_assert!(whole.contains(&(start + end, hash)));
                }
            }
        }
    }

    #[test]
    fn a_minority_of_the_grams_is_selected() {
        let hasher = GramHasher::new(FlowKey([7; 16]), &FlowLimits::default());
        let text: String = (0..4_000_u32).map(|number| format!("{} ", number.wrapping_mul(2_654_435_761))).collect();
        let share = select(hasher, &text).len() * 100 / text.len();
        assert!((36..=44).contains(&share), "{share} percent");
    }
}
