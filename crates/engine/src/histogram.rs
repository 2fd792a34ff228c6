//! Histogram of durations in fixed buckets whose width grows with the duration.
//!
//! Every power of two of microseconds is divided into eight buckets, so a quantile has an error of at most 6 % at any
//! size. Counting a duration is one atomic addition.

use crate::percentiles::{start_of, step_of};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number of buckets per power of two, as a power of two itself.
const CUTS: u32 = 3;
/// Longest duration that is distinguished from longer ones: 2^32 µs, more than an hour.
const OCTAVES: usize = 32;
/// Number of buckets in a histogram.
pub const BUCKETS: usize = (OCTAVES - CUTS as usize + 1) << CUTS;
const LONGEST_US: u64 = (1 << OCTAVES) - 1;

/// Bounds shown by `/metrics`, in microseconds: powers of two from 128 µs to 67 s. They are edges of buckets, so that
/// each count below them is exact.
pub const BOUNDS_US: [u64; 20] = {
    let mut bounds = [0; 20];
    let mut place = 0;
    while place < bounds.len() {
        bounds[place] = 1 << (place + 7);
        place += 1;
    }
    bounds
};

/// Counts of durations, which any number of threads may add to.
#[derive(Debug)]
pub struct Histogram([AtomicU64; BUCKETS]);

impl Default for Histogram {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; BUCKETS])
    }
}

impl Histogram {
    /// Counts a duration in its bucket.
    pub fn add(&self, took: Duration) {
        self.0[bucket_of(micros(took))].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn read(&self) -> Durations {
        Durations(self.0.iter().map(|count| count.load(Ordering::Relaxed)).collect())
    }
}

/// Returns whole microseconds, capped at the longest duration that is distinguished.
pub(crate) fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(LONGEST_US).min(LONGEST_US)
}

fn bucket_of(us: u64) -> usize {
    step_of::<CUTS>(us)
}

/// Returns the first duration of a bucket, in microseconds, which is also the exclusive end of the bucket before it.
fn lower_edge(bucket: usize) -> u64 {
    start_of::<CUTS>(bucket)
}

/// Counts of a histogram at one moment, or between two.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Durations(Box<[u64]>);

impl Default for Durations {
    fn default() -> Self {
        Self(vec![0; BUCKETS].into_boxed_slice())
    }
}

impl Durations {
    /// Returns the number of durations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Returns the number of durations below `us` microseconds. Exact at bucket boundaries.
    #[must_use]
    pub fn below(&self, us: u64) -> u64 {
        self.0.iter().enumerate().take_while(|(bucket, _)| lower_edge(*bucket) < us).map(|(_, count)| count).sum()
    }

    /// Returns the quantile of this share, in microseconds; `None` without durations.
    #[must_use]
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let count = self.count();
        // Both are far below 2^53.
        let rank = ((count as f64 * share).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        let held = |count: &u64| {
            seen += count;
            seen >= rank
        };
        self.0.iter().position(held).map(middle)
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            *own += more;
        }
    }

    /// Returns the counts since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self(self.0.iter().zip(&earlier.0).map(|(now, then)| now.saturating_sub(*then)).collect())
    }
}

/// Returns the number whose relative distance to either edge of the bucket is the same.
fn middle(bucket: usize) -> u64 {
    let (low, high) = (lower_edge(bucket), lower_edge(bucket + 1));
    if high - low == 1 { low } else { low + low * (high - low) / (low + high) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_lies_in_its_bucket() {
        let some = (0..5_000).chain((4..32).flat_map(|octave| {
            let edge = 1_u64 << octave;
            [edge - 1, edge, edge + 1, edge + edge / 3, edge + edge / 2]
        }));
        for us in some {
            let bucket = bucket_of(us);
            assert!(lower_edge(bucket) <= us && us < lower_edge(bucket + 1), "{us} in {bucket}");
        }
        assert_eq!(bucket_of(LONGEST_US), BUCKETS - 1);
        assert_eq!(micros(Duration::MAX), LONGEST_US);
    }

    /// Proves S-19.
    #[test]
    fn a_quantile_is_at_most_six_percent_off() {
        for us in (1_u64..300).chain((300..4_000_000_000).step_by(9_999_991)) {
            let histogram = Histogram::default();
            histogram.add(Duration::from_micros(us));
            let told = histogram.read().quantile(0.5).unwrap();
            assert!(told.abs_diff(us) as f64 <= us as f64 * 0.06, "{us} was told as {told}");
        }
    }

    #[test]
    fn quantiles_count_from_the_shortest() {
        let histogram = Histogram::default();
        assert_eq!(histogram.read().quantile(0.99), None);
        for _ in 0..98 {
            histogram.add(Duration::from_micros(5));
        }
        histogram.add(Duration::from_micros(7));
        histogram.add(Duration::from_secs(1));
        let read = histogram.read();
        assert_eq!((read.quantile(0.0), read.quantile(0.5), read.quantile(0.99)), (Some(5), Some(5), Some(7)));
        assert!(read.quantile(1.0).unwrap().abs_diff(1_000_000) < 60_000);
        assert_eq!((read.count(), read.below(7), read.below(8)), (100, 98, 99));
    }

    #[test]
    fn what_is_shown_is_exact_and_what_came_between_is_the_difference() {
        for bound in BOUNDS_US {
            assert_eq!(lower_edge(bucket_of(bound)), bound);
        }
        let histogram = Histogram::default();
        histogram.add(Duration::from_micros(127));
        let before = histogram.read();
        histogram.add(Duration::from_micros(128));
        let after = histogram.read();
        assert_eq!((after.below(128), after.count(), after.since(&before).below(128)), (1, 2, 0));
        let mut both = before;
        both.merge(&after);
        assert_eq!(both.count(), 3);
    }
}
