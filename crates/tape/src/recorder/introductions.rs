//! What a tape has to say before an entry that refers to it: the rules in force, its session, its caller, and on which tape its
//! call began.
//!
//! Each stands on a tape once, right before the first entry that needs it. So the tapes after the first one begin with nothing
//! that is not used, however many sessions are open.

use signalbox_engine::keys::KeyMap;
use signalbox_engine::record::{Content, DecisionEntry, Entry};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Most callers that wait for the first entry that names them, and most that are remembered for the next tape.
const MAX_CALLERS: usize = 10_000;
/// Most sessions that wait for it.
const MAX_SESSIONS: usize = 100_000;

#[derive(Default, Debug)]
pub(crate) struct Introductions {
    /// True if other tapes follow this one.
    has_next: bool,
    /// Written before the next entry, whatever it is.
    rules_due: Option<Entry>,
    sessions: KeyMap<u64, Entry>,
    callers: KeyMap<u64, Entry>,
    /// Exchanges that began on an earlier tape, with the latest tape that has entries of them.
    exchanges: KeyMap<u64, Arc<str>>,
    /// The rules in force, where other tapes follow.
    rules: Option<Entry>,
    /// The callers that this tape describes, the latest of them, where other tapes follow.
    described: BTreeMap<u64, Entry>,
}

impl Introductions {
    /// For a recorder that begins the next tape when this one is large or old.
    pub(crate) fn for_series() -> Self {
        Self { has_next: true, ..Self::default() }
    }

    /// True if other tapes follow this one.
    pub(crate) fn has_next(&self) -> bool {
        self.has_next
    }

    /// Describes a caller before the first entry that names it. Callers that no entry names are never described.
    pub(crate) fn caller(&mut self, number: u64, caller: Entry) {
        if self.callers.len() >= MAX_CALLERS {
            self.callers.clear();
        }
        self.callers.insert(number, caller);
    }

    /// Describes a session before the first entry that names it.
    pub(crate) fn session(&mut self, number: u64, session: Entry) {
        if self.sessions.len() >= MAX_SESSIONS {
            self.sessions.clear();
        }
        self.sessions.insert(number, session);
    }

    /// True if an exchange began on an earlier tape and has no entry on this one.
    pub(crate) fn is_elsewhere(&self, exchange: u64) -> bool {
        self.exchanges.contains_key(&exchange)
    }

    /// Forgets an exchange of which nothing more comes.
    pub(crate) fn forget(&mut self, exchange: u64) {
        if !self.exchanges.is_empty() {
            self.exchanges.remove(&exchange);
        }
    }

    /// Remembers the rules that apply from now on, for the next tape.
    pub(crate) fn rules(&mut self, rules: &Entry) {
        if self.has_next {
            self.rules = Some(rules.clone());
        }
    }

    /// Calls `write` with what has to stand before this entry, in order.
    pub(crate) fn before(&mut self, entry: &Entry, mut write: impl FnMut(Entry)) {
        if self.is_empty() {
            return;
        }
        // A newer description takes the place of the one that waits.
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

    /// Begins the next tape. `exchanges` have entries on the tape before it, which has this id.
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

/// The caller that an entry names.
fn caller_of(content: &Content) -> Option<u64> {
    match content {
        Content::Finished(finished) => finished.client,
        Content::Refused(refused) => refused.client,
        _ => None,
    }
}
