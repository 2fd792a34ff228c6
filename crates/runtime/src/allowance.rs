//! Rate limit per second.

use signalbox_engine::lock::LockResultExt;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Rate limiter that allows a fixed number of events in each second.
#[derive(Debug)]
pub struct PerSecond {
    each: u32,
    state: Mutex<Option<(Instant, u32)>>,
}

impl PerSecond {
    /// Creates a limiter that allows `each` events per second.
    #[must_use]
    pub fn new(each: u32) -> Self {
        Self { each, state: Mutex::default() }
    }

    /// Counts an event. Returns false if the limit for this second is exceeded.
    pub fn take(&self, now: Instant) -> bool {
        let mut state = self.state.lock().unpoisoned();
        let (since, taken) = state.get_or_insert((now, 0));
        if now.saturating_duration_since(*since) >= Duration::from_secs(1) {
            (*since, *taken) = (now, 0);
        }
        *taken += 1;
        *taken <= self.each
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_in_a_second_and_as_many_in_the_next() {
        let (allowance, start) = (PerSecond::new(2), Instant::now());
        let takes = |after: u64| allowance.take(start + Duration::from_millis(after));
        assert_eq!([takes(0), takes(10), takes(20), takes(999)], [true, true, false, false]);
        assert_eq!([takes(1_000), takes(1_001), takes(1_002)], [true, true, false]);
    }
}
