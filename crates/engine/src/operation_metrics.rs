//! Durations of MCP operations by method and kind of error, following the OpenTelemetry semantic conventions for MCP:
//! requests of clients that the gateway serves, and requests that it sends to backends.

use crate::fact::{Fact, FactSink, Outcome};
use crate::labelled_durations::{BucketReading, LabelledDurations, OPERATION_BOUNDS_US};
use signalbox_wire::method;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Label of a method that MCP does not define. Its own name could be anything.
const OTHER: &str = "other";

/// Durations by method and kind of error. It subscribes to facts for the operations of clients.
#[derive(Debug)]
pub struct OperationMetrics {
    /// One place for each method, and one for all others.
    methods: Box<[OnceLock<LabelledDurations>]>,
}

impl Default for OperationMetrics {
    fn default() -> Self {
        Self { methods: (0..=method::all().count()).map(|_| OnceLock::new()).collect() }
    }
}

impl OperationMetrics {
    /// Counts an operation that has ended, with the kind of its error; empty if there was none.
    pub fn add(&self, method: &str, error: &'static str, took: Duration) {
        let place = method::all().position(|known| known == method).unwrap_or(self.methods.len() - 1);
        if let Some(durations) = self.methods.get(place) {
            durations.get_or_init(|| LabelledDurations::new(OPERATION_BOUNDS_US)).add(error, took);
        }
    }

    /// Returns the counts by method and kind of error.
    #[must_use]
    pub fn read(&self) -> Vec<((&'static str, &'static str), BucketReading)> {
        let names = method::all().chain([OTHER]);
        let seen = names.zip(&self.methods).filter_map(|(name, durations)| Some((name, durations.get()?)));
        seen.flat_map(|(name, durations)| {
            durations.read().into_iter().map(move |(error, reading)| ((name, error), reading))
        })
        .collect()
    }
}

/// Optional destination for the durations of ended operations.
#[derive(Clone, Debug, Default)]
pub struct OperationTimer(Option<Arc<OperationMetrics>>);

impl OperationTimer {
    /// Creates a timer that counts in `metrics`, if any.
    #[must_use]
    pub fn new(metrics: Option<Arc<OperationMetrics>>) -> Self {
        Self(metrics)
    }

    /// Counts an operation that was sent and has ended, with the kind of its error; empty if there was none.
    pub fn took(&self, method: &str, error: &'static str, sent: Instant, ended: Instant) {
        if let Some(metrics) = &self.0 {
            metrics.add(method, error, ended.saturating_duration_since(sent));
        }
    }
}

/// Returns the kind of error of an outcome; empty for a result.
#[must_use]
pub fn error_type(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "",
        other => other.label(),
    }
}

impl FactSink for OperationMetrics {
    fn fact(&self, fact: &Fact) {
        if let Fact::Finished(finished) = fact {
            self.add(&finished.method, error_type(finished.outcome), finished.took);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_are_counted_by_method_and_error() {
        let metrics = OperationMetrics::default();
        metrics.add("tools/call", error_type(Outcome::Ok), Duration::from_millis(15));
        metrics.add("tools/call", error_type(Outcome::Fault("timed_out")), Duration::from_secs(60));
        metrics.add("made/up", error_type(Outcome::BackendError), Duration::ZERO);
        let read = metrics.read();
        let keys: Vec<_> = read.iter().map(|(key, _)| *key).collect();
        assert_eq!(keys, [("tools/call", ""), ("tools/call", "timed_out"), ("other", "error")]);
        assert_eq!((read[0].1.within[0].1, read[0].1.within[1].1), (0, 1), "15 ms are between 10 and 20");
    }
}
