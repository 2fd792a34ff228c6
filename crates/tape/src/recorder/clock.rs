//! The one clock of a tape.

use signalbox_wire::timestamp;
use std::time::{Instant, SystemTime};

/// One moment on the monotonic clock and on the wall clock, taken once per tape.
#[derive(Copy, Clone, Debug)]
pub struct Anchor {
    /// The moment on the monotonic clock.
    pub instant: Instant,
    /// The same moment on the wall clock, in nanoseconds since 1970.
    pub unix: u64,
}

impl Anchor {
    /// Takes the current moment.
    #[must_use]
    pub fn now() -> Self {
        Self { instant: Instant::now(), unix: timestamp::nanos_of(SystemTime::now()) }
    }
}

/// Converts instants to the times of entries. Whatever happens to the wall clock, and in whatever order threads report
/// facts, no entry is earlier than the one before it.
#[derive(Debug)]
pub(crate) struct Clock {
    anchor: Anchor,
    last: u64,
}

impl Clock {
    pub(crate) fn new(anchor: Anchor) -> Self {
        Self { anchor, last: anchor.unix }
    }

    /// Returns the time of an event at `at`, at least that of the latest entry.
    pub(crate) fn at(&mut self, at: Instant) -> u64 {
        self.last = self.last.max(self.time_of(at));
        self.last
    }

    /// Converts an instant to nanoseconds since 1970, which may be before the latest entry.
    pub(crate) fn time_of(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.anchor.instant).as_nanos();
        self.anchor.unix.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// Returns the time of the latest entry.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    /// Proves S-29.
    #[test]
    fn time_never_goes_backwards_within_a_tape() {
        let start = Instant::now();
        let mut clock = Clock::new(Anchor { instant: start, unix: 1_000 });
        assert_eq!(clock.at(start + Duration::from_nanos(5)), 1_005);
        assert_eq!(clock.at(start + Duration::from_nanos(3)), 1_005, "a fact of another thread came late");
        assert_eq!(clock.at(start + Duration::from_nanos(6)), 1_006);
        assert_eq!(Clock::new(Anchor { instant: start + Duration::from_secs(9), unix: 7 }).at(start), 7);
    }
}
