//! A share that falls as traffic rises, so that the number of exchanges kept per second stays near a target.

/// Duration of one measurement of traffic, in nanoseconds.
const WINDOW: u64 = 1_000_000_000;

/// Measured traffic, from which the share to keep follows.
#[derive(Clone, Debug)]
pub(crate) struct Adaptive {
    /// Number of exchanges to keep per second.
    target: f64,
    /// Recent number of exchanges per second, in which the latest second counts half.
    rate: f64,
    since: u64,
    seen: u64,
}

impl Adaptive {
    pub(crate) fn new(target: f64) -> Self {
        Self { target, rate: 0.0, since: 0, seen: 0 }
    }

    /// Counts an exchange that begins, and returns the share by which it is kept. Within a second the share falls with
    /// every exchange beyond the target, so that a sudden burst takes effect before the second is over.
    pub(crate) fn next(&mut self, at: u64) -> f64 {
        let passed = at.saturating_sub(self.since);
        if passed >= WINDOW {
            let measured = self.seen as f64 * WINDOW as f64 / passed as f64;
            // After a long pause the earlier rate is meaningless.
            self.rate = if passed >= 2 * WINDOW { measured } else { (self.rate + measured) / 2.0 };
            (self.since, self.seen) = (at, 0);
        }
        self.seen += 1;
        self.share()
    }

    /// Returns the current share.
    pub(crate) fn share(&self) -> f64 {
        let rate = self.rate.max(self.seen as f64);
        if rate <= self.target { 1.0 } else { self.target / rate }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shares of every exchange of some seconds with so many each, summed up by second.
    fn kept(target: f64, rates: &[u64]) -> Vec<f64> {
        let mut adaptive = Adaptive::new(target);
        let second = |(number, rate): (usize, &u64)| {
            let start = 5 * WINDOW + number as u64 * WINDOW;
            (0..*rate).map(|call| adaptive.next(start + call * (WINDOW / rate))).sum()
        };
        rates.iter().enumerate().map(second).collect()
    }

    /// Proves SO-9.
    #[test]
    fn the_share_falls_as_traffic_rises_and_comes_back() {
        let kept =
            kept(50.0, &[20, 20, 5_000, 5_000, 5_000, 5_000, 5_000, 5_000, 30, 30, 30, 30, 30, 30, 30, 30, 30, 30]);
        assert_eq!(kept[..2], [20.0, 20.0], "all of what is less than wanted");
        assert!(kept[2] < 300.0, "a crowd is noticed at once: {kept:?}");
        assert!(kept[5..8].iter().all(|kept| (45.0..100.0).contains(kept)), "{kept:?}");
        assert!(kept.last().is_some_and(|kept| *kept > 29.0), "{kept:?}");
    }

    /// Proves SO-9.
    #[test]
    fn after_a_pause_everything_is_kept_again() {
        let mut adaptive = Adaptive::new(1.0);
        for call in 0..5_000 {
            adaptive.next(WINDOW * 9 + call);
        }
        adaptive.next(WINDOW * 10 + 1);
        assert!(adaptive.share() < 0.01);
        assert!(adaptive.next(WINDOW * 100_000) > 0.99);
    }
}
