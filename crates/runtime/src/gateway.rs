//! The gateway: backends, sessions, the catalog, and the state that they share.

mod ended_rights;
mod fact_delivery;
mod local_answers;
mod parts;
mod refusal_log;
mod stored_sessions;
mod tick;

use crate::backend::{Backend, FollowTargets};
use crate::backends::Backends;
use crate::catalog_keeper::CatalogKeeper;
use crate::clock::Ticker;
use crate::counters::{Counters, network_transport};
use crate::credential_registry::CredentialRegistry;
use crate::fact_buffer::FactBuffers;
use crate::holds::Holds;
use crate::link::BoxFuture;
use crate::parked_calls::ParkedCalls;
use crate::peer::Peer;
use crate::read_cache::SharedReadCache;
use crate::runtimes::Runtimes;
use crate::session::Session;
use crate::session_store::SessionStore;
use crate::session_table::SessionTable;
use crate::settings::Settings;
use crate::task_directory::TaskDirectory;
use crate::unwritten::Unwritten;
use crate::webhooks::Webhooks;
use arc_swap::ArcSwap;
use bytes::Bytes;
pub use parts::{AuditTrail, GatewayParts, Governance, MessageProofs, TransportFace};
use refusal_log::RefusalLog;
pub use refusal_log::{MAX_ADDRESS_REFUSALS, MAX_REFUSALS, MAX_REFUSED_SOURCES, MAX_UNPROVED_REFUSALS};
use signalbox_engine::catalog::Visibility;
use signalbox_engine::fact::{MessageFact, Point, RefusedFact};
use signalbox_engine::front::AuthorizedFollow;
use signalbox_engine::keys::Numbers;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::operations::Operations;
use signalbox_engine::task_calls::TaskCalls;
use signalbox_engine::{
    Budget, Caller, Chain, Event, ExchangeId, Fact, FactSink, Fault, FaultKind, Principal, SessionKey,
};
use signalbox_wire::hex::hex;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum length of a recorded refusal reason, in characters.
pub const MAX_REFUSAL_TEXT: usize = 500;
/// Time limit at shutdown for recording the last answers, and then for sending them.
const ANSWERS_END: Duration = Duration::from_secs(1);
/// Time limit at shutdown for telling backends that their sessions are over.
const SESSIONS_END: Duration = Duration::from_secs(2);
/// Maximum time that a listen request waits for backends to follow the named resources and tasks.
const FOLLOW_WAIT: Duration = Duration::from_secs(5);

/// The gateway. Owns all backends and sessions.
pub struct Gateway {
    pub catalog: CatalogKeeper,
    backends: ArcSwap<Backends>,
    pub(crate) settings: ArcSwap<Settings>,
    /// Held while the backends are replaced, so that two replacements do not undo each other's work.
    pub(crate) replacing: Mutex<()>,
    pub sessions: SessionTable,
    pub counters: Counters,
    /// Principal of the gateway's own connections.
    pub principal: Principal,
    /// Caller of the gateway's own requests.
    pub caller: Caller,
    pub started: Instant,
    /// Random id by which the gateway recognises a backend that leads back to it.
    pub(crate) instance: Arc<str>,
    /// Accounting of the message bytes held, per principal.
    pub budget: Arc<Budget>,
    /// Calls that wait for input from their clients.
    pub parks: ParkedCalls,
    /// Valid credentials of each principal.
    pub presence: CredentialRegistry,
    /// Modern requests whose caller has a credential that can end.
    pub(crate) ending: SessionTable,
    pub reads: SharedReadCache,
    /// Map from tasks of modern clients to their backends.
    pub tasks: TaskDirectory,
    /// Tokio runtimes that the gateway's tasks run on.
    pub runtimes: Runtimes,
    /// Messages held for a person's decision.
    pub holds: Holds,
    pub webhooks: Webhooks,
    pub(crate) chain: Chain,
    pub(crate) visibility: Option<Arc<dyn Visibility>>,
    pub(crate) audit: AuditTrail,
    pub(crate) proof: Option<MessageProofs>,
    pub(crate) governance: Option<Governance>,
    pub(crate) face: Option<TransportFace>,
    message_facts: AtomicBool,
    /// Sinks that must have recorded everything before a call goes to its backend or an answer to its client.
    durable: Vec<Arc<dyn FactSink>>,
    pub(crate) tracer: Option<Arc<dyn FactSink>>,
    facts: Vec<Arc<dyn FactSink>>,
    pub(crate) fact_buffers: FactBuffers,
    pub(crate) ticker: Ticker,
    pub(crate) numbers: Numbers,
    pub(crate) operations: Operations,
    pub(crate) unwritten: Unwritten,
    pub(crate) task_calls: TaskCalls,
    refusals: RefusalLog,
    pub(crate) session_store: Option<SessionStore>,
    pub(crate) next_session: AtomicU64,
    draining: AtomicBool,
}

impl Gateway {
    /// Creates a gateway without starting any task.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn new(parts: GatewayParts) -> Result<Arc<Self>, Fault> {
        let backends = Backends::new(parts.backends);
        let max_parked_bytes = parts.settings.max_parked_bytes;
        let budget = Budget::new(parts.settings.memory);
        let gateway = Arc::new(Self {
            catalog: CatalogKeeper::new(&backends, parts.catalog_file, parts.settings.memory, parts.lists),
            settings: ArcSwap::from_pointee(parts.settings),
            backends: ArcSwap::from_pointee(backends),
            replacing: Mutex::default(),
            sessions: SessionTable::default(),
            counters: Counters::default(),
            caller: Caller::gateway(parts.principal.clone()),
            principal: parts.principal,
            started: crate::clock::now(),
            instance: Self::new_session_id()?.into(),
            budget,
            parks: ParkedCalls::new(max_parked_bytes)?,
            presence: CredentialRegistry::default(),
            ending: SessionTable::default(),
            reads: SharedReadCache::default(),
            tasks: TaskDirectory::default(),
            runtimes: Runtimes::default(),
            holds: Holds::default(),
            webhooks: Webhooks::new(parts.post),
            chain: parts.chain,
            visibility: parts.visibility,
            audit: parts.audit,
            proof: parts.proof,
            governance: parts.governance,
            face: parts.face,
            message_facts: AtomicBool::new(parts.facts.iter().any(|sink| sink.wants_messages())),
            durable: parts.facts.iter().filter(|sink| sink.is_durable()).cloned().collect(),
            tracer: parts.facts.iter().find(|sink| sink.traces()).cloned(),
            facts: parts.facts,
            fact_buffers: FactBuffers::default(),
            ticker: Ticker::default(),
            numbers: Numbers::default(),
            operations: Operations::default(),
            unwritten: Unwritten::default(),
            task_calls: TaskCalls::default(),
            refusals: RefusalLog::default(),
            session_store: parts.session_store,
            next_session: AtomicU64::new(1),
            draining: AtomicBool::new(false),
        });
        for backend in gateway.backends().iter() {
            backend.attach(&gateway);
        }
        Ok(gateway)
    }

    /// Returns milliseconds since the start of the gateway, the time by which tickets expire.
    #[must_use]
    pub fn millis(&self) -> u64 {
        u64::try_from(crate::clock::now().saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX)
    }

    /// Starts every backend and the clock.
    pub fn start(self: &Arc<Self>) {
        self.runtimes.add(tokio::runtime::Handle::current());
        for backend in self.backends().iter() {
            tokio::spawn(Arc::clone(backend).supervise());
        }
        tokio::spawn(Arc::clone(self).run_tick());
    }

    /// Returns the current backends in configured order.
    #[must_use]
    pub fn backends(&self) -> arc_swap::Guard<Arc<Backends>> {
        self.backends.load()
    }

    pub(crate) fn set_backends(&self, backends: Backends) {
        self.backends.store(Arc::new(backends));
    }

    /// Returns the current settings.
    #[must_use]
    pub fn settings(&self) -> arc_swap::Guard<Arc<Settings>> {
        self.settings.load()
    }

    /// Returns the backend of this name.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<Arc<Backend>> {
        self.backends().get(name).cloned()
    }

    pub(crate) fn no_backend(name: &str) -> Fault {
        let text = format!("backend `{name}` is not in the configuration any more");
        Fault::new(FaultKind::BackendDown, text).with_str("backend", name)
    }

    /// Returns the connections that belong to this session alone.
    pub(crate) fn peers_of(&self, session: SessionKey) -> Vec<Arc<Peer>> {
        self.backends().all().flat_map(|backend| backend.owned(session)).collect()
    }

    pub(crate) fn general_opened(&self, session: &Session) {
        for peer in self.peers_of(session.key) {
            if peer.is_ready() {
                peer.open_general();
            }
        }
    }

    pub(crate) fn listen(&self, session: &Arc<Session>, exchange: ExchangeId, follow: &AuthorizedFollow) {
        let mut by_backend: HashMap<&Arc<str>, FollowTargets> = HashMap::new();
        for (backend, uri) in follow.resources() {
            by_backend.entry(backend).or_default().uris.push(uri.to_string());
        }
        for (backend, task) in follow.tasks() {
            by_backend.entry(backend).or_default().tasks.push(task.to_string());
        }
        let mut followed = Vec::new();
        for (backend, wanted) in by_backend {
            if let Some(backend) = self.backend(backend) {
                followed.push((Arc::clone(&backend.name), backend.follow(session, exchange, wanted)));
            }
        }
        if followed.is_empty() {
            return;
        }
        // If the client left before its subscriptions were noted, nothing else would remove them.
        if !session.waits_for(exchange) {
            return self.unlisten(session, exchange);
        }
        let session = Arc::clone(session);
        tokio::spawn(async move {
            // A backend that is down follows them when it is back. The client need not wait for that.
            let until = tokio::time::Instant::now() + FOLLOW_WAIT;
            for (backend, refused) in followed {
                let refused = tokio::time::timeout_at(until, refused).await;
                let refused = refused.ok().and_then(Result::ok).unwrap_or_default();
                if !refused.is_empty() {
                    let FollowTargets { uris, tasks } = refused;
                    session.handle(Event::Unfollowed { exchange, backend, uris, tasks });
                }
            }
            session.handle(Event::Listening { exchange });
        });
    }

    pub(crate) fn unlisten(&self, session: &Arc<Session>, exchange: ExchangeId) {
        for backend in self.backends().all() {
            backend.unfollow(session, exchange);
        }
    }

    /// Checks again whether any sink wants message facts. A sink whose answer changes must call this.
    pub fn wants_changed(&self) {
        let wanted = self.facts.iter().any(|sink| sink.wants_messages());
        self.message_facts.store(wanted, Ordering::Relaxed);
    }

    /// Returns true if a sink wants facts about messages and decisions.
    pub(crate) fn message_facts(&self) -> bool {
        self.message_facts.load(Ordering::Relaxed)
    }

    /// Returns true if calls and answers wait until they are recorded.
    pub(crate) fn is_durable(&self) -> bool {
        !self.durable.is_empty()
    }

    /// Completes once the durable sinks have recorded all facts so far. Resolves to false if one of them cannot.
    pub(crate) fn written(&self) -> impl Future<Output = bool> + Send + use<> {
        let all: Vec<_> = self.durable.iter().map(|sink| sink.written()).collect();
        async move {
            let mut kept = true;
            for written in all {
                kept &= written.await;
            }
            kept
        }
    }

    /// Returns a future that completes when the sinks have space for the facts of a message of this size, or after a
    /// time limit. `None` while they have space. Fronts and links await it before they take the next message.
    #[must_use]
    pub fn room(&self, bytes: usize) -> Option<BoxFuture<()>> {
        if self.message_facts() { self.facts.iter().find_map(|sink| sink.room(bytes)) } else { None }
    }

    /// Sends facts to all sinks, in order. Facts of a session go through [`Self::note`] instead.
    pub(crate) fn send_facts(&self, facts: &[Fact]) {
        for sink in &self.facts {
            sink.facts(facts);
        }
    }

    /// Records a refusal that happened before there was a session, with the JSON-RPC error that answered it, if any.
    /// The number recorded per source and second is limited, so that a flood cannot fill a tape or hide other refusals.
    /// The next recorded refusal of the source carries the number left out before it; without a next one,
    /// [`Self::tell_refusals_left_out`] records it.
    pub fn refused(&self, caller: &Caller, status: Option<u16>, fault: &Fault, reply: Option<&Bytes>) {
        if !self.message_facts() {
            return;
        }
        let at = crate::clock::now();
        let refused = RefusedFact {
            at,
            caller: caller.clone(),
            session: SessionKey::GATEWAY,
            status,
            reason: fault.reason(),
            detail: fault.message.chars().take(MAX_REFUSAL_TEXT).collect(),
            exchange: None,
            unreached: None,
            notification: None,
        };
        let Some(refused) = self.refusals.admit(refused, fault) else { return self.counters.dropped("refusal_fact") };
        if let Some(reply) = reply {
            let passed = MessageFact::new(at, SessionKey::GATEWAY, caller.clone(), Point::ClientOut, reply.clone());
            self.note_own(Fact::Message(MessageFact { number: self.numbers.message(), own: true, ..passed }));
        }
        self.note_own(Fact::Refused(Arc::new(refused)));
    }

    /// Records the last omitted refusal of each source, with the number omitted. Call it about once a second, so that a
    /// flood that stops is still recorded.
    pub fn tell_refusals_left_out(&self) {
        for refused in self.refusals.take_omitted() {
            self.note_own(Fact::Refused(Arc::new(refused)));
        }
    }

    pub(crate) fn session_closed(&self, session: &Arc<Session>) {
        self.sessions.remove(session);
        self.unstore_session(session);
        if session.is_persistent() {
            let lasted = crate::clock::now().saturating_duration_since(session.started);
            self.counters.server_sessions.add(network_transport(session.via), lasted);
        }
        if self.message_facts() && session.is_persistent() {
            let caller = session.caller.clone();
            let ended = Fact::SessionEnded { at: crate::clock::now(), session: session.key, caller };
            self.note(session, [ended]);
        }
        for backend in self.backends().all() {
            backend.session_closed(session);
        }
    }

    /// Returns true if a sink exports traces, in which case fronts read trace headers.
    #[must_use]
    pub fn traces(&self) -> bool {
        self.tracer.is_some()
    }

    /// Returns true once the gateway accepts no new work.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Stops accepting sessions, waits for calls in flight, then ends every session and backend.
    pub async fn shut_down(&self, within: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        // Do not wait for a person who may be away.
        self.holds.end();
        wait_until(within, || self.counters.in_flight.load(Ordering::Relaxed) <= 0).await;
        // Backends stop first, so that calls in flight fail with an answer; a closed session could not send one. A
        // replacement of backends that is under way finishes before. A later one sees that the gateway is draining.
        drop(self.replacing.lock().unpoisoned());
        for backend in self.backends().all() {
            backend.stop();
        }
        // Answers that failed just now are sent once they are recorded, or replaced by an error.
        wait_until(ANSWERS_END, || self.unwritten.is_empty()).await;
        self.unwritten.give_up();
        wait_until(ANSWERS_END, || self.unwritten.is_empty()).await;
        self.sweep_sessions(self.started);
        for session in self.sessions.all() {
            session.close();
        }
        self.tell_refusals_left_out();
        self.settle();
        // Sessions at backends would otherwise stay open there until they expire.
        let backends = self.backends();
        wait_until(SESSIONS_END, || !backends.iter().any(|backend| backend.connector.is_ending_sessions())).await;
        self.flush_sessions().await;
        self.catalog.save().await;
    }

    /// Returns an unguessable session id of 128 random bits.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn new_session_id() -> Result<String, Fault> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Fault::new(FaultKind::Internal, format!("no randomness from the system: {error}")))?;
        Ok(hex(&bytes))
    }
}

/// Polls until `over` returns true, for at most `within`.
async fn wait_until(within: Duration, over: impl Fn() -> bool) {
    let deadline = crate::clock::now() + within;
    while !over() && crate::clock::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
