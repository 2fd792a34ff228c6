//! One front session: everything that the gateway holds for one client.
//!
//! A [`Session`] is a [`FrontMachine`] of the engine behind a lock, with the streams that lead to the client. Fronts
//! with a message, peers with an answer, and timers call [`Session::handle`] on their own thread. There is no task and
//! no mailbox per session:
//!
//! ```text
//!   Event ──► lock ──► machine ──► commands ──┬─► Send, End: pushed to the stream's Outbox ─┐
//!                                             ├─► Fact: noted in the thread's fact buffer ──┴─► unlock
//!                                             └─► all others, after the unlock: backends, timers, holds, listens
//! ```
//!
//! # States
//!
//! Its [`Mode`] decides how long it lives: a pipe or a session of the old era until one side closes it, a request of
//! the new era until it is answered. A client of the old era goes through these states ([`Lifecycle`]); a request of
//! the new era describes itself and needs none of them:
//!
//! ```text
//!   Created ──initialize──► Initializing ──notifications/initialized──► Operational
//!      ▲                         │                                          │
//!      └── an interceptor refuses┘               close, from any state ─────┴──► Closed
//! ```
//!
//! # Invariants
//!
//! - What goes to the client is pushed to its stream under the session's lock, so messages leave in the order in which the
//!   machine decided them. Facts are noted under the same lock, for the same reason.
//! - The session's lock comes before the lock of any backend, and that before the lock of a peer. What backends must know of a
//!   session (whether it has ended, who its client is, when it was last seen) is kept outside the lock.
//! - `ended` is set once, before anything is cleaned up. From then on no backend opens or notes anything for the session.
//! - With strict recording an answer leaves only when it is written down. Until then its call counts as in flight, although
//!   the machine has done with it (`recording`).
//! - Streams are bounded by `max_in_flight` and `max_streams`. An outbox never makes the pusher wait.
//!
//! # What it must never do
//!
//! - Wait for anything while it holds its lock, or give a command to a backend before it is released.
//! - Send a client anything but a [`ToClient`](signalbox_engine::front::ToClient) of its own machine.
//! - Lose a message without counting it (`client_gone`, `slow_client`).

mod batches;
mod commands;
mod handling;
mod intending;
mod recording;
pub(crate) mod request_callers;
mod stream_reader;

use crate::batch::Batches;
use crate::fact_buffer::LastNoted;
use crate::gateway::Gateway;
use crate::outbox::{OUTBOX_BOUND, Out, Outbox};
use arc_swap::{ArcSwap, ArcSwapOption};
use commands::RoundTimers;
pub use intending::AuditTrail;
use signalbox_engine::bridge::capabilities;
use signalbox_engine::budget::Share;
use signalbox_engine::exchange::{Exchange, MethodName};
use signalbox_engine::front::{Lifecycle, Mode};
use signalbox_engine::keys::KeyMap;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{
    BackendUser, Caller, CapSet, Carrier, ClientProfile, Event, ExchangeId, Fault, FrontMachine, Principal, SessionKey,
    StreamId,
};
use signalbox_wire::{Envelope, Era, Kind, RawId};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::{Duration, Instant};
pub use stream_reader::{EventCount, StreamReader};

/// Why a session does not accept a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NotTaken {
    /// The stream that its answer would go to has ended.
    Gone,
    /// The client does not read that stream fast enough.
    Behind,
}

/// A request that waits for an answer.
#[derive(Clone, Debug)]
pub struct CallInFlight {
    /// Its number within the session.
    pub exchange: ExchangeId,
    /// The method.
    pub method: MethodName,
    /// The tool, prompt or URI, as the client knows it.
    pub subject: Option<Box<str>>,
    /// The backend, if it is known.
    pub backend: Option<Arc<str>>,
    /// When it came.
    pub since: Instant,
}

struct SessionState {
    machine: FrontMachine,
    /// Answers that wait until they are recorded.
    unwritten: usize,
    streams: KeyMap<StreamId, Arc<Outbox>>,
    batches: Batches,
    general: Option<StreamId>,
    next_stream: u64,
    rounds: RoundTimers,
}

impl SessionState {
    fn forget_timers(&mut self) {
        let machine = &self.machine;
        self.rounds.retain(|exchange| machine.exchange(exchange).is_some());
    }
}

/// The session.
pub struct Session {
    /// Its number.
    pub key: SessionKey,
    /// Who opened it.
    pub caller: Caller,
    /// On whose behalf it acts.
    pub principal: Principal,
    /// The id that a client holds, if the transport gives it one.
    pub external: Box<str>,
    /// How its client came: `http`, `sse`, `websocket`, `stdio` or `tcp`.
    pub via: &'static str,
    /// When it began.
    pub started: Instant,
    pub(crate) mode: Mode,
    pub(crate) gateway: Arc<Gateway>,
    last_used: AtomicU64,
    // Read without the session's lock, since backends ask while they hold their own.
    client: OnceLock<Arc<ClientProfile>>,
    ended: AtomicBool,
    /// The number of its first stream in this process.
    first_stream: AtomicU64,
    pub(crate) noted: LastNoted,
    event_streams: Arc<AtomicUsize>,
    share: OnceLock<Arc<Share>>,
    /// How many streams somebody reads.
    readers: AtomicUsize,
    /// The user that backends take the sender of the last request for.
    user: ArcSwap<BackendUser>,
    /// Set once the credential of its caller has ended; the next one is its successor.
    outlived: AtomicBool,
    /// The reason for which its caller lost what it had open, once that has happened.
    lapse: OnceLock<&'static str>,
    /// The caller whose rights count for what belongs to no request, since the opener's credential has ended.
    successor: ArcSwapOption<Caller>,
    inner: Mutex<SessionState>,
}

impl Session {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        key: SessionKey,
        (caller, principal): (Caller, Principal),
        mode: Mode,
        (external, via): (Box<str>, &'static str),
    ) -> Arc<Self> {
        let machine = FrontMachine::new(key, caller.clone(), mode).acting_for(principal.clone());
        let user = ArcSwap::from_pointee(BackendUser::of(principal.clone(), &caller));
        Arc::new(Self {
            key,
            user,
            outlived: AtomicBool::new(false),
            lapse: OnceLock::new(),
            successor: ArcSwapOption::empty(),
            principal,
            caller,
            external,
            via,
            started: crate::clock::now(),
            mode,
            gateway,
            last_used: AtomicU64::new(0),
            client: OnceLock::new(),
            ended: AtomicBool::new(false),
            first_stream: AtomicU64::new(1),
            noted: LastNoted::default(),
            event_streams: Arc::default(),
            share: OnceLock::new(),
            readers: AtomicUsize::new(0),
            inner: Mutex::new(SessionState {
                machine,
                unwritten: 0,
                streams: KeyMap::default(),
                batches: Batches::default(),
                general: None,
                next_stream: 1,
                rounds: RoundTimers::default(),
            }),
        })
    }

    /// Goes on with what the client declared to an earlier process. Streams get numbers that none of that
    /// process can have had.
    pub(crate) fn restore(&self, client: Arc<ClientProfile>, level: Option<LogLevel>) {
        let first = crate::clock::unix_millis().max(1);
        let mut inner = self.lock();
        inner.machine.restore(Arc::clone(&client), level);
        inner.next_stream = first;
        self.first_stream.store(first, Ordering::Relaxed);
        if self.client.set(client).is_ok() {
            self.gateway.note(self, self.introduction());
        }
    }

    /// True if a stream of this number belongs to an earlier process, which had this session before.
    #[must_use]
    pub fn is_before_restart(&self, stream: u64) -> bool {
        stream < self.first_stream.load(Ordering::Relaxed)
    }

    /// The memory that messages of this session may take up.
    pub fn share(&self) -> &Arc<Share> {
        self.share.get_or_init(|| self.gateway.budget.session(&self.principal))
    }

    /// Opens a stream toward the client for the answer to one message. `None` when the session has too many.
    #[must_use]
    pub fn open_stream(self: &Arc<Self>) -> Option<StreamReader> {
        let mut inner = self.lock();
        let settings = self.gateway.settings();
        if inner.streams.len() >= settings.max_in_flight + settings.max_streams {
            return None;
        }
        let id = StreamId(inner.next_stream);
        inner.next_stream += 1;
        let outbox = Arc::new(Outbox::default());
        inner.streams.insert(id, Arc::clone(&outbox));
        self.readers.fetch_add(1, Ordering::Relaxed);
        Some(StreamReader::new(self, id, outbox))
    }

    /// Opens a stream for a client that accepts nothing but the answer. Other messages go to another stream, or
    /// are refused and counted.
    #[must_use]
    pub fn open_answer_stream(self: &Arc<Self>) -> Option<StreamReader> {
        let reader = self.open_stream()?.for_answers_only();
        self.handle(Event::AnswersOnly { stream: reader.id() });
        Some(reader)
    }

    /// Opens the stream for messages that belong to no call. It replaces an earlier one, which is closed.
    #[must_use]
    pub fn open_general(self: &Arc<Self>) -> Option<StreamReader> {
        let reader = self.open_stream()?;
        let before = {
            let mut inner = self.lock();
            let before = inner.general.replace(reader.id());
            before.and_then(|id| inner.streams.remove(&id))
        };
        if let Some(before) = before {
            before.close();
        }
        self.handle(Event::GeneralStream { stream: reader.id() });
        self.gateway.general_opened(self);
        Some(reader)
    }

    /// Takes a message of the client, whose answer goes to the stream.
    pub fn receive(self: &Arc<Self>, stream: &StreamReader, message: Envelope) {
        self.receive_with(stream, message, Carrier::default());
    }

    /// Takes a message that came with headers, which may name the trace that it belongs to.
    pub fn receive_with(self: &Arc<Self>, stream: &StreamReader, message: Envelope, carrier: Carrier<'_>) {
        let now = self.touch();
        self.handle_at(Event::Received { stream: stream.id(), message }, carrier, now);
    }

    /// Answers something that came on a stream with an error: it is not a message, or is not accepted now.
    pub fn refuse(self: &Arc<Self>, stream: &StreamReader, id: Option<RawId>, fault: Fault) {
        self.handle(Event::Unreadable { stream: stream.id(), id, era: Era::Legacy, fault });
    }

    /// Takes a message of a client that gets all answers on the general stream, as on a pipe.
    ///
    /// # Errors
    /// If that stream is gone, or its reader is so far behind that no answer should be added.
    pub fn receive_on_general(self: &Arc<Self>, message: &Envelope, carrier: Carrier<'_>) -> Result<(), NotTaken> {
        let stream = self.general_for(message.kind() == Kind::Request)?;
        let now = self.touch();
        self.handle_at(Event::Received { stream, message: message.clone() }, carrier, now);
        Ok(())
    }

    /// The general stream, if it is open and has room for an answer, should there be one.
    fn general_for(&self, answer: bool) -> Result<StreamId, NotTaken> {
        let inner = self.lock();
        let open = inner.general.and_then(|id| inner.streams.get(&id).map(|outbox| (id, outbox)));
        match open.filter(|(_, outbox)| !outbox.is_closed()) {
            None => Err(NotTaken::Gone),
            Some((_, outbox)) if answer && outbox.len() >= OUTBOX_BOUND => Err(NotTaken::Behind),
            Some((id, _)) => Ok(id),
        }
    }

    /// Which eras it serves, and how.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Feeds the machine one event and does what it asks for.
    pub fn handle(self: &Arc<Self>, event: Event) {
        self.handle_at(event, Carrier::default(), crate::clock::now());
    }

    /// Notes that a call is sent to its backend again.
    pub(crate) fn retried(self: &Arc<Self>, exchange: ExchangeId) {
        self.handle(Event::Retried { exchange });
    }

    /// Closes the client's stream for now because the backend closed the stream of this call, if the client's revision
    /// knows how to come back for the rest. `retry` is the wait that the backend named.
    pub(crate) fn part(&self, exchange: ExchangeId, retry: Option<Duration>) {
        let inner = self.lock();
        let knows = inner.machine.client().is_some_and(|client| client.revision.priming_event());
        let stream = inner.machine.exchange(exchange).map(|exchange| exchange.stream);
        if let Some(outbox) =
            stream.filter(|_| knows && self.mode == Mode::Session).and_then(|id| inner.streams.get(&id))
        {
            outbox.push(Out::parting(retry), true);
        }
    }

    /// What the client said about itself.
    #[must_use]
    pub fn client(&self) -> Option<Arc<ClientProfile>> {
        self.client.get().cloned()
    }

    /// True if the session has as many event streams open as it may.
    #[must_use]
    pub fn at_stream_limit(&self) -> bool {
        self.event_streams.load(Ordering::Relaxed) >= self.gateway.settings().max_streams
    }

    /// True while its client reads a stream, be it only for the answer to a request.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// When its client last sent something.
    #[must_use]
    pub fn last_seen(&self) -> Instant {
        self.started + Duration::from_millis(self.last_used.load(Ordering::Relaxed))
    }

    /// True once the session is over: nothing may be opened for it any more.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// True if this session is shown the lists that depend on these capabilities.
    #[must_use]
    pub fn sees(&self, caps: &CapSet) -> bool {
        self.lock().machine.sees(caps)
    }

    /// True if this is an exchange of the new era whose client did not declare the capability for this question.
    #[must_use]
    pub fn has_not_declared(&self, exchange: ExchangeId, method: &str, params: &[u8]) -> bool {
        let inner = self.lock();
        let exchange = inner.machine.exchange(exchange).filter(|exchange| exchange.era == Era::Modern);
        let client = exchange.and_then(|exchange| exchange.client.as_ref());
        client.is_some_and(|client| !capabilities::allows(&client.capabilities, method, params))
    }

    /// True if an old backend of this name gave the session this task.
    #[must_use]
    pub fn owns_task(&self, backend: &str, task: &str) -> bool {
        self.lock().machine.owns_task(backend, task, crate::clock::now())
    }

    /// True while somebody waits for this exchange.
    #[must_use]
    pub fn waits_for(&self, exchange: ExchangeId) -> bool {
        self.lock().machine.exchange(exchange).is_some()
    }

    /// The capabilities that came with a request, or with the session.
    #[must_use]
    pub fn caps_of(&self, exchange: ExchangeId) -> CapSet {
        self.lock().machine.selector(exchange).caps
    }

    /// The level set by the client.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        self.lock().machine.log_level()
    }

    /// The requests that wait for an answer, the oldest first.
    #[must_use]
    pub fn calls(&self) -> Vec<CallInFlight> {
        let inner = self.lock();
        let call = |exchange: &Exchange| CallInFlight {
            exchange: exchange.id,
            method: exchange.method.clone(),
            subject: exchange.subject.clone(),
            backend: exchange.backend.clone(),
            since: exchange.started,
        };
        inner.machine.exchanges().into_iter().map(call).collect()
    }

    /// The state of its life cycle.
    #[must_use]
    pub fn state(&self) -> Lifecycle {
        self.lock().machine.state()
    }

    /// True if the client has a stream for messages that belong to no call.
    #[must_use]
    pub fn has_general(&self) -> bool {
        self.lock().general.is_some()
    }

    /// How many requests wait for an answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let inner = self.lock();
        inner.machine.in_flight() + inner.unwritten
    }

    /// How long the client has been silent; zero while a stream is open or a request is in flight.
    #[must_use]
    pub fn idle(&self) -> Duration {
        let inner = self.lock();
        if !inner.streams.is_empty() || inner.machine.in_flight() + inner.unwritten > 0 {
            return Duration::ZERO;
        }
        let used = Duration::from_millis(self.last_used.load(Ordering::Relaxed));
        crate::clock::now().saturating_duration_since(self.started).saturating_sub(used)
    }

    /// Notes that the client sent something, and returns the time.
    fn touch(&self) -> Instant {
        let now = crate::clock::now();
        let millis = u64::try_from(now.saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(millis, Ordering::Relaxed);
        now
    }

    /// Ends the session and its own backend connections.
    pub fn close(self: &Arc<Self>) {
        if self.ended.swap(true, Ordering::AcqRel) {
            return;
        }
        self.handle(Event::Close);
        let streams: Vec<Arc<Outbox>> = self.lock().streams.drain().map(|(_, outbox)| outbox).collect();
        for outbox in streams {
            outbox.close();
        }
        self.gateway.session_closed(self);
    }

    fn gone(self: &Arc<Self>, stream: StreamId, answers_only: bool) {
        let known = {
            let mut inner = self.lock();
            if inner.general == Some(stream) {
                inner.general = None;
            }
            inner.batches.forget(stream);
            inner.streams.remove(&stream).is_some()
        };
        // The machine need not know of a stream that ended with its answer.
        if known || answers_only {
            self.handle(Event::Gone { stream });
        }
    }

    /// Tells the machine something that no event says.
    pub(crate) fn with_machine(&self, tell: impl FnOnce(&mut FrontMachine)) {
        tell(&mut self.lock().machine);
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.inner.lock().unpoisoned()
    }
}
