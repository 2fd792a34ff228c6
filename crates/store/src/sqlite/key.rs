//! The key of an entry: the number of its tape, and its place in it. Order by key is the order of the tape.

use crate::limits::SEQ_BITS;

/// Entries are indexed together in groups of this many places, so that what they share is kept once.
const GROUP_BITS: u32 = 5;

/// The last place that a tape can have.
pub const MAX_SEQ: u64 = (1 << SEQ_BITS) - 1;

/// The last tape that a store can have.
pub const MAX_TAPE: i64 = i64::MAX >> SEQ_BITS;

/// The key of an entry.
pub fn key(tape: i64, seq: u64) -> i64 {
    tape << SEQ_BITS | seq.min(MAX_SEQ) as i64
}

/// The place of a key.
pub fn seq_of(key: i64) -> u64 {
    key as u64 & MAX_SEQ
}

/// The group that a key belongs to.
pub fn group(key: i64) -> i64 {
    key >> GROUP_BITS
}

/// The first and last key of a group.
pub fn keys_of(group: i64) -> (i64, i64) {
    let first = group << GROUP_BITS;
    (first, first | ((1 << GROUP_BITS) - 1))
}

/// The last place up to which all groups are complete.
pub fn complete(last_seq: u64) -> u64 {
    ((last_seq + 1) >> GROUP_BITS << GROUP_BITS).saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_tape_and_place_and_groups_stay_within_a_tape() {
        assert!(key(1, MAX_SEQ) < key(2, 0));
        assert_ne!(group(key(1, MAX_SEQ)), group(key(2, 0)));
        assert_eq!(seq_of(key(7, 12)), 12);
        assert_eq!(keys_of(group(key(7, 33))), (key(7, 32), key(7, 63)));
        assert_eq!([0, 30, 31, 32, 63].map(complete), [0, 0, 31, 31, 63]);
        assert!(key(MAX_TAPE, MAX_SEQ) > 0);
    }
}
