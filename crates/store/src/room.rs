//! Tells a writer when the store grows beyond its limit.

use crate::sums::Sums;
use crate::tape_row::ENTRY_BYTES;

/// How much is written before somebody looks again: a part of all, within these bounds.
const PARTS: u64 = 64;
const MIN_STEP: u64 = 64 << 10;
const MAX_STEP: u64 = 8 << 20;

/// Tells a writer when to look whether the store is too large, and what it may keep then.
#[derive(Clone, Debug)]
pub struct Room {
    most: u64,
    written: u64,
}

impl Room {
    /// Room for this many bytes.
    pub fn new(most: u64) -> Self {
        Self { most, written: 0 }
    }

    fn step(&self) -> u64 {
        (self.most / PARTS).clamp(MIN_STEP, MAX_STEP)
    }

    /// Adds a batch. True if it is time to look.
    pub fn add(&mut self, sums: &Sums) -> bool {
        let kept = sums.kept.saturating_add(sums.aside) as u64;
        self.written = self.written.saturating_add(kept + ENTRY_BYTES * sums.entries as u64);
        let due = self.written >= self.step();
        if due {
            self.written = 0;
        }
        due
    }

    /// What is to be left of this many bytes; none if they are few enough. There is always room for what is written until
    /// somebody looks again.
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
        let mut room = Room::new(64 << 20);
        let batch = Sums { kept: 300 << 10, aside: 100 << 10, entries: 100, ..Sums::default() };
        assert_eq!([0; 3].map(|_| room.add(&batch)), [false, false, true]);
        assert_eq!([0; 3].map(|_| room.add(&batch)), [false, false, true]);
        assert_eq!((room.left(63 << 20), room.left((63 << 20) + 1)), (None, Some(62 << 20)));
    }
}
