//! Collects sessions, clients and backends from a tape, and builds the case of each message for the rules.

use super::open_exchange::OpenExchange;
use signalbox_engine::bridge::{self, CallProgress, RevisionPair};
use signalbox_engine::catalog::NameStyle;
use signalbox_engine::chain::{Case, Phase};
use signalbox_engine::keys::{ExchangeId, SessionKey, StreamId};
use signalbox_engine::record::{BackendOffer, SessionInfo};
use signalbox_engine::subject_names::style_of;
use signalbox_engine::{Caller, Exchange, Principal, Proof};
use signalbox_wire::{Edits, Envelope, Era, RawId, Revision, json, method};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

/// Maximum number of sessions, clients and names stored.
const MAX_ENTRIES: usize = 100_000;

/// Time at which a message is evaluated.
#[derive(Copy, Clone, Debug)]
pub(super) struct Moment {
    pub now: Instant,
    /// Time on the tape's clock.
    pub at: u64,
}

#[derive(Debug)]
struct Session {
    info: SessionInfo,
    started: u64,
}

/// Sessions, clients and backends seen on the tape so far.
#[derive(Default, Debug)]
pub(super) struct TapeContext {
    sessions: HashMap<u64, Session>,
    order: VecDeque<u64>,
    clients: HashMap<u64, SessionInfo>,
    /// Revision of each backend.
    revisions: HashMap<Arc<str>, String>,
    /// Backend of each name and URI that clients use.
    routes: HashMap<Arc<str>, Arc<str>>,
}

impl TapeContext {
    pub fn session(&mut self, number: u64, at: u64, info: SessionInfo) {
        if let Some(known) = self.sessions.get_mut(&number) {
            known.info = info;
            return;
        }
        self.sessions.insert(number, Session { info, started: at });
        self.order.push_back(number);
        if self.order.len() > MAX_ENTRIES
            && let Some(oldest) = self.order.pop_front()
        {
            self.sessions.remove(&oldest);
        }
    }

    pub fn client(&mut self, number: u64, info: SessionInfo) {
        if self.clients.len() < MAX_ENTRIES {
            self.clients.insert(number, info);
        }
    }

    /// Records what a backend offers. A plain name belongs to the first backend that offers it.
    pub fn backend(&mut self, seen: &BackendOffer) {
        if let Some(revision) = &seen.revision {
            self.revisions.insert(Arc::clone(&seen.backend), revision.clone());
        }
        for (list, name) in [("tools", "name"), ("prompts", "name"), ("resources", "uri")] {
            let part = seen.parts.iter().find(|(part, _)| part == list).map(|(_, bytes)| bytes);
            for item in part.into_iter().flat_map(|bytes| json::elements(bytes).map(|span| span.of(bytes))) {
                if let Some(text) = json::member(item, name).and_then(|span| json::string(span.of(item))) {
                    self.route(&text, &seen.backend);
                }
            }
        }
    }

    /// Records the backend of a name, unless it has one.
    pub fn route(&mut self, subject: &str, backend: &Arc<str>) {
        if self.routes.len() < MAX_ENTRIES && !self.routes.contains_key(subject) {
            self.routes.insert(subject.into(), Arc::clone(backend));
        }
    }

    fn backend_of(&self, open: &OpenExchange) -> Option<Arc<str>> {
        let subject = || open.subject.as_deref().filter(|_| open.needs_backend());
        let qualified = |name: &str| self.revisions.keys().find(|backend| belongs_to(name, backend)).cloned();
        let guessed = || subject().and_then(|name| self.routes.get(name).cloned().or_else(|| qualified(name)));
        open.backend.clone().or_else(guessed)
    }

    pub fn revision(&self, open: &OpenExchange) -> Option<&str> {
        let session = open.session.and_then(|number| self.sessions.get(&number)).map(|session| &session.info);
        let client = open.client.and_then(|number| self.clients.get(&number));
        session.or(client)?.revision.as_deref()
    }

    /// Translates a backend's answer to the client's revision. Returns `None` if that needs more than the message: a
    /// modern client's answer also names the gateway.
    pub fn translated(&self, open: &OpenExchange, message: Envelope) -> Option<Envelope> {
        let backend = open.backend.as_ref().and_then(|name| self.revisions.get(name));
        let client = Revision::parse(self.revision(open)?)?;
        let revisions = RevisionPair { client, backend: Revision::parse(backend?)? };
        if revisions.client == revisions.backend {
            return Some(message);
        }
        let mut edits = Edits::new();
        let method = open.method.as_deref().unwrap_or_default();
        let reach = bridge::answer(method, revisions, &message, &mut edits, &mut Vec::new()).ok()?;
        let fits = revisions.client.era() == Era::Legacy && reach == CallProgress::Whole;
        fits.then(|| Envelope::parse(edits.apply(message.bytes())).ok()).flatten()
    }

    /// Builds the case that the gateway would present to its interceptors, and passes it to `show`.
    pub fn with_case<T>(
        &self,
        open: &OpenExchange,
        phase: Phase,
        can_wait: bool,
        message: &Envelope,
        moment: Moment,
        show: impl FnOnce(&Case<'_>) -> T,
    ) -> T {
        let caller = Caller::of(Principal::named(&open.principal), Proof::Unproved, "");
        let backend = self.backend_of(open);
        let exchange = open.exchange.map(|number| exchange(open, number, &caller, backend.clone(), moment));
        let session = open.session.and_then(|number| self.sessions.get(&number));
        // A tape has a hash of the id or no id at all.
        let id = session.filter(|session| session.info.transport != "stdio").map(|session| {
            let id = session.info.external.clone();
            id.unwrap_or_else(|| format!("hmac:{}", open.session.unwrap_or_default()))
        });
        let age = session.map(|session| moment.at.saturating_sub(session.started)).unwrap_or_default();
        show(&Case {
            phase,
            message,
            exchange: exchange.as_ref(),
            caller: &caller,
            acts_for: caller.principal(),
            session: id.as_deref(),
            session_started: moment.now.checked_sub(std::time::Duration::from_nanos(age)).unwrap_or(moment.now),
            revision: self.revision(open),
            backend: backend.as_deref(),
            definition: None,
            attempt: 1,
            round: open.round.unwrap_or(1),
            can_wait,
            by_task: false,
            task_tool: None,
            now: moment.now,
            unix_ms: moment.at / 1_000_000,
        })
    }
}

fn exchange(open: &OpenExchange, number: u64, caller: &Caller, backend: Option<Arc<str>>, moment: Moment) -> Exchange {
    let id = ExchangeId(number);
    Exchange {
        id,
        session: SessionKey(open.session.unwrap_or_default()),
        caller: caller.clone(),
        operation: id,
        round: open.round.unwrap_or(1),
        attempt: 1,
        consulted: false,
        asks: false,
        client_id: RawId::string(""),
        stream: StreamId(0),
        stream_open: true,
        era: Era::Legacy,
        client: None,
        log_level: None,
        method: open.method.as_deref().unwrap_or_default().to_owned().into(),
        subject: open.subject.as_deref().map(Box::from),
        asked_name: None,
        own_name: own_name(open, backend.as_deref()),
        completes_resource: completes_resource(open),
        completed_template: None,
        backend,
        progress_token: None,
        renamed_uri: None,
        read: None,
        held_progress: 0,
        wants_task: false,
        started: moment.now,
        bytes_in: 0,
        trace: None,
        unreached: None,
    }
}

/// Returns the backend's own name of the subject: from the request as sent to the backend, or with the backend's prefix
/// removed.
fn own_name(open: &OpenExchange, backend: Option<&str>) -> Option<Box<str>> {
    let sent = open.as_sent_on().and_then(|image| image.shown("params"));
    let place = match (open.method.as_deref().unwrap_or_default(), completes_resource(open)) {
        (method::COMPLETION_COMPLETE, true) => "/ref/uri",
        (method::COMPLETION_COMPLETE, false) => "/ref/name",
        (method, _) if style_of(method) == NameStyle::Uri => "/uri",
        _ => "/name",
    };
    if let Some(name) = sent.as_ref().and_then(|params| params.pointer(place)?.as_str()) {
        return Some(name.into());
    }
    let (subject, backend) = (open.subject.as_deref()?, backend?);
    let own = subject.strip_prefix(backend).and_then(|rest| rest.strip_prefix("__").or(rest.strip_prefix('+')));
    Some(own.unwrap_or(subject).into())
}

/// Returns `true` for a completion request about a resource.
fn completes_resource(open: &OpenExchange) -> bool {
    let params = || open.request.as_ref().and_then(|image| image.shown("params"));
    open.method.as_deref() == Some(method::COMPLETION_COMPLETE)
        && params().is_some_and(|params| params.pointer("/ref/type").is_some_and(|kind| kind == "ref/resource"))
}

fn belongs_to(name: &str, backend: &str) -> bool {
    name.strip_prefix(backend).is_some_and(|rest| rest.starts_with("__") || rest.starts_with('+'))
}

/// Returns `true` if results carry their type in this revision.
pub(super) fn has_result_types(revision: Option<&str>) -> bool {
    revision.and_then(Revision::parse).is_some_and(Revision::result_type)
}
