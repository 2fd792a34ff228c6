//! One connection to a backend: the engine's back machine, its link, and the calls that wait until it is ready.

mod answers;
mod calls;
mod events;
mod expiry;
mod facts;
mod live_tasks;
mod notices;
mod opening;
mod settling;
mod tasks;
mod watching;

use crate::backend::{Backend, ConnectionRole, ExclusiveUse, Guard, GuardedCall};
use crate::link::Link;
use crate::origin::{Attribution, Origin, OwnAnswer, OwnReply};
use crate::session::Session;
use live_tasks::LiveTasks;
use signalbox_engine::back::{BackCommand, BackMachine, Draft, Outbound, Wish};
use signalbox_engine::call_index::CallIndex;
use signalbox_engine::catalog::ViewKey;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{
    AuthorizedCall, BackendUser, CapSet, Event, ExchangeId, Fault, FaultKind, PeerId, ServerProfile,
};
use signalbox_wire::Era;
use smallvec::SmallVec;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use watching::WatchState;

/// A call that waits for a connection.
pub struct QueuedCall {
    pub session: Arc<Session>,
    pub exchange: ExchangeId,
    pub call: AuthorizedCall,
    /// Time at which the call fails if it is still queued.
    pub deadline: Instant,
    /// Exclusive use of the connection, if the call has it.
    pub exclusive_use: Option<ExclusiveUse>,
}

struct PeerState {
    machine: BackMachine<Origin>,
    /// Index from exchanges to their calls, for cancellation.
    by_exchange: CallIndex,
    queue: VecDeque<QueuedCall>,
    resend: Vec<Outbound>,
    /// Keys of requests that were resent in a new session. Each is resent once.
    resent: HashSet<u64>,
    reopened: Vec<Instant>,
    epoch: u32,
    level: Option<LogLevel>,
    /// Lowest log level that a modern request has asked for.
    floor: Option<LogLevel>,
    watching: WatchState,
    buffer: Vec<BackCommand<Origin>>,
    /// Set while calls wait until the server has its client's roots.
    settling: bool,
    /// Set once the connection is about to be closed and accepts no further call.
    closing: bool,
    lost: bool,
}

/// One connection to a backend.
pub struct Peer {
    pub id: PeerId,
    /// User for whom the connection was opened.
    pub user: BackendUser,
    /// Purpose of the connection, which decides whose calls it carries.
    pub(crate) role: ConnectionRole,
    /// Session that the connection belongs to, if its role is [`ConnectionRole::Owned`].
    owner: Option<Arc<Session>>,
    /// Capabilities that the connection was opened with.
    pub caps: CapSet,
    /// Era that the handshake asks for.
    pub wish: Wish,
    /// Held while lists are read over this connection.
    pub(crate) lists_turn: tokio::sync::Mutex<()>,
    busy: Arc<AtomicBool>,
    /// Tasks that the backend works on behind this connection.
    tasks: LiveTasks,
    /// Set if the gateway closed the connection, not the backend.
    closed: AtomicBool,
    /// Set if the connection was closed in favour of another, or because it was unused.
    gave_way: AtomicBool,
    /// Set while nothing can time out, so that ticks may skip the connection.
    quiet: AtomicBool,
    /// Number of calls received.
    calls: AtomicU64,
    /// Time at which the connection was created.
    opened: Instant,
    /// Number of calls at the last check, and the time since when it has not changed.
    unused: Mutex<(u64, Instant)>,
    backend: Weak<Backend>,
    name: Arc<str>,
    guard: Arc<Guard>,
    link: OnceLock<Arc<dyn Link>>,
    /// Notified when a question of the backend has been answered.
    replied: tokio::sync::Notify,
    inner: Mutex<PeerState>,
}

impl Peer {
    /// Returns the server profile from the handshake, once the connection is ready.
    #[must_use]
    pub fn profile(&self) -> Option<Arc<ServerProfile>> {
        self.lock().machine.profile().cloned()
    }

    /// Returns the key of the view that the lists of this connection belong to, once it is ready.
    #[must_use]
    pub fn view_key(&self) -> Option<ViewKey> {
        let profile = self.profile()?;
        let whose = self.backend.upgrade().and_then(|backend| backend.lists_of(&self.user));
        Some(ViewKey { era: profile.era(), caps: self.caps.clone(), whose })
    }

    /// Returns the process id of a child.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.link.get().and_then(|link| link.pid())
    }

    /// Returns the number of requests that are in flight or queued.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let inner = self.lock();
        inner.machine.in_flight() + inner.queue.len()
    }

    /// Returns the number of calls queued until the connection is ready.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.lock().queue.len()
    }

    /// Returns true if a call of a client is in flight.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.lock().machine.waiting().any(Origin::is_call)
    }

    /// Returns true if the backend is known to work on a task behind this connection.
    pub(crate) fn has_tasks(&self, now: Instant) -> bool {
        self.tasks.any(now)
    }

    /// Returns true once calls can be sent at once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.lock().machine.is_ready()
    }

    /// Returns true if the backend answered in the legacy era.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.profile().is_some_and(|profile| profile.era() == Era::Legacy)
    }

    /// Returns true once the connection is permanently unusable.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lock().lost
    }

    /// Returns true if a message can be handed to the transport.
    pub(crate) fn can_send(&self) -> bool {
        self.link.get().is_some() && !self.is_lost()
    }

    /// Returns true if the gateway closed the connection, not the backend.
    #[must_use]
    pub fn was_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Returns the session that the connection belongs to, or `None` if it is shared.
    #[must_use]
    pub fn owner(&self) -> Option<&Arc<Session>> {
        self.owner.as_ref()
    }

    /// Sends a request of the gateway itself and returns a receiver for the answer.
    pub fn ask(&self, name: &'static str, params: &str, timeout: Duration) -> oneshot::Receiver<OwnAnswer> {
        let (reply, receiver) = OwnReply::new();
        if let Err(fault) = self.own(Origin::Own(reply.clone()), name, params, timeout) {
            reply.send(Err(fault));
        }
        receiver
    }

    /// Sends a request of the gateway itself on behalf of `origin`.
    ///
    /// # Errors
    /// If the connection is not ready or refuses the request.
    pub fn own(&self, origin: Origin, name: &'static str, params: &str, timeout: Duration) -> Result<(), Fault> {
        let mut inner = self.lock();
        if inner.lost {
            return Err(self.not_connected());
        }
        let message = inner.machine.own_request(origin, name, params, timeout, crate::clock::now())?;
        self.transmit(&mut inner, message)
    }

    /// Sends a message that gets no answer: a notification, or the answer to a question.
    pub fn send_one_way(&self, draft: Draft, party: &Attribution) {
        let mut inner = self.lock();
        if inner.machine.replies(&draft, crate::clock::now()) {
            self.replied.notify_one();
        }
        let message = inner.machine.tell(draft);
        if let Err(fault) = self.transmit_for(&mut inner, message, party) {
            tracing::debug!(peer = %self.id, %fault, "message to the backend dropped");
        }
    }

    /// Opens the stream for messages that belong to no request, if the transport needs one.
    pub fn open_general(&self) {
        if let Some(link) = self.link.get() {
            link.open_general();
        }
    }

    /// Fails the calls and requests that have timed out.
    pub fn tick(self: &Arc<Self>, now: Instant) {
        self.fail_overdue(now);
        self.drive(|machine, now, out| machine.tick(now, out));
        let inner = self.inner.lock().unpoisoned();
        // Stored under the lock: a later request clears it again when it takes the lock.
        self.quiet.store(inner.queue.is_empty() && inner.machine.waits_for_nothing(), Ordering::Relaxed);
    }

    /// Returns true if nothing can have timed out since the last tick.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    fn fail_overdue(&self, now: Instant) {
        let late: Vec<QueuedCall> = {
            let mut inner = self.lock();
            let (late, kept) = std::mem::take(&mut inner.queue).into_iter().partition(|queued| queued.deadline <= now);
            inner.queue = kept;
            VecDeque::into(late)
        };
        for queued in late {
            let text = format!("backend `{}` was not ready in time", self.backend_name());
            let fault = Fault::new(FaultKind::TimedOut, text).with_str("backend", &self.backend_name());
            self.refuse(&queued.session, queued.exchange, fault);
        }
    }

    /// Ends the connection because it has stopped working.
    pub fn fail_all(self: &Arc<Self>, fault: &Fault) {
        self.end(fault);
    }

    /// Closes the connection on behalf of the gateway.
    pub fn close(self: &Arc<Self>) {
        self.close_because(&Fault::new(FaultKind::Draining, format!("backend `{}` was stopped", self.backend_name())));
    }

    /// Closes the connection for the given reason.
    pub(crate) fn close_because(self: &Arc<Self>, fault: &Fault) {
        self.end(fault);
    }

    /// Runs the machine and carries out its commands. Nothing else is locked while it runs, and nothing is awaited.
    fn drive(self: &Arc<Self>, run: impl FnOnce(&mut BackMachine<Origin>, Instant, &mut Vec<BackCommand<Origin>>)) {
        self.drive_event(None, run);
    }

    /// Does the same as [`Self::drive`] for a message that arrived in the SSE event with this id.
    fn drive_event(
        self: &Arc<Self>,
        event_id: Option<&str>,
        run: impl FnOnce(&mut BackMachine<Origin>, Instant, &mut Vec<BackCommand<Origin>>),
    ) {
        let mut inner = self.lock();
        let mut commands = std::mem::take(&mut inner.buffer);
        run(&mut inner.machine, crate::clock::now(), &mut commands);
        if commands.is_empty() {
            inner.buffer = commands;
            return;
        }
        // Nearly always at most one command: the answer.
        let mut after = SmallVec::<[BackCommand<Origin>; 1]>::new();
        for command in commands.drain(..) {
            self.record_received(&command, event_id);
            match command {
                BackCommand::Transmit(message) => {
                    let handshake = message.key().is_some();
                    if let Err(fault) = self.transmit(&mut inner, message) {
                        tracing::debug!(peer = %self.id, %fault, "message to the backend dropped");
                        if handshake {
                            after.push(BackCommand::Unusable(fault));
                        }
                    }
                }
                BackCommand::Abort(key) => {
                    if let Some(link) = self.link.get() {
                        link.abort(key);
                    }
                }
                other => {
                    if let BackCommand::Ready(profile) = &other {
                        inner.settling = self.must_settle(profile);
                        self.tasks.set_expected(profile.hosts_tasks());
                    }
                    after.push(other);
                }
            }
        }
        inner.buffer = commands;
        drop(inner);
        for command in after.drain(..) {
            self.guard.watch(&self.name, &command);
            self.deliver(command);
        }
    }

    fn deliver(self: &Arc<Self>, command: BackCommand<Origin>) {
        match &command {
            BackCommand::Answer { message, .. } => self.tasks.observe_answer(message),
            BackCommand::Unfinished { message, .. } => self.tasks.observe_state(message.result()),
            _ => {}
        }
        match command {
            BackCommand::Answer { to, message, edits, status } => self.answer(to, message, edits, status),
            BackCommand::Fail { to, fault, .. } => self.fail(&to, fault),
            BackCommand::SignIn { to, fault, call } => self.sign_in(&to, fault, call),
            BackCommand::Unfinished { to, message, reach, call } => self.unfinished(&to, message, reach, call),
            BackCommand::TaskMade { to, message, edits, status, client } => {
                self.task_made(to, message, edits, status, &client);
            }
            BackCommand::Rewritten(parts) => {
                tracing::debug!(peer = %self.id, ?parts, "bridge: parts of an answer were rewritten for an older client");
            }
            BackCommand::Notify { about, message } => self.notified(about, message),
            BackCommand::Ask { about, message } => self.asked(about, message),
            BackCommand::Ready(profile) => self.ready(&profile),
            BackCommand::Unusable(fault) => self.end(&fault),
            BackCommand::Stray { what, .. } => {
                if let Some(backend) = self.backend.upgrade() {
                    backend.count_stray(what);
                }
            }
            BackCommand::Transmit(_) | BackCommand::Abort(_) | BackCommand::Own(_) => {}
        }
    }

    fn ready(self: &Arc<Self>, profile: &Arc<ServerProfile>) {
        let Some(backend) = self.backend.upgrade() else { return };
        let (resend, settling) = {
            let mut inner = self.lock();
            (std::mem::take(&mut inner.resend), inner.settling)
        };
        tracing::debug!(backend = %backend.name, peer = %self.id, revision = profile.revision.as_str(), "connection ready");
        self.resend(resend);
        let home = backend.is_home(self);
        if self.owner().map_or(!home && profile.era() == Era::Legacy, |owner| owner.has_general()) {
            self.open_general();
        }
        backend.peer_ready(self, profile);
        if settling {
            self.settle();
        } else {
            self.send_queue(&backend);
        }
    }

    /// Ends the connection and fails everything on it. Does nothing if it has ended already.
    fn end(self: &Arc<Self>, fault: &Fault) {
        let backend = self.backend.upgrade();
        if let Some(backend) = backend.as_ref().filter(|_| !self.is_lost()) {
            backend.detach(self, fault);
        }
        let (now, mut out) = (crate::clock::now(), Vec::new());
        let queue = {
            let mut inner = self.lock();
            if inner.lost {
                return;
            }
            inner.lost = true;
            self.closed.store(fault.kind == FaultKind::Draining, Ordering::Relaxed);
            if let Some(backend) = backend.as_ref().filter(|_| inner.machine.profile().is_some()) {
                self.count_session(backend, now);
            }
            inner.machine.lost(&fault.message, now, &mut out);
            std::mem::take(&mut inner.queue)
        };
        if let Some(link) = self.link.get() {
            link.close();
        }
        let calls = out.iter().filter_map(|command| match command {
            BackCommand::Fail { to, .. } => to.guarded_call(),
            _ => None,
        });
        let queued = queue.iter().map(|one| GuardedCall::of(&one.session, Some(one.exchange)));
        self.guard.lost(&self.name, fault.kind, calls.chain(queued));
        for command in out {
            self.deliver(command);
        }
        self.watch_lost(fault);
        if let Some(owner) = self.owner() {
            owner.handle(Event::PeerGone { peer: self.id });
        }
        if let Some(backend) = backend {
            backend.peer_lost(self, fault, queue.into());
        }
    }

    fn not_connected(&self) -> Fault {
        let name = self.backend_name();
        Fault::new(FaultKind::BackendDown, format!("backend `{name}` is not connected")).with_str("backend", &name)
    }

    pub(crate) fn backend_name(&self) -> Arc<str> {
        Arc::clone(&self.name)
    }

    fn lock(&self) -> MutexGuard<'_, PeerState> {
        let inner = self.inner.lock().unpoisoned();
        self.quiet.store(false, Ordering::Relaxed);
        inner
    }
}
