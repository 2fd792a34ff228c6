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
use crate::origin::{Origin, OwnAnswer, OwnReply, Party};
use crate::session::Session;
use live_tasks::LiveTasks;
use signalbox_engine::back::{BackCommand, BackMachine, Draft, Outbound, Wish};
use signalbox_engine::call_index::CallIndex;
use signalbox_engine::catalog::ViewKey;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Authorized, BackendUser, CapSet, Event, ExchangeId, Fault, FaultKind, PeerId, ServerProfile};
use signalbox_wire::Era;
use smallvec::SmallVec;
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use watching::Watching;

/// A call that waits for the connection.
pub struct Queued {
    /// The session of the call.
    pub session: Arc<Session>,
    /// The exchange of the call.
    pub exchange: ExchangeId,
    /// The call.
    pub call: Authorized,
    /// When it fails if it still waits.
    pub deadline: Instant,
    /// Its exclusive use of the connection, if it has that.
    pub exclusive_use: Option<ExclusiveUse>,
}

struct PeerState {
    machine: BackMachine<Origin>,
    /// Finds the call of an exchange, to cancel it.
    by_exchange: CallIndex,
    queue: VecDeque<Queued>,
    resend: Vec<Outbound>,
    /// Requests that were sent again in a new session; each is sent again once.
    resent: HashSet<u64>,
    reopened: Vec<Instant>,
    epoch: u32,
    level: Option<LogLevel>,
    /// The lowest log level that a request of the new era has asked for.
    floor: Option<LogLevel>,
    watching: Watching,
    buffer: Vec<BackCommand<Origin>>,
    /// Calls wait until the server has its client's roots.
    settling: bool,
    /// It takes no further call, since it is about to be closed.
    closing: bool,
    lost: bool,
}

/// The connection.
pub struct Peer {
    /// Its number.
    pub id: PeerId,
    /// The user that it was opened for.
    pub user: BackendUser,
    /// What it is for, and with that whose calls it carries.
    pub(crate) role: ConnectionRole,
    /// The session that it belongs to, if its role is [`ConnectionRole::Owned`].
    owner: Option<Arc<Session>>,
    /// The capabilities it was opened with.
    pub caps: CapSet,
    /// Which era was asked for.
    pub wish: Wish,
    /// Held while its lists are read.
    pub(crate) lists_turn: tokio::sync::Mutex<()>,
    busy: Arc<AtomicBool>,
    /// The tasks that the backend works on behind this connection.
    tasks: LiveTasks,
    /// The gateway closed it on its own account.
    closed: AtomicBool,
    /// It was closed to make room, or because nobody used it.
    gave_way: AtomicBool,
    /// Nothing on it can time out, so ticks may skip it.
    quiet: AtomicBool,
    /// How many calls it was given.
    calls: AtomicU64,
    /// When it was begun.
    opened: Instant,
    /// The number of calls when it was last checked, and since when that has not changed.
    unused: Mutex<(u64, Instant)>,
    backend: Weak<Backend>,
    name: Arc<str>,
    guard: Arc<Guard>,
    link: OnceLock<Arc<dyn Link>>,
    /// Notified when a question of the backend was answered.
    replied: tokio::sync::Notify,
    inner: Mutex<PeerState>,
}

impl Peer {
    /// What the backend said about itself on this connection, once it is ready.
    #[must_use]
    pub fn profile(&self) -> Option<Arc<ServerProfile>> {
        self.lock().machine.profile().cloned()
    }

    /// The view that its lists belong to, once it is ready.
    #[must_use]
    pub fn view_key(&self) -> Option<ViewKey> {
        let profile = self.profile()?;
        let whose = self.backend.upgrade().and_then(|backend| backend.lists_of(&self.user));
        Some(ViewKey { era: profile.era(), caps: self.caps.clone(), whose })
    }

    /// The process id of a child.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.link.get().and_then(|link| link.pid())
    }

    /// How many requests wait for an answer on it.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        let inner = self.lock();
        inner.machine.in_flight() + inner.queue.len()
    }

    /// How many calls wait for it to be ready.
    #[must_use]
    pub fn queued(&self) -> usize {
        self.lock().queue.len()
    }

    /// True if it works on a call of a client.
    #[must_use]
    pub fn has_calls(&self) -> bool {
        self.lock().machine.waiting().any(Origin::is_call)
    }

    /// True if the backend works on a task behind it, as far as is known.
    pub(crate) fn has_tasks(&self, now: Instant) -> bool {
        self.tasks.any(now)
    }

    /// True once calls can be sent at once.
    #[must_use]
    pub fn is_ready(&self) -> bool {
        self.lock().machine.is_ready()
    }

    /// True if the backend answered in the old era.
    #[must_use]
    pub fn is_legacy(&self) -> bool {
        self.profile().is_some_and(|profile| profile.era() == Era::Legacy)
    }

    /// True once it can never be used again.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.lock().lost
    }

    /// True if the gateway closed it on its own account.
    #[must_use]
    pub fn was_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// The session that it belongs to; `None` if others use it too.
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
    /// A fault if the connection is not ready or refuses it.
    pub fn own(&self, origin: Origin, name: &'static str, params: &str, timeout: Duration) -> Result<(), Fault> {
        let mut inner = self.lock();
        if inner.lost {
            return Err(self.gone());
        }
        let message = inner.machine.own_request(origin, name, params, timeout, crate::clock::now())?;
        self.transmit(&mut inner, message)
    }

    /// Sends a message that gets no answer: a notification, or the answer to a question.
    pub fn tell(&self, draft: Draft, party: &Party) {
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

    /// Fails the calls and requests that have waited too long.
    pub fn tick(self: &Arc<Self>, now: Instant) {
        self.give_up_late(now);
        self.drive(|machine, now, out| machine.tick(now, out));
        let inner = self.inner.lock().unpoisoned();
        // Stored under the lock: a later request clears it again when it takes the lock.
        self.quiet.store(inner.queue.is_empty() && inner.machine.waits_for_nothing(), Ordering::Relaxed);
    }

    /// True if nothing can have timed out since the last tick.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    fn give_up_late(&self, now: Instant) {
        let late: Vec<Queued> = {
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

    /// Ends the connection because it does not work any more.
    pub fn fail_all(self: &Arc<Self>, fault: &Fault) {
        self.end(fault);
    }

    /// Closes the connection on the gateway's own account.
    pub fn close(self: &Arc<Self>) {
        self.close_because(&Fault::new(FaultKind::Draining, format!("backend `{}` was stopped", self.backend_name())));
    }

    /// Closes the connection for this reason.
    pub(crate) fn close_because(self: &Arc<Self>, fault: &Fault) {
        self.end(fault);
    }

    /// Runs the machine and carries out its commands. Nothing else is locked while it runs, and nothing is awaited.
    fn drive(self: &Arc<Self>, run: impl FnOnce(&mut BackMachine<Origin>, Instant, &mut Vec<BackCommand<Origin>>)) {
        self.drive_event(None, run);
    }

    /// Does so for a message that came in the SSE event of this id.
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
        // One at most in nearly all cases: the answer.
        let mut after = SmallVec::<[BackCommand<Origin>; 1]>::new();
        for command in commands.drain(..) {
            self.note_heard(&command, event_id);
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
                        self.tasks.expect(profile.hosts_tasks());
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
            BackCommand::Answer { message, .. } => self.tasks.answered(message),
            BackCommand::Unfinished { message, .. } => self.tasks.told(message.result()),
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

    /// Ends the connection and fails everything on it. Does nothing the second time.
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

    fn gone(&self) -> Fault {
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
