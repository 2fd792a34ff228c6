//! Counts per method: how many, how they ended, how long they took (S-19 to S-21).
//!
//! Labels come from closed sets or are capped, so a hostile client cannot grow the table.

use crate::fact::{Fact, FactSink, Finished, Outcome};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Most (method, backend) pairs that are kept apart; the rest are counted together.
pub const MAX_SERIES: usize = 1024;

/// Upper bounds of the duration buckets, in microseconds.
pub const BUCKETS_US: [u64; 14] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 1_000_000, 10_000_000, 60_000_000];

/// What is known of one method on one backend.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Series {
    /// Ended exchanges by outcome.
    pub outcomes: Vec<(&'static str, u64)>,
    /// Durations, one count per bucket and one for the rest.
    pub buckets: [u64; BUCKETS_US.len() + 1],
    /// Sum of all durations in microseconds.
    pub total_us: u64,
    /// Bytes from clients.
    pub bytes_in: u64,
    /// Bytes to clients.
    pub bytes_out: u64,
}

impl Series {
    /// All ended exchanges.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.outcomes.iter().map(|(_, n)| n).sum()
    }

    /// Exchanges that did not end with a plain result.
    #[must_use]
    pub fn errors(&self) -> u64 {
        self.count() - self.outcomes.iter().find(|(name, _)| *name == Outcome::Ok.label()).map_or(0, |(_, n)| *n)
    }

    fn add(&mut self, finished: &Finished) {
        let label = finished.outcome.label();
        match self.outcomes.iter_mut().find(|(name, _)| *name == label) {
            Some((_, count)) => *count += 1,
            None => self.outcomes.push((label, 1)),
        }
        let us = u64::try_from(finished.took.as_micros()).unwrap_or(MAX_US);
        self.buckets[BUCKETS_US.partition_point(|bound| *bound < us)] += 1;
        self.total_us = self.total_us.saturating_add(us);
        self.bytes_in += finished.bytes_in as u64;
        self.bytes_out += finished.bytes_out as u64;
    }
}

const MAX_US: u64 = 3_600_000_000;

/// The key of a series: the method as MCP knows it (`other` for anything else) and the backend (empty for ourselves).
pub type SeriesKey = (&'static str, Box<str>);

/// The table of series; a subscriber to facts.
#[derive(Debug, Default)]
pub struct MethodMetrics {
    table: Mutex<Table>,
}

/// The series in a row, and where each stands: a known one is found without making a key.
#[derive(Debug, Default)]
struct Table {
    rows: Vec<(SeriesKey, Series)>,
    places: HashMap<Box<str>, HashMap<&'static str, usize>>,
}

impl Table {
    fn series(&mut self, backend: &str, method: &'static str) -> &mut Series {
        let place = match self.places.get(backend).and_then(|methods| methods.get(method)) {
            Some(place) => *place,
            None => self.make(backend, method),
        };
        &mut self.rows[place].1
    }

    fn make(&mut self, backend: &str, method: &'static str) -> usize {
        let (backend, method) = if self.rows.len() < MAX_SERIES { (backend, method) } else { ("", "other") };
        let rows = &mut self.rows;
        *self.places.entry(backend.into()).or_default().entry(method).or_insert_with(|| {
            rows.push(((method, backend.into()), Series::default()));
            rows.len() - 1
        })
    }
}

impl MethodMetrics {
    /// A sorted copy of everything.
    #[must_use]
    pub fn read(&self) -> Vec<(SeriesKey, Series)> {
        let mut all = self.table.lock().unwrap_or_else(PoisonError::into_inner).rows.clone();
        all.sort_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

impl FactSink for MethodMetrics {
    fn fact(&self, fact: &Fact) {
        let Fact::Finished(finished) = fact else { return };
        let method = signalbox_wire::method::intern(&finished.method).unwrap_or("other");
        let backend = finished.backend.as_deref().unwrap_or("");
        self.table.lock().unwrap_or_else(PoisonError::into_inner).series(backend, method).add(finished);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{ExchangeId, SessionKey};
    use crate::principal::Principal;
    use signalbox_wire::Era;
    use std::time::{Duration, Instant};

    fn finished(method: &'static str, outcome: Outcome, ms: u64) -> Fact {
        Fact::Finished(Box::new(Finished {
            at: Instant::now(),
            session: SessionKey(1),
            principal: Principal::anonymous(),
            exchange: ExchangeId(1),
            era: Era::Legacy,
            method: method.into(),
            subject: None,
            backend: Some("a".into()),
            outcome,
            took: Duration::from_millis(ms),
            bytes_in: 10,
            bytes_out: 20,
        }))
    }

    #[test]
    fn s19_s20_response_times_and_error_rates_per_method() {
        let metrics = MethodMetrics::default();
        for ms in [1, 1, 1, 90] {
            metrics.fact(&finished("tools/call", Outcome::Ok, ms));
        }
        metrics.fact(&finished("tools/call", Outcome::Fault("timed_out"), 1));
        metrics.fact(&finished("made/up", Outcome::Ok, 1));
        let all = metrics.read();
        assert_eq!(all[0].0.0, "other");
        let calls = &all[1].1;
        assert_eq!((calls.count(), calls.errors()), (5, 1));
        let within_1_ms = BUCKETS_US.iter().position(|bound| *bound == 1_000).unwrap();
        let within_100_ms = BUCKETS_US.iter().position(|bound| *bound == 100_000).unwrap();
        assert_eq!((calls.buckets[within_1_ms], calls.buckets[within_100_ms]), (4, 1));
        assert_eq!(calls.total_us, 94_000);
        assert_eq!(calls.outcomes, [("success", 4), ("timed_out", 1)]);
    }
}
