//! A bound on how often a child may make us write a log line.

use std::time::Duration;
use tokio::time::Instant;

/// At most so many in one window of time; the rest is counted.
#[derive(Debug)]
pub(super) struct Allowance {
    most: u32,
    window: Duration,
    since: Instant,
    used: u32,
    missed: u64,
}

impl Allowance {
    pub(super) fn new(most: u32, window: Duration, now: Instant) -> Self {
        Self { most, window, since: now, used: 0, missed: 0 }
    }

    /// Asks for one more. If it is granted, says how many were denied since the last one that was.
    pub(super) fn take(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= self.window {
            self.since = now;
            self.used = 0;
        }
        if self.used >= self.most {
            self.missed += 1;
            return None;
        }
        self.used += 1;
        Some(self.missed())
    }

    /// How many were denied since one was granted; starts to count anew.
    pub(super) fn missed(&mut self) -> u64 {
        std::mem::take(&mut self.missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn beyond_the_bound_it_counts_until_the_next_window() {
        let start = Instant::now();
        let second = Duration::from_secs(1);
        let mut allowance = Allowance::new(2, second, start);
        assert_eq!(allowance.take(start), Some(0));
        assert_eq!(allowance.take(start), Some(0));
        assert_eq!(allowance.take(start), None);
        assert_eq!(allowance.take(start + second / 2), None);
        assert_eq!(allowance.take(start + second), Some(2));
        assert_eq!(allowance.take(start + second), Some(0));
        assert_eq!(allowance.take(start + second), None);
        assert_eq!(allowance.missed(), 1);
    }
}
