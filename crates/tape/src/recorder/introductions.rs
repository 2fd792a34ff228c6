//! Descriptions that precede the entries that refer to them: the rules in force, sessions, callers, and the tape on
//! which a call began.
//!
//! A tape has each description once, directly before the first entry that needs it, so a tape that follows another one
//! describes only the sessions and callers that it uses.

use signalbox_engine::keys::KeyMap;
use signalbox_engine::record::{Content, DecisionEntry, Entry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of callers that wait for an entry that names them, and of those remembered for the next tape.
const MAX_CALLERS: usize = 10_000;
/// Maximum number of sessions that wait for an entry.
const MAX_SESSIONS: usize = 100_000;

#[derive(Default, Debug)]
pub(crate) struct Introductions {
    /// True if other tapes follow this one.
    has_next: bool,
    /// Rules to write before the next entry.
    rules_due: Option<Entry>,
    sessions: KeyMap<u64, Entry>,
    callers: KeyMap<u64, Entry>,
    /// Exchanges that began on an earlier tape, with the last tape that has entries of them.
    exchanges: KeyMap<u64, Arc<str>>,
    /// Rules in force, if other tapes follow.
    rules: Option<Entry>,
    /// Most recent callers that this tape describes, if other tapes follow.
    described: BTreeMap<u64, Entry>,
}

impl Introductions {
    /// Creates the descriptions of a recorder with a [`TapeSeries`](super::tape_series::TapeSeries).
    pub(crate) fn for_series() -> Self {
        Self { has_next: true, ..Self::default() }
    }

    pub(crate) fn has_next(&self) -> bool {
        self.has_next
    }

    /// Registers a caller, which is described before the first entry that names it.
    pub(crate) fn caller(&mut self, number: u64, caller: Entry) {
        if self.callers.len() >= MAX_CALLERS {
            self.callers.clear();
        }
        self.callers.insert(number, caller);
    }

    /// Registers a session, which is described before the first entry that names it.
    pub(crate) fn session(&mut self, number: u64, session: Entry) {
        if self.sessions.len() >= MAX_SESSIONS {
            self.sessions.clear();
        }
        self.sessions.insert(number, session);
    }

    /// Returns true if an exchange began on an earlier tape and has no entry on this one.
    pub(crate) fn is_elsewhere(&self, exchange: u64) -> bool {
        self.exchanges.contains_key(&exchange)
    }

    /// Removes an exchange that is over.
    pub(crate) fn forget(&mut self, exchange: u64) {
        if !self.exchanges.is_empty() {
            self.exchanges.remove(&exchange);
        }
    }

    /// Stores the rules in force for the next tape.
    pub(crate) fn rules(&mut self, rules: &Entry) {
        if self.has_next {
            self.rules = Some(rules.clone());
        }
    }

    /// Calls `write` with the descriptions that must precede this entry, in order.
    pub(crate) fn before(&mut self, entry: &Entry, mut write: impl FnMut(Entry)) {
        if self.is_empty() {
            return;
        }
        // An entry that describes them itself makes the waiting description obsolete.
        let rules = self.rules_due.take().filter(|_| !matches!(entry.content, Content::Rules(_)));
        rules.into_iter().for_each(&mut write);
        let session = entry.session.and_then(|number| self.sessions.remove(&number));
        let session = session.filter(|_| !matches!(entry.content, Content::Session(_)));
        session.into_iter().for_each(&mut write);
        if let Some(number) = caller_of(&entry.content)
            && let Some(caller) = self.callers.remove(&number)
        {
            if self.has_next {
                self.describe(number, caller.clone());
            }
            write(caller);
        }
        if let Some(tape) = entry.exchange.and_then(|number| self.exchanges.remove(&number)) {
            let note = Content::Decisions(vec![Arc::new(DecisionEntry::begun_on(&tape))]);
            let Entry { session, exchange, at, .. } = *entry;
            write(Entry { session, exchange, ..Entry::new(0, at, Arc::clone(&entry.principal), note) });
        }
    }

    fn is_empty(&self) -> bool {
        self.callers.is_empty() && self.rules_due.is_none() && self.sessions.is_empty() && self.exchanges.is_empty()
    }

    /// Begins the next tape. `before` is the id of the former one, on which `exchanges` have entries.
    pub(crate) fn begin_tape(&mut self, before: &Arc<str>, exchanges: impl IntoIterator<Item = u64>) {
        self.rules_due.clone_from(&self.rules);
        let described = std::mem::take(&mut self.described);
        self.callers.extend(described);
        for exchange in exchanges {
            self.exchanges.entry(exchange).or_insert_with(|| Arc::clone(before));
        }
    }

    fn describe(&mut self, number: u64, caller: Entry) {
        self.described.insert(number, caller);
        if self.described.len() > MAX_CALLERS {
            self.described.pop_first();
        }
    }
}

/// Returns the number of the caller that an entry names.
fn caller_of(content: &Content) -> Option<u64> {
    match content {
        Content::Finished(finished) => finished.client,
        Content::Refused(refused) => refused.client,
        _ => None,
    }
}
