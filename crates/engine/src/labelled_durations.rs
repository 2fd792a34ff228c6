//! Durations in buckets with given bounds, separated by one label from a closed set.
//!
//! Counting a duration is a walk over a few labels, a search among a few bounds and two atomic additions.

use crate::histogram::micros;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Maximum number of labels counted separately; the rest are counted together.
pub const MAX_LABELS: usize = 24;
/// Label of the rest.
const OTHER: &str = "other";

/// Bounds for durations of operations and sessions in microseconds, from the OpenTelemetry semantic conventions for
/// MCP: 10 ms to 300 s.
pub const OPERATION_BOUNDS_US: &[u64] = &[
    10_000,
    20_000,
    50_000,
    100_000,
    200_000,
    500_000,
    1_000_000,
    2_000_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    120_000_000,
    300_000_000,
];

/// Bounds for durations of tools in microseconds: 1 ms to 300 s.
pub const TOOL_BOUNDS_US: &[u64] = &[
    1_000,
    2_500,
    5_000,
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    30_000_000,
    60_000_000,
    300_000_000,
];

/// Counts of durations, which any number of threads may add to.
#[derive(Debug)]
struct Buckets {
    /// One count for each bound, and one for longer durations.
    counts: Box<[AtomicU64]>,
    total_us: AtomicU64,
}

impl Buckets {
    fn new(bounds: &[u64]) -> Self {
        Self { counts: (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect(), total_us: AtomicU64::new(0) }
    }

    fn add(&self, bounds: &[u64], us: u64) {
        if let Some(count) = self.counts.get(bounds.partition_point(|bound| *bound < us)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        self.total_us.fetch_add(us, Ordering::Relaxed);
    }
}

/// Counts of one label at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BucketReading {
    /// Bounds in microseconds, each with the number of durations that did not exceed it.
    pub within: Vec<(u64, u64)>,
    /// Number of all durations under the label.
    pub count: u64,
    /// Sum of the durations in microseconds.
    pub total_us: u64,
}

impl BucketReading {
    /// Adds the counts of another reading with the same bounds.
    pub fn merge(&mut self, other: &Self) {
        for ((_, own), (_, more)) in self.within.iter_mut().zip(&other.within) {
            *own += more;
        }
        self.count += other.count;
        self.total_us += other.total_us;
    }
}

/// Histograms of durations, one for each label.
#[derive(Debug)]
pub struct LabelledDurations {
    bounds: &'static [u64],
    /// Filled from the front, in the order of first use. The last place is for all other labels.
    cells: Box<[OnceLock<(&'static str, Buckets)>]>,
}

impl Default for LabelledDurations {
    fn default() -> Self {
        Self::new(OPERATION_BOUNDS_US)
    }
}

impl LabelledDurations {
    /// Creates empty histograms with these bounds.
    #[must_use]
    pub fn new(bounds: &'static [u64]) -> Self {
        Self { bounds, cells: (0..MAX_LABELS).map(|_| OnceLock::new()).collect() }
    }

    /// Counts a duration under this label.
    pub fn add(&self, label: &'static str, took: Duration) {
        let Some((last, rest)) = self.cells.split_last() else { return };
        let own = rest.iter().map(|cell| cell.get_or_init(|| (label, Buckets::new(self.bounds))));
        let (_, buckets) = { own }
            .find(|(name, _)| *name == label)
            .unwrap_or_else(|| last.get_or_init(|| (OTHER, Buckets::new(self.bounds))));
        buckets.add(self.bounds, micros(took));
    }

    /// Returns the counts by label.
    #[must_use]
    pub fn read(&self) -> Vec<(&'static str, BucketReading)> {
        self.cells.iter().filter_map(OnceLock::get).map(|(label, buckets)| (*label, self.reading(buckets))).collect()
    }

    fn reading(&self, buckets: &Buckets) -> BucketReading {
        let counts: Vec<u64> = buckets.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let mut below = 0;
        let within = self.bounds.iter().zip(&counts).map(|(bound, count)| {
            below += count;
            (*bound, below)
        });
        let within = within.collect();
        BucketReading { within, count: counts.iter().sum(), total_us: buckets.total_us.load(Ordering::Relaxed) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_for_every_bound_that_it_does_not_exceed() {
        let durations = LabelledDurations::new(OPERATION_BOUNDS_US);
        for ms in [10, 11, 400_000] {
            durations.add("", Duration::from_millis(ms));
        }
        durations.add("timed_out", Duration::from_secs(1));
        let read = durations.read();
        assert_eq!((read.len(), read[0].0, read[1].0), (2, "", "timed_out"));
        let first = &read[0].1;
        assert_eq!((first.within[0], first.within[1], first.within[13]), ((10_000, 1), (20_000, 2), (300_000_000, 2)));
        assert_eq!((first.count, first.total_us), (3, 400_021_000));
    }

    #[test]
    fn labels_beyond_the_bound_are_counted_together() {
        let durations = LabelledDurations::new(TOOL_BOUNDS_US);
        for number in 0..MAX_LABELS + 5 {
            durations.add(format!("l{number}").leak(), Duration::ZERO);
        }
        let read = durations.read();
        assert_eq!((read.len(), read[MAX_LABELS - 1].0, read[MAX_LABELS - 1].1.count), (MAX_LABELS, "other", 6));
    }
}
