//! The calls that took longest.

use super::value_counts::name;
use signalbox_engine::record::{Entry, FinishedEntry};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Number of calls that are kept.
const KEPT: usize = 10;

/// A call among the slowest.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Slow {
    /// Duration of the call, in nanoseconds.
    pub took: u64,
    /// Time at which it ended.
    pub at: u64,
    /// Id of the tape it is on.
    pub tape: String,
    /// Number of the exchange on that tape.
    pub exchange: Option<u64>,
    pub method: String,
    /// Tool, prompt or URI.
    pub subject: Option<String>,
    /// Backend that the call went to.
    pub backend: Option<String>,
    /// Outcome of the call.
    pub outcome: String,
}

/// The few calls that took longest.
#[derive(Debug, Default)]
pub struct Slowest(BinaryHeap<Reverse<Slow>>);

impl Slowest {
    pub(super) fn add(&mut self, tape: &str, entry: &Entry, finished: &FinishedEntry) {
        let quick = self.0.peek().is_some_and(|Reverse(least)| least.took >= finished.took);
        if quick && self.0.len() >= KEPT {
            return;
        }
        self.0.push(Reverse(Slow {
            took: finished.took,
            at: entry.at,
            tape: tape.to_owned(),
            exchange: entry.exchange,
            method: name(&finished.method),
            subject: finished.subject.as_deref().map(name),
            backend: finished.backend.as_deref().map(name),
            outcome: name(&finished.outcome),
        }));
        if self.0.len() > KEPT {
            self.0.pop();
        }
    }

    /// Returns the calls, longest first.
    #[must_use]
    pub fn list(&self) -> Vec<Slow> {
        let mut all: Vec<Slow> = self.0.iter().map(|Reverse(slow)| slow.clone()).collect();
        all.sort_by(|a, b| b.cmp(a));
        all
    }
}
