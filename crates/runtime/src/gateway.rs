//! The whole: all backends, all sessions, the catalog, and what they share.

use crate::allowance::Allowance;
use crate::backend::{Backend, Followed};
use crate::backends::Backends;
use crate::catalog_keeper::CatalogKeeper;
use crate::clock::{self, Pulse};
use crate::counters::Counters;
use crate::fact_buffer::FactBuffers;
use crate::holds::Holds;
use crate::link::BoxFuture;
use crate::parked_calls::ParkedCalls;
use crate::peer::Peer;
use crate::reads::Reads;
use crate::runtimes::Runtimes;
use crate::session::Session;
use crate::session_table::SessionTable;
use crate::settings::Settings;
use crate::task_directory::TaskDirectory;
use crate::unwritten::Unwritten;
use crate::webhooks::{Post, Webhooks};
use arc_swap::ArcSwap;
use bytes::Bytes;
use signalbox_engine::catalog::Changed;
use signalbox_engine::fact::{MessageFact, Point, RefusedFact};
use signalbox_engine::front::Mode;
use signalbox_engine::keys::Numbers;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::operations::Operations;
use signalbox_engine::task_calls::TaskCalls;
use signalbox_engine::{
    Budget, Caller, CapSet, Chain, Event, ExchangeId, Fact, FactSink, Fault, FaultKind, Principal, SessionKey,
};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Most refusals before a session that are told of in one second.
pub const MAX_REFUSALS: u32 = 100;
/// How much is told of why.
pub const MAX_REFUSAL_TEXT: usize = 500;
/// How long the last answers have to be written down when the gateway ends, and then to leave.
const ANSWERS_END: Duration = Duration::from_secs(1);
/// How long a listen request waits for backends to follow what it names.
const FOLLOW_WAIT: Duration = Duration::from_secs(5);

/// The gateway.
pub struct Gateway {
    /// The lists.
    pub catalog: CatalogKeeper,
    backends: ArcSwap<Backends>,
    pub(crate) settings: ArcSwap<Settings>,
    /// Held while the backends are replaced, so that two do not undo each other's work.
    pub(crate) replacing: Mutex<()>,
    /// The open sessions.
    pub sessions: SessionTable,
    /// What is counted.
    pub counters: Counters,
    /// On whose behalf the gateway's own connections are opened.
    pub principal: Principal,
    /// Who calls where the gateway calls on its own account.
    pub caller: Caller,
    /// When it began.
    pub started: Instant,
    /// The bytes of messages that it holds, and for whom.
    pub budget: Arc<Budget>,
    /// The calls that wait for input of their clients.
    pub parks: ParkedCalls,
    /// The reads that backends let us keep.
    pub reads: Reads,
    /// Where the tasks of clients of the new era are.
    pub tasks: TaskDirectory,
    /// Where our own tasks run.
    pub runtimes: Runtimes,
    /// The messages that wait for a person.
    pub holds: Holds,
    /// The way to web addresses.
    pub webhooks: Webhooks,
    pub(crate) chain: Chain,
    message_facts: AtomicBool,
    /// Who must have written down what led to a call before it goes to its backend, and to an answer before it leaves.
    durable: Vec<Arc<dyn FactSink>>,
    pub(crate) tracer: Option<Arc<dyn FactSink>>,
    facts: Vec<Arc<dyn FactSink>>,
    pub(crate) fact_buffers: FactBuffers,
    pub(crate) pulse: Pulse,
    pub(crate) numbers: Numbers,
    pub(crate) operations: Operations,
    pub(crate) unwritten: Unwritten,
    pub(crate) task_calls: TaskCalls,
    refusals: Allowance,
    next_session: AtomicU64,
    draining: AtomicBool,
}

/// What a gateway is made of.
pub struct GatewayParts {
    /// Bounds.
    pub settings: Settings,
    /// Backends, in configured order.
    pub backends: Vec<Arc<Backend>>,
    /// Interceptors.
    pub chain: Chain,
    /// Subscribers to facts.
    pub facts: Vec<Arc<dyn FactSink>>,
    /// How web addresses are reached, where interceptors may ask some.
    pub post: Option<Arc<dyn Post>>,
    /// On whose behalf the gateway's own connections are opened.
    pub principal: Principal,
    /// Where the last known lists are kept.
    pub catalog_file: Option<PathBuf>,
}

impl Gateway {
    /// Puts a gateway together; nothing runs yet.
    ///
    /// # Errors
    /// A fault if the system gives no randomness.
    pub fn new(parts: GatewayParts) -> Result<Arc<Self>, Fault> {
        let backends = Backends::new(parts.backends);
        let max_parked_bytes = parts.settings.max_parked_bytes;
        let budget = Budget::new(parts.settings.memory);
        let gateway = Arc::new(Self {
            catalog: CatalogKeeper::new(&backends, parts.catalog_file),
            settings: ArcSwap::from_pointee(parts.settings),
            backends: ArcSwap::from_pointee(backends),
            replacing: Mutex::default(),
            sessions: SessionTable::default(),
            counters: Counters::default(),
            caller: Caller::gateway(parts.principal.clone()),
            principal: parts.principal,
            started: crate::clock::now(),
            budget,
            parks: ParkedCalls::new(max_parked_bytes)?,
            reads: Reads::default(),
            tasks: TaskDirectory::default(),
            runtimes: Runtimes::default(),
            holds: Holds::default(),
            webhooks: Webhooks::new(parts.post),
            chain: parts.chain,
            message_facts: AtomicBool::new(parts.facts.iter().any(|sink| sink.wants_messages())),
            durable: parts.facts.iter().filter(|sink| sink.is_durable()).cloned().collect(),
            tracer: parts.facts.iter().find(|sink| sink.traces()).cloned(),
            facts: parts.facts,
            fact_buffers: FactBuffers::default(),
            pulse: Pulse::default(),
            numbers: Numbers::default(),
            operations: Operations::default(),
            unwritten: Unwritten::default(),
            task_calls: TaskCalls::default(),
            refusals: Allowance::new(MAX_REFUSALS),
            next_session: AtomicU64::new(1),
            draining: AtomicBool::new(false),
        });
        for backend in gateway.backends().iter() {
            backend.attach(&gateway);
        }
        Ok(gateway)
    }

    /// Milliseconds since it began: the clock of its tickets.
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
        tokio::spawn(clock::run(Arc::clone(self)));
    }

    /// Opens a session. `external` is the id its client will hold; a session without one is not kept in the table. `via` is
    /// how the client came, in a word.
    ///
    /// # Errors
    /// A fault if there are too many, or the gateway is shutting down.
    pub fn open_session(
        self: &Arc<Self>,
        caller: Caller,
        mode: Mode,
        external: &str,
        via: &'static str,
    ) -> Result<Arc<Session>, Fault> {
        if self.is_draining() {
            return Err(Fault::new(FaultKind::Draining, "the gateway is shutting down"));
        }
        let kept = mode != Mode::Stateless;
        let most = self.settings().max_sessions;
        if kept && self.sessions.len() >= most {
            Counters::add(&self.counters.sessions_refused);
            let text = format!("{most} sessions are open, which is the limit");
            return Err(Fault::new(FaultKind::Overloaded, text));
        }
        let key = SessionKey(self.next_session.fetch_add(1, Ordering::Relaxed));
        let session = Session::new(Arc::clone(self), key, caller, mode, (external.into(), via));
        if kept {
            session.tell_of_itself();
            Counters::add(&self.counters.sessions_opened);
            self.sessions.insert(&session);
        }
        Ok(session)
    }

    /// The backends as they stand, in configured order.
    #[must_use]
    pub fn backends(&self) -> arc_swap::Guard<Arc<Backends>> {
        self.backends.load()
    }

    pub(crate) fn set_backends(&self, backends: Backends) {
        self.backends.store(Arc::new(backends));
    }

    /// The bounds it works with, as they stand.
    #[must_use]
    pub fn settings(&self) -> arc_swap::Guard<Arc<Settings>> {
        self.settings.load()
    }

    /// The backend of this name.
    #[must_use]
    pub fn backend(&self, name: &str) -> Option<Arc<Backend>> {
        self.backends().get(name).cloned()
    }

    pub(crate) fn no_backend(name: &str) -> Fault {
        let text = format!("backend `{name}` is not in the configuration any more");
        Fault::new(FaultKind::BackendDown, text).with_str("backend", name)
    }

    /// The connections that belong to this session alone.
    pub(crate) fn peers_of(&self, session: SessionKey) -> Vec<Arc<Peer>> {
        self.backends().all().filter_map(|backend| backend.owned(session)).collect()
    }

    pub(crate) fn general_opened(&self, session: &Session) {
        for peer in self.peers_of(session.key) {
            if peer.is_ready() {
                peer.open_general();
            }
        }
    }

    /// Tells the sessions concerned that lists changed: all of them, or those who see this capability set's lists.
    pub(crate) fn tell_lists_changed(&self, changed: Changed, caps: Option<&CapSet>) {
        if !changed.any() {
            return;
        }
        for session in self.sessions.all() {
            let concerned = caps.is_none_or(|caps| caps.is_bare() || session.sees(caps));
            if concerned {
                session.handle(Event::ListsChanged { changed });
            }
        }
    }

    pub(crate) fn listen(
        &self,
        session: &Arc<Session>,
        exchange: ExchangeId,
        resources: &[(Arc<str>, Box<str>)],
        tasks: &[(Arc<str>, Box<str>)],
    ) {
        let mut by_backend: HashMap<&Arc<str>, Followed> = HashMap::new();
        for (backend, uri) in resources {
            by_backend.entry(backend).or_default().uris.push(uri.to_string());
        }
        for (backend, task) in tasks {
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
        // A client that left before its wishes were noted could not take them back.
        if !session.waits_for(exchange) {
            return self.unlisten(session, exchange);
        }
        let session = Arc::clone(session);
        tokio::spawn(async move {
            // A backend that is away follows them as soon as it is back; the client need not wait for that.
            let until = tokio::time::Instant::now() + FOLLOW_WAIT;
            for (backend, refused) in followed {
                let refused = tokio::time::timeout_at(until, refused).await;
                let refused = refused.ok().and_then(Result::ok).unwrap_or_default();
                if !refused.is_empty() {
                    let Followed { uris, tasks } = refused;
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

    /// Asks those who hear of facts again whether any of them wants messages too. Whoever changes its mind says so here.
    pub fn wants_changed(&self) {
        let wanted = self.facts.iter().any(|sink| sink.wants_messages());
        self.message_facts.store(wanted, Ordering::Relaxed);
    }

    /// True where somebody wants to hear of messages and decisions.
    pub(crate) fn message_facts(&self) -> bool {
        self.message_facts.load(Ordering::Relaxed)
    }

    /// True where calls and answers wait until they are written down.
    pub(crate) fn is_durable(&self) -> bool {
        !self.durable.is_empty()
    }

    /// Comes to its end once everything that was told so far is written down by all who must; false where one of them
    /// cannot.
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

    /// Comes to its end when those who are told of messages have room for more, or waiting for it is over. None while
    /// they have. Fronts and links await it before they take the next message.
    #[must_use]
    pub fn room(&self) -> Option<BoxFuture<()>> {
        if self.message_facts() { self.facts.iter().find_map(|sink| sink.room()) } else { None }
    }

    /// Tells facts, in order, to everybody who wants to know. Who has a session calls [`Self::note`] instead.
    pub(crate) fn tell(&self, facts: &[Fact]) {
        for sink in &self.facts {
            sink.facts(facts);
        }
    }

    /// Tells of what was refused before there was a session, with the JSON-RPC error it was answered with, where it was. No
    /// more than so many a second are told of, so that nobody fills a tape with them.
    pub fn refused(&self, caller: &Caller, status: Option<u16>, fault: &Fault, reply: Option<&Bytes>) {
        if !self.message_facts() {
            return;
        }
        if !self.refusals.take(crate::clock::now()) {
            return self.counters.dropped("refusal_fact");
        }
        let at = crate::clock::now();
        if let Some(reply) = reply {
            let passed = MessageFact::new(at, SessionKey::GATEWAY, caller.clone(), Point::ClientOut, reply.clone());
            self.note_own(Fact::Message(MessageFact { number: self.numbers.message(), own: true, ..passed }));
        }
        let detail = fault.message.chars().take(MAX_REFUSAL_TEXT).collect();
        let (caller, session, reason) = (caller.clone(), SessionKey::GATEWAY, fault.reason());
        self.note_own(Fact::Refused(Arc::new(RefusedFact { at, caller, session, status, reason, detail })));
    }

    pub(crate) fn session_closed(&self, session: &Arc<Session>) {
        self.sessions.remove(session);
        if self.message_facts() && session.is_kept() {
            let caller = session.caller.clone();
            let ended = Fact::SessionEnded { at: crate::clock::now(), session: session.key, caller };
            self.note(session, [ended]);
        }
        for backend in self.backends().all() {
            backend.session_closed(session);
        }
    }

    /// True where somebody follows traces, so that headers which say of one are worth a look.
    #[must_use]
    pub fn traces(&self) -> bool {
        self.tracer.is_some()
    }

    /// True once no new work is taken.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Takes no new sessions, waits for calls in flight, then ends every session and backend.
    pub async fn shut_down(&self, within: Duration) {
        self.draining.store(true, Ordering::Relaxed);
        // Nobody is to wait for a person who may be away.
        self.holds.end();
        wait_until(within, || self.counters.in_flight.load(Ordering::Relaxed) <= 0).await;
        // Backends first: what is still in flight fails with an answer, which a session that is closed cannot give.
        // Whoever replaces backends at this moment has done so before, or sees that it is too late.
        drop(self.replacing.lock().unpoisoned());
        for backend in self.backends().all() {
            backend.stop();
        }
        // What has failed just now leaves when it is written down, or is answered with an error.
        wait_until(ANSWERS_END, || self.unwritten.is_empty()).await;
        self.unwritten.give_up();
        wait_until(ANSWERS_END, || self.unwritten.is_empty()).await;
        for session in self.sessions.all() {
            session.close();
        }
        self.settle();
        self.catalog.save().await;
    }

    /// A session id that cannot be guessed: 128 random bits.
    ///
    /// # Errors
    /// A fault if the system gives no randomness.
    pub fn new_session_id() -> Result<String, Fault> {
        let mut bytes = [0_u8; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Fault::new(FaultKind::Internal, format!("no randomness from the system: {error}")))?;
        Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }
}

/// Waits for something that is looked at from time to time, for no longer than this.
async fn wait_until(within: Duration, over: impl Fn() -> bool) {
    let deadline = crate::clock::now() + within;
    while !over() && crate::clock::now() < deadline {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
