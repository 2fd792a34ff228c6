//! The calls that took longest.

use super::counts::name;
use signalbox_engine::record::{Entry, FinishedEntry};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many are kept.
const KEPT: usize = 10;

/// A call that took long.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Slow {
    /// How long, in nanoseconds.
    pub took: u64,
    /// When it ended.
    pub at: u64,
    /// Its tape.
    pub tape: String,
    /// Its number there.
    pub exchange: Option<u64>,
    /// Its method.
    pub method: String,
    /// What it was about.
    pub subject: Option<String>,
    /// Where it went.
    pub backend: Option<String>,
    /// How it ended.
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

    /// They, the longest first.
    #[must_use]
    pub fn list(&self) -> Vec<Slow> {
        let mut all: Vec<Slow> = self.0.iter().map(|Reverse(slow)| slow.clone()).collect();
        all.sort_by(|a, b| b.cmp(a));
        all
    }
}
