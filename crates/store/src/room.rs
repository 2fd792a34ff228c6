//! Tracks when a writer has to check the store's size against its limit.

use crate::sums::Sums;
use crate::tape_row::ENTRY_BYTES;

/// Fraction of the limit that is written between checks, and the bounds of that amount.
const PARTS: u64 = 64;
const MIN_STEP: u64 = 64 << 10;
const MAX_STEP: u64 = 8 << 20;

/// Size limit of a store, as its writer tracks it.
#[derive(Clone, Debug)]
pub struct SizeLimit {
    most: u64,
    written: u64,
}

impl SizeLimit {
    /// Creates a limit of `most` bytes.
    pub fn new(most: u64) -> Self {
        Self { most, written: 0 }
    }

    fn step(&self) -> u64 {
        (self.most / PARTS).clamp(MIN_STEP, MAX_STEP)
    }

    /// Counts a batch. Returns true if it is time to check the size.
    pub fn add(&mut self, sums: &Sums) -> bool {
        let kept = sums.kept.saturating_add(sums.aside) as u64;
        self.written = self.written.saturating_add(kept + ENTRY_BYTES * sums.entries as u64);
        let due = self.written >= self.step();
        if due {
            self.written = 0;
        }
        due
    }

    /// Returns the size to shrink to from `used` bytes; `None` if the store is small enough. Leaves space for
    /// everything written before the next check.
    pub fn left(&self, used: u64) -> Option<u64> {
        let free = self.step();
        (used.saturating_add(free) > self.most).then(|| self.most.saturating_sub(2 * free))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_the_next_step_before_it_is_written() {
        let mut room = SizeLimit::new(64 << 20);
        let batch = Sums { kept: 300 << 10, aside: 100 << 10, entries: 100, ..Sums::default() };
        assert_eq!([0; 3].map(|_| room.add(&batch)), [false, false, true]);
        assert_eq!([0; 3].map(|_| room.add(&batch)), [false, false, true]);
        assert_eq!((room.left(63 << 20), room.left((63 << 20) + 1)), (None, Some(62 << 20)));
    }
}
