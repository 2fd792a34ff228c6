//! Bounds on the size and age of a tape, beyond which the next one begins.

use signalbox_engine::record::{Body, Content, Entry};
use std::time::{Duration, Instant};

/// Default time to wait for a moment without calls in flight before the tape ends during calls.
pub const GRACE: Duration = Duration::from_secs(5);
/// Delay before another attempt if the next tape could not be made.
const TRY_AGAIN: Duration = Duration::from_secs(30);
/// Approximate overhead of an entry in bytes.
const ENTRY_BYTES: u64 = 120;
/// Minimum number of bytes of facts that become entries between two checks of the size.
const LEAST_STEP: u64 = 16 << 10;

/// Maximum size and age of a tape before the recorder begins the next one.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct TapeBounds {
    /// Maximum size of its entries in bytes, uncompressed, without those that every tape repeats: backends, rules,
    /// sessions and callers.
    pub max_bytes: Option<u64>,
    /// Maximum time since the first entry that counts toward the size.
    pub max_age: Option<Duration>,
}

impl TapeBounds {
    /// Returns true if a tape lasts until its process ends.
    #[must_use]
    pub fn is_unbounded(&self) -> bool {
        *self == Self::default()
    }
}

/// Meter of the tape that is being written.
#[derive(Debug)]
pub(crate) struct TapeMeter {
    bounds: TapeBounds,
    bytes: u64,
    /// Arrival of the first entries that count.
    first: Option<Instant>,
    /// Time since which the next tape is due.
    due: Option<Instant>,
    /// Earliest time of another attempt.
    not_before: Option<Instant>,
}

impl TapeMeter {
    pub(crate) fn new(bounds: TapeBounds) -> Self {
        Self { bounds, bytes: 0, first: None, due: None, not_before: None }
    }

    /// Adds stored entries to the size of the tape.
    pub(crate) fn add(&mut self, entries: &[Entry], now: Instant) {
        let bytes: u64 = entries.iter().map(weight).sum();
        if bytes > 0 {
            self.first.get_or_insert(now);
        }
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Returns true if the next tape is due. A tape without entries that count continues.
    pub(crate) fn is_due(&mut self, now: Instant) -> bool {
        if self.not_before.is_some_and(|time| now < time) {
            return false;
        }
        let is_large = self.bounds.max_bytes.is_some_and(|most| self.bytes >= most);
        let age = self.first.map(|first| now.saturating_duration_since(first));
        let is_old = age.zip(self.bounds.max_age).is_some_and(|(age, most)| age >= most);
        if is_large || is_old {
            self.due.get_or_insert(now);
        }
        self.due.is_some()
    }

    /// Returns true if the next tape must begin even though calls are in flight.
    pub(crate) fn is_overdue(&self, grace: Duration, now: Instant) -> bool {
        self.due.is_some_and(|due| now.saturating_duration_since(due) >= grace)
    }

    /// Returns the number of bytes of facts that may become entries before the next check of the size, at most `most`.
    pub(crate) fn step(&self, most: usize) -> usize {
        let Some(bound) = self.bounds.max_bytes.filter(|_| self.due.is_none()) else { return most };
        let room = bound.saturating_sub(self.bytes).max(LEAST_STEP);
        usize::try_from(room).map_or(most, |room| room.min(most))
    }

    /// Delays the next attempt.
    pub(crate) fn postpone(&mut self, now: Instant) {
        (self.due, self.not_before) = (None, Some(now + TRY_AGAIN));
    }

    /// Restarts for the next tape.
    pub(crate) fn begin(&mut self) {
        *self = Self::new(self.bounds);
    }
}

/// Returns the approximate size of an entry. Entries that every tape repeats do not count: if they alone exceeded the
/// bound, every tape would end at once.
fn weight(entry: &Entry) -> u64 {
    match &entry.content {
        Content::Message(message) => {
            ENTRY_BYTES
                + match &message.body {
                    Body::Whole(bytes) | Body::Like { middle: bytes, .. } => bytes.len() as u64,
                    Body::Left => 0,
                }
        }
        Content::Backend(_) | Content::Rules(_) | Content::Session(_) | Content::Client(_) => 0,
        Content::Decisions(list) => {
            let told = list
                .iter()
                .map(|one| one.detail.len() + one.inputs.iter().map(|(_, value)| value.len()).sum::<usize>());
            ENTRY_BYTES + told.sum::<usize>() as u64
        }
        _ => ENTRY_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    fn entries(count: usize) -> Vec<Entry> {
        vec![Entry::new(1, 1, "ann".into(), Content::SessionEnded); count]
    }

    /// Proves SO-9.
    #[test]
    fn a_tape_is_due_when_it_is_large_or_old_and_overdue_after_the_grace() {
        let start = Instant::now();
        let meter = |max_bytes, max_age| TapeMeter::new(TapeBounds { max_bytes, max_age });
        let mut large = meter(Some(3 * ENTRY_BYTES), None);
        large.add(&entries(2), start);
        assert!(!large.is_due(start + 1_000 * MINUTE), "age is no bound here");
        large.add(&entries(1), start);
        assert!(large.is_due(start) && !large.is_overdue(GRACE, start + GRACE / 2));
        assert!(large.is_due(start + GRACE) && large.is_overdue(GRACE, start + GRACE));
        large.begin();
        assert!(!large.is_due(start + GRACE) && !large.is_overdue(GRACE, start + 2 * GRACE));
        let mut old = meter(None, Some(MINUTE));
        assert!(!old.is_due(start + 9 * MINUTE), "nothing is on it");
        old.add(&entries(1), start + 10 * MINUTE);
        assert!(!old.is_due(start + 11 * MINUTE - GRACE), "the age counts from the first entry");
        assert!(old.is_due(start + 11 * MINUTE));
        old.postpone(start + 11 * MINUTE);
        assert!(!old.is_due(start + 11 * MINUTE), "the next tape could not be made");
        assert!(old.is_due(start + 12 * MINUTE));
    }

    /// Proves SO-9.
    #[test]
    fn what_every_tape_repeats_does_not_make_it_large() {
        let rules = signalbox_engine::record::RulesEntry { text: "x".repeat(10_000), ..Default::default() };
        let mut meter = TapeMeter::new(TapeBounds { max_bytes: Some(ENTRY_BYTES), max_age: Some(MINUTE) });
        let start = Instant::now();
        meter.add(&[Entry::new(1, 1, "".into(), Content::Rules(rules))], start);
        assert!(!meter.is_due(start + 2 * MINUTE));
    }

    /// Proves SO-9.
    #[test]
    fn the_size_is_looked_at_more_often_toward_the_bound() {
        let mut meter = TapeMeter::new(TapeBounds { max_bytes: Some(1 << 20), max_age: None });
        assert_eq!((meter.step(4 << 20), meter.step(1 << 10)), (1 << 20, 1 << 10));
        let now = Instant::now();
        meter.add(&entries((1 << 20) / ENTRY_BYTES as usize), now);
        assert_eq!(meter.step(4 << 20) as u64, LEAST_STEP);
        meter.add(&entries(1), now);
        assert!(meter.is_due(now));
        assert_eq!(meter.step(4 << 20), 4 << 20, "what is due waits for a moment without calls");
        assert_eq!(TapeMeter::new(TapeBounds::default()).step(7), 7);
    }
}
