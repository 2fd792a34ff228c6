//! Counts pairs of calls of one session that ended one after the other.

use super::label;
use super::value_counts::{Most, ValueCounts, name};
use signalbox_engine::record::{Entry, FinishedEntry};
use std::collections::BTreeMap;

/// Maximum number of sessions whose last call is remembered. The oldest are forgotten first.
const MAX_SESSIONS: usize = 10_000;

/// Pairs of consecutive calls, by tool or method.
#[derive(Debug, Default)]
pub struct Flow {
    last: BTreeMap<Whose, String>,
    pairs: ValueCounts<(String, String)>,
}

/// Key under which calls follow each other: the session, or the principal for requests without a session.
#[derive(PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Whose {
    Principal(String),
    Session(u64),
}

impl Flow {
    /// Forgets all last calls, since another tape numbers its sessions anew.
    pub(super) fn next_tape(&mut self) {
        self.last.clear();
    }

    /// Counts one finished call.
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

    /// Returns the most frequent pairs, and the total count of all others.
    #[must_use]
    pub fn most(&self, wanted: usize) -> Most<(String, String)> {
        self.pairs.most(wanted)
    }
}
