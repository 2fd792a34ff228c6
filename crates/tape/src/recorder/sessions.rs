//! Sessions that the tape describes, by their numbers in the process.

use super::clients;
use super::session_hash::SessionHash;
use signalbox_engine::fact::SessionFact;
use signalbox_engine::keys::{KeyMap, SessionKey};
use signalbox_engine::record::SessionInfo;
use signalbox_engine::{Caller, ClientProfile};
use signalbox_wire::json;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum number of known sessions. Beyond it, the oldest is forgotten.
const MAX_SESSIONS: usize = 100_000;
/// Number of ended sessions that remain known for late facts.
const ENDED: usize = 1_024;

/// Known sessions. Requests of the new era have numbers as well, but are never described as sessions.
#[derive(Default, Debug)]
pub(crate) struct Sessions {
    known: KeyMap<SessionKey, KnownSession>,
    order: VecDeque<SessionKey>,
    ended: VecDeque<SessionKey>,
    /// Number of the current tape.
    tape: u32,
    /// True if other tapes follow this one.
    has_next: bool,
}

#[derive(Debug)]
struct KnownSession {
    /// Number of the last tape that describes the session.
    tape: u32,
    /// Description for the next tape, if other tapes follow.
    fact: Option<Arc<SessionFact>>,
}

/// A session that an entry belongs to.
#[derive(Debug)]
pub(crate) struct EntrySession {
    pub(crate) number: u64,
    /// Description to write, if the tape does not have it yet.
    pub(crate) undescribed: Option<Arc<SessionFact>>,
}

impl Sessions {
    /// Creates the sessions of a recorder with a [`TapeSeries`](super::tape_series::TapeSeries).
    pub(crate) fn for_series() -> Self {
        Self { has_next: true, ..Self::default() }
    }

    /// Returns the session of an entry if it is known, with its description if the tape lacks it.
    pub(crate) fn of_entry(&mut self, key: SessionKey) -> Option<EntrySession> {
        let known = self.known.get_mut(&key)?;
        let undescribed = if known.tape == self.tape { None } else { known.fact.clone() };
        known.tape = self.tape;
        Some(EntrySession { number: key.0, undescribed })
    }

    /// Registers a described session and returns its number.
    pub(crate) fn enter(&mut self, fact: &Arc<SessionFact>) -> u64 {
        let key = fact.session;
        let session = KnownSession { tape: self.tape, fact: self.has_next.then(|| Arc::clone(fact)) };
        if let Some(known) = self.known.get_mut(&key) {
            *known = session;
            return key.0;
        }
        if self.known.len() >= MAX_SESSIONS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.known.insert(key, session);
        self.order.push_back(key);
        key.0
    }

    /// Begins the next tape, which describes no session yet.
    pub(crate) fn begin_tape(&mut self) {
        self.tape = self.tape.wrapping_add(1);
    }

    /// Marks a session as ended. It stays known for a while.
    pub(crate) fn end(&mut self, key: SessionKey) {
        self.ended.push_back(key);
        if self.ended.len() > ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.known.remove(&oldest);
            // Sessions end in about the order in which they began, so the search is short.
            if let Some(place) = self.order.iter().position(|known| *known == oldest) {
                self.order.remove(place);
            }
        }
    }
}

/// Returns the description of a session. Its id is a credential, so it is left out if there is no key to hash it.
pub(crate) fn of_fact(fact: &SessionFact, hash: Option<&SessionHash>) -> SessionInfo {
    let external = fact.external.as_deref().zip(hash).map(|(id, hash)| hash.of(id));
    info(&fact.caller, fact.client.as_deref(), external, fact.transport)
}

/// Returns the description of a caller.
pub(crate) fn info(
    caller: &Caller,
    said: Option<&ClientProfile>,
    external: Option<String>,
    transport: &str,
) -> SessionInfo {
    let text = |name: &str| {
        let info = said?.info.as_deref()?;
        json::string(json::member(info, name)?.of(info)).map(|text| text.into_owned())
    };
    let identity = caller.identity();
    SessionInfo {
        external,
        client: text("name"),
        client_version: text("version"),
        revision: said.map(|client| client.revision.as_str().to_owned()),
        transport: transport.to_owned(),
        proof: Some(identity.proof.word().to_owned()),
        claims: identity.claims.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect(),
        address: clients::address(caller).map(|address| address.to_string()),
    }
}
