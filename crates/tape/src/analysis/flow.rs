//! Counts pairs of calls of one session that ended one after the other.

use super::counts::{Counts, Most, name};
use super::label;
use signalbox_engine::record::{Entry, FinishedEntry};
use std::collections::BTreeMap;

/// Most sessions whose last call is remembered. The oldest are forgotten first.
const MAX_SESSIONS: usize = 10_000;

/// Pairs of consecutive calls, by tool or method.
#[derive(Debug, Default)]
pub struct Flow {
    last: BTreeMap<Whose, String>,
    pairs: Counts<(String, String)>,
}

/// Requests without a session follow each other where they are of one principal.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Whose {
    Principal(String),
    Session(u64),
}

impl Flow {
    /// Sessions of another tape have other numbers.
    pub(super) fn next_tape(&mut self) {
        self.last.clear();
    }

    /// One more call that is over.
    pub(super) fn add(&mut self, entry: &Entry, finished: &FinishedEntry) {
        let whose = match entry.session {
            Some(session) => Whose::Session(session),
            None => Whose::Principal(name(&entry.principal)),
        };
        let this = name(label(finished));
        if let Some(before) = self.last.insert(whose, this.clone()) {
            self.pairs.add((before, this));
        }
        if self.last.len() > MAX_SESSIONS {
            self.last.pop_first();
        }
    }

    /// The most frequent pairs, and how many others there were.
    #[must_use]
    pub fn most(&self, wanted: usize) -> Most<(String, String)> {
        self.pairs.most(wanted)
    }
}
