//! Request metrics per method and backend: counts, outcomes, durations (S-19 to S-21).
//!
//! Counting a fact costs a walk over a few names and a handful of atomic additions: nothing is locked, hashed or
//! allocated once a method has been seen on a backend. Labels come from closed sets or are capped, so a hostile client
//! cannot grow the table.

use crate::fact::{Fact, FactSink, FinishedFact, Outcome};
use crate::histogram::{Durations, Histogram, micros};
use signalbox_wire::method;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Maximum number of backends counted separately, including the gateway itself; the rest count as the gateway.
pub const MAX_BACKENDS: usize = 256;
/// Maximum number of outcomes counted separately; the rest are counted together.
const MAX_OUTCOMES: usize = 48;
/// Label of unknown methods, and of outcomes beyond the maximum.
const OTHER: &str = "other";

/// Metrics of one method on one backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Number of ended exchanges by outcome.
    pub outcomes: Vec<(&'static str, u64)>,
    /// Durations of the exchanges.
    pub took: Durations,
    /// Sum of all durations in microseconds.
    pub total_us: u64,
    /// Total size of requests in bytes.
    pub bytes_in: u64,
    /// Total size of answers in bytes.
    pub bytes_out: u64,
}

impl Series {
    /// Returns the number of ended exchanges.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.outcomes.iter().map(|(_, n)| n).sum()
    }

    /// Returns the number of exchanges that did not end with a plain result.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.count() - self.outcomes.iter().find(|(name, _)| *name == Outcome::Ok.label()).map_or(0, |(_, n)| *n)
    }

    /// Adds another series to this one.
    pub fn merge(&mut self, other: &Self) {
        for (label, more) in &other.outcomes {
            match self.outcomes.iter_mut().find(|(name, _)| name == label) {
                Some((_, count)) => *count += more,
                None => self.outcomes.push((label, *more)),
            }
        }
        self.took.merge(&other.took);
        self.total_us += other.total_us;
        self.bytes_in += other.bytes_in;
        self.bytes_out += other.bytes_out;
    }
}

/// Key of a series: the method as MCP knows it (`other` for anything else) and the backend (empty for the gateway).
pub type SeriesKey = (&'static str, Box<str>);

/// Table of series. It subscribes to facts.
#[derive(Debug)]
pub struct MethodMetrics {
    /// Filled from the front, the gateway first. Filled slots never change.
    backends: Box<[OnceLock<Row>]>,
}

/// Series of one backend: a slot per method, and one for all other methods.
#[derive(Debug)]
struct Row {
    backend: Box<str>,
    methods: Box<[OnceLock<Box<Cell>>]>,
}

impl Row {
    fn new(backend: &str) -> Self {
        Self { backend: backend.into(), methods: (0..=method::all().count()).map(|_| OnceLock::new()).collect() }
    }

    fn cell(&self, method: &str) -> &Cell {
        let place = method::all().position(|known| known == method).unwrap_or(self.methods.len() - 1);
        self.methods[place].get_or_init(Box::default)
    }
}

/// Counters of one series.
#[derive(Debug, Default)]
struct Cell {
    total_us: AtomicU64,
    bytes_in: AtomicU64,
    bytes_out: AtomicU64,
    outcomes: Outcomes,
    took: Histogram,
}

impl Cell {
    fn add(&self, finished: &FinishedFact) {
        self.outcomes.add(finished.outcome.label());
        self.took.add(finished.took);
        self.total_us.fetch_add(micros(finished.took), Ordering::Relaxed);
        self.bytes_in.fetch_add(finished.bytes_in as u64, Ordering::Relaxed);
        self.bytes_out.fetch_add(finished.bytes_out as u64, Ordering::Relaxed);
    }

    fn read(&self) -> Series {
        Series {
            outcomes: self.outcomes.read(),
            took: self.took.read(),
            total_us: self.total_us.load(Ordering::Relaxed),
            bytes_in: self.bytes_in.load(Ordering::Relaxed),
            bytes_out: self.bytes_out.load(Ordering::Relaxed),
        }
    }
}

/// Counts by outcome, in the order of first use.
#[derive(Debug)]
pub(crate) struct Outcomes([(OnceLock<&'static str>, AtomicU64); MAX_OUTCOMES]);

impl Default for Outcomes {
    fn default() -> Self {
        Self([const { (OnceLock::new(), AtomicU64::new(0)) }; MAX_OUTCOMES])
    }
}

impl Outcomes {
    pub(crate) fn add(&self, label: &'static str) {
        let (last, rest) = (&self.0[MAX_OUTCOMES - 1], &self.0[..MAX_OUTCOMES - 1]);
        let own = rest.iter().find(|(name, _)| *name.get_or_init(|| label) == label);
        let (_, count) = own.unwrap_or_else(|| {
            last.0.get_or_init(|| OTHER);
            last
        });
        count.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> Vec<(&'static str, u64)> {
        self.0.iter().filter_map(|(name, count)| Some((*name.get()?, count.load(Ordering::Relaxed)))).collect()
    }
}

impl Default for MethodMetrics {
    fn default() -> Self {
        let backends: Box<[OnceLock<Row>]> = (0..MAX_BACKENDS).map(|_| OnceLock::new()).collect();
        backends[0].get_or_init(|| Row::new(""));
        Self { backends }
    }
}

impl MethodMetrics {
    /// Returns a sorted copy of all series.
    #[must_use]
    pub fn read(&self) -> Vec<(SeriesKey, Series)> {
        let names: Vec<&'static str> = method::all().chain([OTHER]).collect();
        let mut all = Vec::new();
        for row in self.backends.iter().map_while(OnceLock::get) {
            let seen = names.iter().zip(&row.methods).filter_map(|(name, cell)| Some((*name, cell.get()?)));
            all.extend(seen.map(|(name, cell)| ((name, row.backend.clone()), cell.read())));
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }

    fn row(&self, backend: &str) -> Option<&Row> {
        // A backend that has no slot yet takes the first free one.
        let mut rows = self.backends.iter().map(|place| place.get_or_init(|| Row::new(backend)));
        rows.find(|row| *row.backend == *backend).or_else(|| self.backends.first()?.get())
    }
}

impl FactSink for MethodMetrics {
    fn fact(&self, fact: &Fact) {
        let Fact::Finished(finished) = fact else { return };
        if let Some(row) = self.row(finished.backend.as_deref().unwrap_or("")) {
            row.cell(&finished.method).add(finished);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Caller;
    use crate::keys::{ExchangeId, SessionKey};
    use signalbox_wire::Era;
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    fn finished(backend: &str, method: &'static str, outcome: Outcome, ms: u64) -> Fact {
        Fact::Finished(Arc::new(FinishedFact {
            at: Instant::now(),
            session: SessionKey(1),
            caller: Caller::anonymous("http"),
            client: None,
            operation: ExchangeId(1),
            round: 1,
            exchange: ExchangeId(1),
            era: Era::Legacy,
            method: method.into(),
            subject: None,
            backend: Some(backend.into()).filter(|_| !backend.is_empty()),
            outcome,
            took: Duration::from_millis(ms),
            bytes_in: 10,
            bytes_out: 20,
            trace: None,
            unreached: None,
        }))
    }

    /// Proves S-19, S-20 and S-21.
    #[test]
    fn response_times_and_error_rates_per_method() {
        let metrics = MethodMetrics::default();
        for ms in [1, 1, 1, 90] {
            metrics.fact(&finished("a", "tools/call", Outcome::Ok, ms));
        }
        metrics.fact(&finished("a", "tools/call", Outcome::Fault("timed_out"), 1));
        metrics.fact(&finished("a", "made/up", Outcome::Ok, 1));
        let all = metrics.read();
        assert_eq!(all[0].0.0, "other");
        let calls = &all[1].1;
        assert_eq!((calls.count(), calls.errors()), (5, 1));
        assert_eq!((calls.took.below(1_024), calls.took.below(131_072)), (4, 5));
        assert_eq!((calls.total_us, calls.bytes_in, calls.bytes_out), (94_000, 50, 100));
        assert_eq!(calls.outcomes, [("success", 4), ("timed_out", 1)]);
    }

    #[test]
    fn backends_are_kept_apart_up_to_a_bound() {
        let metrics = MethodMetrics::default();
        metrics.fact(&finished("", "ping", Outcome::Ok, 1));
        for number in 0..2 * MAX_BACKENDS {
            metrics.fact(&finished(&format!("b{number}"), "ping", Outcome::Ok, 1));
        }
        let all = metrics.read();
        assert_eq!(all.len(), MAX_BACKENDS);
        assert_eq!(all.iter().map(|(_, series)| series.count()).sum::<u64>(), 1 + 2 * MAX_BACKENDS as u64);
        let ours = all.iter().find(|((_, backend), _)| backend.is_empty()).unwrap();
        assert_eq!(ours.1.count(), 2 + MAX_BACKENDS as u64, "what finds no room is counted as ours");
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let metrics = MethodMetrics::default();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let metrics = &metrics;
                scope.spawn(move || {
                    let outcomes = [Outcome::Ok, Outcome::ToolError, Outcome::Fault("overloaded"), Outcome::Cancelled];
                    for number in 0..1_000 {
                        let backend = ["a", "b", "c"][number % 3];
                        metrics.fact(&finished(backend, "tools/call", outcomes[(number + thread) % 4], 1));
                    }
                });
            }
        });
        let mut whole = Series::default();
        for (_, series) in metrics.read() {
            assert_eq!(series.count(), series.took.count());
            whole.merge(&series);
        }
        assert_eq!((whole.count(), whole.errors(), whole.outcomes.len()), (4_000, 3_000, 4));
    }

    #[test]
    fn outcomes_beyond_the_bound_are_counted_together() {
        let outcomes = Outcomes::default();
        let labels: Vec<&'static str> = (0..60).map(|number| &*format!("o{number}").leak()).collect();
        labels.iter().for_each(|label| outcomes.add(label));
        let read = outcomes.read();
        assert_eq!((read.len(), read[0], read[MAX_OUTCOMES - 1]), (48, ("o0", 1), ("other", 13)));
    }
}
