//! Token bucket with an explicit clock.

use std::time::Duration;

use tokio::time::Instant;

/// Token bucket that admits `burst` requests at once and then one every `interval`.
///
/// Stores only the time at which the bucket is full again, which avoids fractions and a timer.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    interval: Duration,
    burst: u32,
    full_at: Option<Instant>,
}

impl Bucket {
    /// Creates a full bucket. A burst of zero counts as one, so that requests can pass.
    pub(super) fn new(per_minute: u32, burst: u32) -> Bucket {
        Bucket { interval: Duration::from_secs(60) / per_minute.max(1), burst: burst.max(1), full_at: None }
    }

    /// Takes a token, or returns the time until the next one.
    pub(super) fn take(&mut self, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.map_or(now, |at| at.max(now));
        let missing = full_at.duration_since(now);
        let slack = self.interval * (self.burst - 1);
        if missing > slack {
            return Err(missing - slack);
        }
        self.full_at = Some(full_at + self.interval);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves GO-5.
    #[test]
    fn ten_at_once_then_two_a_second() {
        let mut bucket = Bucket::new(120, 10);
        let start = Instant::now();
        for _ in 0..10 {
            assert_eq!(bucket.take(start), Ok(()));
        }
        assert_eq!(bucket.take(start), Err(Duration::from_millis(500)));
        assert_eq!(bucket.take(start + Duration::from_millis(499)), Err(Duration::from_millis(1)));
        assert_eq!(bucket.take(start + Duration::from_millis(500)), Ok(()));
        assert!(bucket.take(start + Duration::from_millis(500)).is_err());
    }

    /// Proves GO-5.
    #[test]
    fn at_most_120_in_a_minute_after_the_burst() {
        let mut bucket = Bucket::new(120, 10);
        let start = Instant::now();
        let admitted = (0..60_000).filter(|ms| bucket.take(start + Duration::from_millis(*ms)).is_ok()).count();
        assert_eq!(admitted, 10 + 119);
        let later = start + Duration::from_secs(3600);
        assert_eq!((0..50).filter(|_| bucket.take(later).is_ok()).count(), 10, "idling saves up no more");
    }
}
