//! The sessions that a proxy observes, and the names that identify them.

use super::TapCounts;
use super::conversation::{Conversation, Who};
use signalbox_engine::fact::Outcome;
use signalbox_engine::keys::{KeyMap, Numbers, TextMap};
use signalbox_engine::{Caller, Fact, SessionKey};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of sessions. Beyond it, the one that was idle for longest is ended.
pub const MAX_SESSIONS: usize = 1000;
/// Idle time without an open stream after which a session is ended.
pub const SESSION_TIMEOUT: Duration = Duration::from_secs(300);

/// A session with its conversation, its names and its open connections.
#[derive(Debug)]
pub(super) struct ObservedSession {
    pub(super) conversation: Conversation,
    names: Vec<Box<str>>,
    open: usize,
    used: Instant,
}

/// All sessions. A session without a name ends with its only request.
#[derive(Debug)]
pub(super) struct ObservedSessions {
    backend: Arc<str>,
    caller: Caller,
    sessions: KeyMap<u64, ObservedSession>,
    names: TextMap<Box<str>, u64>,
    next: u64,
    numbers: Arc<Numbers>,
    counts: TapCounts,
}

impl ObservedSessions {
    pub(super) fn new(backend: Arc<str>, caller: Caller) -> Self {
        let (sessions, names) = (KeyMap::default(), TextMap::default());
        Self { backend, caller, sessions, names, next: 1, numbers: Arc::default(), counts: TapCounts::default() }
    }

    /// Returns the key of the session with this name, and counts one more open connection. Without a name it creates a
    /// session.
    pub(super) fn enter(&mut self, at: Instant, name: Option<&str>, out: &mut Vec<Fact>) -> u64 {
        let known = name.and_then(|name| self.names.get(name)).copied();
        let key = known.unwrap_or_else(|| self.add(at, out));
        if let Some(session) = self.sessions.get_mut(&key) {
            session.open += 1;
            session.used = at;
        }
        key
    }

    /// Returns the conversation of a session.
    pub(super) fn get(&mut self, key: u64) -> Option<&mut Conversation> {
        self.sessions.get_mut(&key).map(|session| &mut session.conversation)
    }

    /// Returns `true` if a session has this name.
    pub(super) fn has_name(&self, name: &str) -> bool {
        self.names.contains_key(name)
    }

    /// Gives a session a name by which later requests find it.
    pub(super) fn name(&mut self, key: u64, name: Box<str>) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        // Bounded: a server may give out endless names for one session.
        if session.names.len() < MAX_NAMES && !self.names.contains_key(&name) {
            session.names.push(name.clone());
            self.names.insert(name, key);
        }
    }

    /// Counts one open connection less. A session without a name then ends.
    pub(super) fn leave(&mut self, at: Instant, key: u64, outcome: Option<Outcome>, out: &mut Vec<Fact>) {
        let Some(session) = self.sessions.get_mut(&key) else { return };
        session.open = session.open.saturating_sub(1);
        session.used = at;
        if session.names.is_empty() && session.open == 0 {
            self.end(at, key, outcome, out);
        }
    }

    /// Ends a session and its conversation.
    pub(super) fn end(&mut self, at: Instant, key: u64, outcome: Option<Outcome>, out: &mut Vec<Fact>) {
        let Some(mut session) = self.sessions.remove(&key) else { return };
        for name in &session.names {
            self.names.remove(name);
        }
        session.conversation.end(at, outcome, out);
        self.counts += session.conversation.counts();
    }

    /// Ends sessions that were idle for too long.
    pub(super) fn tick(&mut self, now: Instant, out: &mut Vec<Fact>) {
        let quiet = |session: &ObservedSession| {
            session.open == 0 && now.saturating_duration_since(session.used) >= SESSION_TIMEOUT
        };
        let mut over: Vec<u64> =
            self.sessions.iter().filter(|(_, session)| quiet(session)).map(|(key, _)| *key).collect();
        over.sort_unstable();
        over.into_iter().for_each(|key| self.end(now, key, None, out));
        self.sessions.values_mut().for_each(|session| session.conversation.tick(now, out));
    }

    /// Records a gap in every session with an open connection, since each may have lost something.
    pub(super) fn record_gap(&mut self, at: Instant, detail: &str, out: &mut Vec<Fact>) {
        for session in self.sessions.values_mut().filter(|session| session.open > 0) {
            session.conversation.record_gap(at, detail.to_owned(), out);
        }
    }

    /// Ends all sessions and returns the counters.
    pub(super) fn end_all(&mut self, at: Instant, out: &mut Vec<Fact>) -> TapCounts {
        let mut all: Vec<u64> = self.sessions.keys().copied().collect();
        all.sort_unstable();
        all.into_iter().for_each(|key| self.end(at, key, None, out));
        self.counts
    }

    fn add(&mut self, at: Instant, out: &mut Vec<Fact>) -> u64 {
        if self.sessions.len() >= MAX_SESSIONS {
            let quiet = self.sessions.iter().filter(|(_, session)| session.open == 0);
            if let Some(oldest) = quiet.min_by_key(|(key, session)| (session.used, **key)).map(|(key, _)| *key) {
                self.end(at, oldest, None, out);
            }
        }
        let key = self.next;
        self.next += 1;
        let who = Who {
            session: SessionKey(key),
            caller: self.caller.clone(),
            backend: Arc::clone(&self.backend),
            transport: "http",
        };
        let conversation = Conversation::new(who, Arc::clone(&self.numbers));
        self.sessions.insert(key, ObservedSession { conversation, names: Vec::new(), open: 0, used: at });
        key
    }
}

/// Maximum number of names per session.
const MAX_NAMES: usize = 4;
