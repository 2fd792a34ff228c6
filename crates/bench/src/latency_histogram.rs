//! Histogram of latencies with a fixed number of buckets: exact below 128 ns, then within 1.6 %.

use std::time::Duration;

/// Number of buckets per doubling of the latency.
const STEPS: u64 = 64;
/// `STEPS` as a shift.
const SHIFT: u32 = STEPS.trailing_zeros();
const BUCKETS: usize = (64 - SHIFT as usize + 1) * STEPS as usize;

/// Count of samples per bucket.
#[derive(Debug)]
pub struct LatencyHistogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for LatencyHistogram {
    fn default() -> Self {
        Self { counts: vec![0; BUCKETS], total: 0 }
    }
}

impl LatencyHistogram {
    /// Adds one latency to its bucket.
    pub fn record(&mut self, latency: Duration) {
        let nanos = u64::try_from(latency.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket(nanos)] += 1;
        self.total += 1;
    }

    /// Adds all latencies of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
    }

    /// Returns the number of samples.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the quantile `share`, in microseconds.
    pub fn quantile_us(&self, share: f64) -> f64 {
        let wanted = ((self.total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return lowest(index) as f64 / 1000.0;
            }
        }
        0.0
    }
}

fn bucket(nanos: u64) -> usize {
    let doublings = (u64::BITS - nanos.leading_zeros()).saturating_sub(SHIFT + 1);
    let step = nanos >> doublings;
    (u64::from(doublings) * STEPS + step) as usize
}

/// Returns the smallest value that falls into a bucket.
fn lowest(index: usize) -> u64 {
    let index = index as u64;
    if index < 2 * STEPS {
        return index;
    }
    let doublings = index / STEPS - 1;
    (index % STEPS + STEPS) << doublings
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{BUCKETS, LatencyHistogram, bucket, lowest};

    #[test]
    fn each_bucket_starts_where_it_says() {
        for index in 0..BUCKETS {
            assert_eq!(bucket(lowest(index)), index);
        }
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn quantiles_are_close() {
        let mut histogram = LatencyHistogram::default();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        assert_eq!(histogram.total(), 1000);
        assert!((histogram.quantile_us(0.5) - 500.0).abs() < 8.0);
        assert!((histogram.quantile_us(0.99) - 990.0).abs() < 16.0);
        assert_eq!(LatencyHistogram::default().quantile_us(0.5), 0.0);
    }
}
