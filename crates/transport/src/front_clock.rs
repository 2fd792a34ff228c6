//! The clock of a front, which advances twice a second. One timer per request would cost more than all other
//! bookkeeping of a connection.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Time between two ticks.
pub const TICK: Duration = Duration::from_millis(500);

/// Coarse clock of a front.
#[derive(Debug)]
pub(crate) struct FrontClock {
    started: Instant,
    ticks: AtomicU32,
}

impl Default for FrontClock {
    fn default() -> Self {
        Self { started: Instant::now(), ticks: AtomicU32::new(0) }
    }
}

impl FrontClock {
    /// Returns the tick of the last advance.
    pub fn now(&self) -> u32 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Advances to the current time and returns the tick.
    pub fn advance(&self) -> u32 {
        let ticks = u32::try_from(self.started.elapsed().as_millis() / TICK.as_millis()).unwrap_or(u32::MAX);
        self.ticks.store(ticks, Ordering::Relaxed);
        ticks
    }
}

/// Returns a number of ticks that is never shorter than `time`.
pub(crate) fn ticks(time: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(TICK.as_millis())).unwrap_or(u32::MAX).saturating_add(1)
}

/// Returns `true` if at least `most` has passed since a tick.
pub(crate) fn over(since: u32, now: u32, most: Duration) -> bool {
    now.saturating_sub(since) >= ticks(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_never_early() {
        assert!(ticks(Duration::from_secs(5)) * 500 > 5000);
        assert!(!over(7, 3, Duration::ZERO), "noted after the clock was read");
    }
}
