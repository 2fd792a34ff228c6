//! One client session: the state that the gateway holds for one client.
//!
//! A [`Session`] is a [`FrontMachine`] of the engine behind a lock, plus the streams to the client. Fronts (with a
//! message), peers (with an answer) and timers call [`Session::handle`] on their own thread. A session has no task and
//! no mailbox of its own:
//!
//! ```text
//!   Event ──► lock ──► machine ──► commands ──┬─► Send, End: pushed to the stream's Outbox ─┐
//!                                             ├─► Fact: noted in the thread's fact buffer ──┴─► unlock
//!                                             └─► all others, after the unlock: backends, timers, holds, listens
//! ```
//!
//! # States
//!
//! The [`Mode`] sets the lifetime: a pipe or a legacy session lives until one side closes it, a stateless request until
//! it is answered. A legacy client goes through these states ([`Lifecycle`]); a modern request describes itself and
//! needs none of them:
//!
//! ```text
//!   Created ──initialize──► Initializing ──notifications/initialized──► Operational
//!      ▲                         │                                          │
//!      └── an interceptor refuses┘               close, from any state ─────┴──► Closed
//! ```
//!
//! # Invariants
//!
//! - Messages to the client are pushed to their stream under the session lock, so they leave in the order in which the
//!   machine decided them. Facts are noted under the same lock, for the same reason.
//! - Lock order: session, then backend, then peer. What backends read of a session (whether it has ended, its client,
//!   when the client was last seen) is kept outside the lock.
//! - `ended` is set once, before any cleanup. From then on no backend opens or notes anything for the session.
//! - With strict recording an answer leaves only after it is recorded. Until then its call counts as in flight,
//!   although the machine is done with it (`recording`).
//! - The number of streams is bounded by `max_in_flight` and `max_streams`. Pushing to an outbox never blocks.
//!
//! # A session must never
//!
//! - Wait while it holds its lock, or give a command to a backend before the lock is released.
//! - Send a client anything but a [`ToClient`](signalbox_engine::front::ToClient) of its own machine.
//! - Lose a message without counting it (`client_gone`, `slow_client`).

mod batches;
mod commands;
mod dialect;
mod handling;
mod hold;
mod intents;
mod recording;
pub(crate) mod request_callers;
mod round_timers;
mod stream_reader;

use crate::batch::Batches;
use crate::fact_buffer::LastBuffer;
use crate::gateway::Gateway;
use crate::outbox::{OUTBOX_BOUND, Outbox, OutgoingMessage};
use arc_swap::{ArcSwap, ArcSwapOption};
use round_timers::RoundTimers;
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

/// Reason why a session does not accept a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ReceiveError {
    /// The stream for the answer has ended.
    Gone,
    /// The client reads that stream too slowly.
    Behind,
}

/// A request that is waiting for its answer.
#[derive(Clone, Debug)]
pub struct CallInFlight {
    /// Number of the exchange within the session.
    pub exchange: ExchangeId,
    pub method: MethodName,
    /// Tool, prompt or URI, as the client knows it.
    pub subject: Option<Box<str>>,
    /// Backend, once the request has been routed.
    pub backend: Option<Arc<str>>,
    /// Time at which the request arrived.
    pub since: Instant,
}

struct SessionState {
    machine: FrontMachine,
    /// Number of answers that wait until they are recorded.
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

/// A client session. See the [module documentation](self).
pub struct Session {
    pub key: SessionKey,
    /// Caller that opened the session.
    pub caller: Caller,
    /// Principal on whose behalf the session acts.
    pub principal: Principal,
    /// Session id that the client holds. Empty if the transport has none.
    pub external: Box<str>,
    /// Transport of the client: `http`, `sse`, `websocket`, `stdio` or `tcp`.
    pub via: &'static str,
    pub started: Instant,
    pub(crate) mode: Mode,
    pub(crate) gateway: Arc<Gateway>,
    last_used: AtomicU64,
    // Read without the session lock, because backends read it while they hold their own.
    client: OnceLock<Arc<ClientProfile>>,
    ended: AtomicBool,
    /// Number of the first stream of this process. Lower numbers belong to an earlier process.
    first_stream: AtomicU64,
    pub(crate) noted: LastBuffer,
    event_streams: Arc<AtomicUsize>,
    share: OnceLock<Arc<Share>>,
    /// Number of streams that are being read.
    readers: AtomicUsize,
    /// Backend user that stands for the sender of the last request.
    user: ArcSwap<BackendUser>,
    /// Set once the credential of the caller has ended. The next valid caller then becomes the successor.
    awaits_successor: AtomicBool,
    /// Reason why the calls and streams of the caller were ended, if they were.
    lapse: OnceLock<&'static str>,
    /// Caller whose rights apply outside any request, once the credential of the opener has ended.
    successor: ArcSwapOption<Caller>,
    inner: Mutex<SessionState>,
}

impl Session {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        key: SessionKey,
        caller: Caller,
        principal: Principal,
        mode: Mode,
        external: Box<str>,
        via: &'static str,
    ) -> Arc<Self> {
        let machine = FrontMachine::new(key, caller.clone(), mode).acting_for(principal.clone());
        let user = ArcSwap::from_pointee(BackendUser::of(principal.clone(), &caller));
        Arc::new(Self {
            key,
            user,
            awaits_successor: AtomicBool::new(false),
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
            noted: LastBuffer::default(),
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

    /// Restores what the client declared to an earlier process. New streams get numbers that the earlier process cannot
    /// have used.
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

    /// Returns true if the stream number belongs to an earlier process that had this session.
    #[must_use]
    pub fn is_before_restart(&self, stream: u64) -> bool {
        stream < self.first_stream.load(Ordering::Relaxed)
    }

    /// Returns the memory budget for messages of this session.
    pub fn share(&self) -> &Arc<Share> {
        self.share.get_or_init(|| self.gateway.budget.session(&self.principal))
    }

    /// Opens a stream to the client for the answer to one message. Returns `None` if the session has too many streams.
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

    /// Opens a stream for a client that accepts only the answer. Other messages go to another stream, or are refused
    /// and counted.
    #[must_use]
    pub fn open_answer_stream(self: &Arc<Self>) -> Option<StreamReader> {
        let reader = self.open_stream()?.for_answers_only();
        self.handle(Event::AnswersOnly { stream: reader.id() });
        Some(reader)
    }

    /// Opens the stream for messages that belong to no call. Replaces and closes an earlier one.
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

    /// Handles a message of the client. The answer goes to `stream`.
    pub fn receive(self: &Arc<Self>, stream: &StreamReader, message: Envelope) {
        self.receive_with(stream, message, Carrier::default());
    }

    /// Handles a message that came with headers, which may name its trace.
    pub fn receive_with(self: &Arc<Self>, stream: &StreamReader, message: Envelope, carrier: Carrier<'_>) {
        let now = self.touch();
        self.handle_at(Event::Received { stream: stream.id(), message }, carrier, now);
    }

    /// Answers with an error something that is not a message, or that is not accepted now.
    pub fn refuse(self: &Arc<Self>, stream: &StreamReader, id: Option<RawId>, fault: Fault) {
        self.handle(Event::Unreadable { stream: stream.id(), id, era: Era::Legacy, fault });
    }

    /// Handles a message of a client that gets all answers on the general stream, as on a pipe.
    ///
    /// # Errors
    /// If that stream has ended, or is too full for another answer.
    pub fn receive_on_general(self: &Arc<Self>, message: &Envelope, carrier: Carrier<'_>) -> Result<(), ReceiveError> {
        let stream = self.general_for(message.kind() == Kind::Request)?;
        let now = self.touch();
        self.handle_at(Event::Received { stream, message: message.clone() }, carrier, now);
        Ok(())
    }

    /// Returns the general stream if it is open. If an answer is expected, the stream must also have space for it.
    fn general_for(&self, answer: bool) -> Result<StreamId, ReceiveError> {
        let inner = self.lock();
        let open = inner.general.and_then(|id| inner.streams.get(&id).map(|outbox| (id, outbox)));
        match open.filter(|(_, outbox)| !outbox.is_closed()) {
            None => Err(ReceiveError::Gone),
            Some((_, outbox)) if answer && outbox.len() >= OUTBOX_BOUND => Err(ReceiveError::Behind),
            Some((id, _)) => Ok(id),
        }
    }

    /// Returns the mode, which says which eras the session serves and how long it lives.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Feeds one event to the machine and carries out the resulting commands.
    pub fn handle(self: &Arc<Self>, event: Event) {
        self.handle_at(event, Carrier::default(), crate::clock::now());
    }

    /// Records that a call is sent to its backend again.
    pub(crate) fn retried(self: &Arc<Self>, exchange: ExchangeId) {
        self.handle(Event::Retried { exchange });
    }

    /// Closes the client's stream after the backend has closed the stream of this call, if the client's revision lets
    /// it resume. `retry` is the delay that the backend named.
    pub(crate) fn pause_stream(&self, exchange: ExchangeId, retry: Option<Duration>) {
        let inner = self.lock();
        let knows = inner.machine.client().is_some_and(|client| client.revision.priming_event());
        let stream = inner.machine.exchange(exchange).map(|exchange| exchange.stream);
        if let Some(outbox) =
            stream.filter(|_| knows && self.mode == Mode::Session).and_then(|id| inner.streams.get(&id))
        {
            outbox.push(OutgoingMessage::parting(retry), true);
        }
    }

    /// Returns what the client declared about itself.
    #[must_use]
    pub fn client(&self) -> Option<Arc<ClientProfile>> {
        self.client.get().cloned()
    }

    /// Returns true if the session has reached its limit of event streams.
    #[must_use]
    pub fn at_stream_limit(&self) -> bool {
        self.event_streams.load(Ordering::Relaxed) >= self.gateway.settings().max_streams
    }

    /// Returns true while the client reads a stream, even one for a single answer.
    #[must_use]
    pub fn is_connected(&self) -> bool {
        self.readers.load(Ordering::Relaxed) > 0
    }

    /// Returns the time when the client last sent something.
    #[must_use]
    pub fn last_seen(&self) -> Instant {
        self.started + Duration::from_millis(self.last_used.load(Ordering::Relaxed))
    }

    /// Returns true once the session has ended. Nothing may be opened for it from then on.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    /// Returns true if the session sees the lists that depend on these capabilities.
    #[must_use]
    pub fn sees(&self, caps: &CapSet) -> bool {
        self.lock().machine.sees(caps)
    }

    /// Returns true for a modern exchange whose client did not declare the capability that this question needs.
    #[must_use]
    pub fn has_not_declared(&self, exchange: ExchangeId, method: &str, params: &[u8]) -> bool {
        let inner = self.lock();
        let exchange = inner.machine.exchange(exchange).filter(|exchange| exchange.era == Era::Modern);
        let client = exchange.and_then(|exchange| exchange.client.as_ref());
        client.is_some_and(|client| !capabilities::allows(&client.capabilities, method, params))
    }

    /// Returns true if the legacy backend of this name gave the task to this session.
    #[must_use]
    pub fn owns_task(&self, backend: &str, task: &str) -> bool {
        self.lock().machine.owns_task(backend, task, crate::clock::now())
    }

    /// Returns true while a client waits for this exchange.
    #[must_use]
    pub fn waits_for(&self, exchange: ExchangeId) -> bool {
        self.lock().machine.exchange(exchange).is_some()
    }

    /// Returns the capabilities that were declared with the request, or else with the session.
    #[must_use]
    pub fn caps_of(&self, exchange: ExchangeId) -> CapSet {
        self.lock().machine.selector(exchange).caps
    }

    /// Returns the log level set by the client.
    #[must_use]
    pub fn log_level(&self) -> Option<LogLevel> {
        self.lock().machine.log_level()
    }

    /// Returns the requests that wait for an answer, oldest first.
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

    /// Returns the state of the session's life cycle.
    #[must_use]
    pub fn state(&self) -> Lifecycle {
        self.lock().machine.state()
    }

    /// Returns true if the client has a stream for messages that belong to no call.
    #[must_use]
    pub fn has_general(&self) -> bool {
        self.lock().general.is_some()
    }

    /// Returns the number of requests that wait for an answer.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let inner = self.lock();
        inner.machine.in_flight() + inner.unwritten
    }

    /// Returns for how long the client has been silent. Zero while a stream is open or a request is in flight.
    #[must_use]
    pub fn idle(&self) -> Duration {
        let inner = self.lock();
        if !inner.streams.is_empty() || inner.machine.in_flight() + inner.unwritten > 0 {
            return Duration::ZERO;
        }
        let used = Duration::from_millis(self.last_used.load(Ordering::Relaxed));
        crate::clock::now().saturating_duration_since(self.started).saturating_sub(used)
    }

    /// Records that the client sent something. Returns the current time.
    fn touch(&self) -> Instant {
        let now = crate::clock::now();
        let millis = u64::try_from(now.saturating_duration_since(self.started).as_millis()).unwrap_or(u64::MAX);
        self.last_used.store(millis, Ordering::Relaxed);
        now
    }

    /// Ends the session and the backend connections that belong to it alone.
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

    fn stream_closed(self: &Arc<Self>, stream: StreamId, answers_only: bool) {
        let known = {
            let mut inner = self.lock();
            if inner.general == Some(stream) {
                inner.general = None;
            }
            inner.batches.forget(stream);
            inner.streams.remove(&stream).is_some()
        };
        // A stream that ended with its answer needs no event: the machine is done with it.
        if known || answers_only {
            self.handle(Event::Gone { stream });
        }
    }

    /// Changes the machine directly, for input that is not an event.
    pub(crate) fn with_machine(&self, tell: impl FnOnce(&mut FrontMachine)) {
        tell(&mut self.lock().machine);
    }

    fn lock(&self) -> MutexGuard<'_, SessionState> {
        self.inner.lock().unpoisoned()
    }
}
