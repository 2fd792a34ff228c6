//! The clock of a front, which moves twice a second. A timer per request would cost more than all else that a
//! connection notes of itself.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// The time between two ticks.
pub const TICK: Duration = Duration::from_millis(500);

/// The clock of a front.
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
    /// The tick at which the clock was last moved.
    pub fn now(&self) -> u32 {
        self.ticks.load(Ordering::Relaxed)
    }

    /// Reads the real time.
    pub fn advance(&self) -> u32 {
        let ticks = u32::try_from(self.started.elapsed().as_millis() / TICK.as_millis()).unwrap_or(u32::MAX);
        self.ticks.store(ticks, Ordering::Relaxed);
        ticks
    }
}

/// So many ticks are surely no less than this time.
pub(crate) fn ticks(time: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(TICK.as_millis())).unwrap_or(u32::MAX).saturating_add(1)
}

/// True if what began then has taken longer than this.
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
