//! Counts how often each value occurs, in bounded memory.

use std::collections::BTreeMap;

/// Maximum number of values that are counted separately.
const MAX_VALUES: usize = 10_000;
/// Maximum length of a name, in characters.
const MAX_NAME: usize = 200;

/// Most frequent values with their counts, and the total count of all others.
pub type Most<K> = (Vec<(K, u64)>, u64);

/// Number of occurrences of each value.
#[derive(Clone, Debug)]
pub struct ValueCounts<K> {
    by_value: BTreeMap<K, u64>,
    others: u64,
}

impl<K> Default for ValueCounts<K> {
    fn default() -> Self {
        Self { by_value: BTreeMap::new(), others: 0 }
    }
}

impl<K: Ord + Clone> ValueCounts<K> {
    /// Counts one occurrence of `value`.
    pub fn add(&mut self, value: K) {
        let room = self.by_value.len() < MAX_VALUES;
        match self.by_value.get_mut(&value) {
            Some(count) => *count += 1,
            None if room => drop(self.by_value.insert(value, 1)),
            None => self.others += 1,
        }
    }

    /// Returns the `wanted` most frequent values, and the total count of all others.
    #[must_use]
    pub fn most(&self, wanted: usize) -> Most<K> {
        let mut all: Vec<(&K, u64)> = self.by_value.iter().map(|(value, count)| (value, *count)).collect();
        // The sort is stable and the map is ordered, so values of equal count stay in their own order.
        all.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let rest = all.iter().skip(wanted).map(|(_, count)| count).sum::<u64>();
        (all.into_iter().take(wanted).map(|(value, count)| (value.clone(), count)).collect(), rest + self.others)
    }
}

/// Shortens a name to the maximum length under which it is counted.
pub(super) fn name(text: &str) -> String {
    text.chars().take(MAX_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_come_first_and_what_is_too_much_is_counted_together() {
        let mut counts = ValueCounts::default();
        for value in ["b", "a", "c", "a", "b", "a"] {
            counts.add(value);
        }
        assert_eq!(counts.most(2), (vec![("a", 3), ("b", 2)], 1));
        let mut many = ValueCounts::default();
        (0..MAX_VALUES + 5).for_each(|number| many.add(number));
        assert_eq!(many.most(MAX_VALUES).1, 5);
    }
}
