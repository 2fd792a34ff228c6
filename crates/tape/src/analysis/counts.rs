//! Counts how often each value occurs, in bounded memory.

use std::collections::BTreeMap;

/// Most values that are kept apart.
const MAX_VALUES: usize = 10_000;
/// Longest name that is kept, in characters.
const MAX_NAME: usize = 200;

/// Some values with their counts, and how often all others were there.
pub type Most<K> = (Vec<(K, u64)>, u64);

/// How often each value was there.
#[derive(Clone, Debug)]
pub struct Counts<K> {
    by_value: BTreeMap<K, u64>,
    others: u64,
}

impl<K> Default for Counts<K> {
    fn default() -> Self {
        Self { by_value: BTreeMap::new(), others: 0 }
    }
}

impl<K: Ord + Clone> Counts<K> {
    /// One more of this value.
    pub fn add(&mut self, value: K) {
        let room = self.by_value.len() < MAX_VALUES;
        match self.by_value.get_mut(&value) {
            Some(count) => *count += 1,
            None if room => drop(self.by_value.insert(value, 1)),
            None => self.others += 1,
        }
    }

    /// The most frequent ones, and how often all others were there.
    #[must_use]
    pub fn most(&self, wanted: usize) -> Most<K> {
        let mut all: Vec<(&K, u64)> = self.by_value.iter().map(|(value, count)| (value, *count)).collect();
        // By value where the counts are equal, which is the order they come in.
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let rest = all.iter().skip(wanted).map(|(_, count)| count).sum::<u64>();
        (all.into_iter().take(wanted).map(|(value, count)| (value.clone(), count)).collect(), rest + self.others)
    }
}

/// A name as it is counted: a long one by its beginning.
pub(super) fn name(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_come_first_and_what_is_too_much_is_counted_together() {
        let mut counts = Counts::default();
        for value in ["b", "a", "c", "a", "b", "a"] {
            counts.add(value);
        }
        assert_eq!(counts.most(2), (vec![("a", 3), ("b", 2)], 1));
        let mut many = Counts::default();
        (0..MAX_VALUES + 5).for_each(|number| many.add(number));
        assert_eq!(many.most(MAX_VALUES).1, 5);
    }
}
