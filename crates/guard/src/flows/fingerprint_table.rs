//! Bounded table of fingerprints, each with the record it is from.

use std::collections::VecDeque;

/// Number that stands for no entry and no record.
const NONE: u32 = u32::MAX;
/// Number of buckets of an empty table.
const MIN_BUCKETS: usize = 64;

struct FingerprintEntry {
    fingerprint: u64,
    /// Record that the fingerprint is from, or [`NONE`] if a later entry took its place.
    record: u32,
    /// Next older entry of the bucket.
    older: u32,
}

/// Table of fingerprints that forgets the oldest ones.
///
/// Entries are a queue, and each bucket is a list from its newest to its oldest entry. Entries leave the queue in the
/// order of their numbers, so that a list ends where a number is no longer in the queue: nothing has to be unlinked.
pub(super) struct FingerprintTable {
    entries: VecDeque<FingerprintEntry>,
    /// Number of the first entry of the queue.
    first: u32,
    /// Newest entry of each bucket. The number of buckets is a power of two.
    buckets: Vec<u32>,
    capacity: usize,
}

impl FingerprintTable {
    /// Creates a table that uses at most this much memory, from 1 KiB.
    pub(super) fn new(max_bytes: usize) -> Self {
        let bytes_each = size_of::<FingerprintEntry>() + size_of::<u32>();
        let capacity = (max_bytes.max(1024) - MIN_BUCKETS * size_of::<u32>()) / bytes_each;
        Self { entries: VecDeque::new(), first: 0, buckets: vec![NONE; MIN_BUCKETS], capacity }
    }

    /// Adds a fingerprint of a record and supersedes an entry for it from an equivalent record. Returns the record that
    /// lost a fingerprint because the table is full.
    pub(super) fn insert(&mut self, fingerprint: u64, record: u32, is_equivalent: impl Fn(u32) -> bool) -> Option<u32> {
        let evicted = if self.entries.len() >= self.capacity { self.pop() } else { None };
        self.make_space();
        self.supersede(fingerprint, is_equivalent);
        let number = self.first + self.entries.len() as u32;
        let bucket = self.bucket(fingerprint);
        if let Some(newest) = self.buckets.get_mut(bucket) {
            let older = std::mem::replace(newest, number);
            self.entries.push_back(FingerprintEntry { fingerprint, record, older });
        }
        evicted
    }

    /// Returns the record of the newest entry for a fingerprint that is accepted.
    pub(super) fn find(&self, fingerprint: u64, accept: impl Fn(u32) -> bool) -> Option<u32> {
        let mut number = *self.buckets.get(self.bucket(fingerprint))?;
        while let Some(entry) = self.entry(number) {
            if entry.fingerprint == fingerprint && entry.record != NONE && accept(entry.record) {
                return Some(entry.record);
            }
            number = entry.older;
        }
        None
    }

    /// Forgets the entries of records before this one.
    pub(super) fn forget_before(&mut self, record: u32) {
        while self.entries.front().is_some_and(|entry| entry.record == NONE || entry.record < record) {
            self.pop();
        }
        if self.entries.is_empty() {
            self.entries = VecDeque::new();
            self.buckets = vec![NONE; MIN_BUCKETS];
            self.first = 0;
        }
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<FingerprintEntry>() + self.buckets.capacity() * size_of::<u32>()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    fn entry(&self, number: u32) -> Option<&FingerprintEntry> {
        let index = number.checked_sub(self.first)?;
        self.entries.get(index as usize)
    }

    const fn bucket(&self, fingerprint: u64) -> usize {
        fingerprint as usize & (self.buckets.len() - 1)
    }

    /// Removes the oldest entry and returns its record, unless it was superseded.
    fn pop(&mut self) -> Option<u32> {
        let entry = self.entries.pop_front()?;
        self.first += 1;
        (entry.record != NONE).then_some(entry.record)
    }

    /// Takes the entry for this fingerprint from an equivalent record out of its bucket. A source that returns the same
    /// text again and again would make the lists long otherwise.
    fn supersede(&mut self, fingerprint: u64, is_equivalent: impl Fn(u32) -> bool) {
        let bucket = self.bucket(fingerprint);
        let mut number = self.buckets.get(bucket).copied().unwrap_or(NONE);
        let mut newer = NONE;
        while let Some(entry) = self.entry(number) {
            let older = entry.older;
            if entry.fingerprint != fingerprint || !is_equivalent(entry.record) {
                (newer, number) = (number, older);
                continue;
            }
            self.set_record(number, NONE);
            match self.index(newer) {
                Some(newer) => {
                    if let Some(entry) = self.entries.get_mut(newer) {
                        entry.older = older;
                    }
                }
                None => {
                    if let Some(newest) = self.buckets.get_mut(bucket) {
                        *newest = older;
                    }
                }
            }
            return;
        }
    }

    fn index(&self, number: u32) -> Option<usize> {
        let index = number.checked_sub(self.first)? as usize;
        (number != NONE && index < self.entries.len()).then_some(index)
    }

    fn set_record(&mut self, number: u32, record: u32) {
        if let Some(entry) = self.index(number).and_then(|index| self.entries.get_mut(index)) {
            entry.record = record;
        }
    }

    /// Grows the queue and the buckets within the capacity, so that there is space for one more entry.
    fn make_space(&mut self) {
        let length = self.entries.len();
        if length == self.entries.capacity() {
            let more = length.max(MIN_BUCKETS).min(self.capacity.saturating_sub(length)).max(1);
            self.entries.reserve_exact(more);
        }
        let doubled = self.buckets.len() * 2;
        let is_full = length >= doubled && doubled <= self.capacity;
        let is_out_of_numbers = self.first as usize + length + 1 >= NONE as usize;
        if is_full || is_out_of_numbers {
            self.rebuild(if is_full { doubled } else { self.buckets.len() });
        }
    }

    /// Numbers the entries from zero and links them anew.
    fn rebuild(&mut self, buckets: usize) {
        self.first = 0;
        self.buckets = vec![NONE; buckets];
        for (number, entry) in (0..).zip(&mut self.entries) {
            if entry.record == NONE {
                continue;
            }
            let bucket = entry.fingerprint as usize & (buckets - 1);
            if let Some(newest) = self.buckets.get_mut(bucket) {
                entry.older = std::mem::replace(newest, number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_newest_accepted_record_is_found() {
        let mut table = FingerprintTable::new(4096);
        for record in 0..6 {
            assert_eq!(table.insert(7, record, |_| false), None);
        }
        table.insert(7 + 64, 9, |_| false);
        assert_eq!(table.find(7, |_| true), Some(5));
        assert_eq!(table.find(7, |record| record < 3), Some(2));
        assert_eq!(table.find(8, |_| true), None);
        table.forget_before(6);
        assert_eq!((table.find(7, |_| true), table.find(7 + 64, |_| true)), (None, Some(9)));
    }

    #[test]
    fn numbers_start_again_before_they_run_out() {
        let mut table = FingerprintTable::new(2048);
        table.first = NONE - 70;
        for value in 0..200 {
            table.insert(value, value as u32, |_| false);
        }
        let kept = (0..200).filter(|value| table.find(*value, |_| true) == Some(*value as u32)).count();
        assert_eq!(kept, table.capacity);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_table_agrees_with_a_list(
            steps in proptest::collection::vec((0_u64..40, 0_u32..4, any::<bool>()), 1..400),
            max_bytes in 1024_usize..6000
        ) {
            let mut table = FingerprintTable::new(max_bytes);
            let mut list: Vec<(u64, u32)> = Vec::new();
            for (at, (fingerprint, class, is_forgetting)) in steps.into_iter().enumerate() {
                // Records are equivalent if they agree modulo four.
                let record = at as u32 * 4 + class;
                table.insert(fingerprint * 31, record, |other| other % 4 == class);
                list.push((fingerprint * 31, record));
                if is_forgetting && at % 50 == 0 {
                    table.forget_before(record / 2);
                    list.retain(|(_, other)| *other >= record / 2);
                }
                list = list.split_off(list.len().saturating_sub(table.capacity));
                let wanted = list.iter().rev().find(|(other, record)| *other == fingerprint * 31 && record % 2 == 0);
                let found = table.find(fingerprint * 31, |record| record % 2 == 0);
                prop_assert_eq!(found, wanted.map(|(_, record)| *record));
                prop_assert!(table.bytes() <= max_bytes.max(1024) && table.len() <= table.capacity);
            }
        }
    }
}
