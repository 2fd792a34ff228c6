//! One configured backend: accepts calls from sessions and owns every connection that can carry them.
//!
//! `Backend::accept` asks the circuit breaker (`guard`). Then `routes` picks a connection for the call, opens one, or
//! queues the call. Once sent, the call belongs to the [`Peer`]. The backend is called again when a connection becomes
//! ready (`Backend::peer_ready`) or is lost (`Backend::detach`, then `Backend::peer_lost`).
//!
//! # States
//!
//! The *home* connection belongs to the gateway itself. It determines which era the backend speaks, feeds the catalog,
//! and serves every session that may share it. Its state is the state of the backend ([`Home`]):
//!
//! ```text
//!                first_use, lists known            a caller uses it (wake)
//!   Starting ─────────────────────────► Asleep ──────────────────────────► Starting
//!     │   │                               ▲
//!     │   └──────── ready ──────► Up ─────┘ unused (idle)
//!     │                           │ ▲
//!     │ attempt fails        lost │ │ ready
//!     ▼                           ▼ │
//!   Down ◄── attempt fails ── Restarting ◄── try_now ── Failed
//!     │                           │                       ▲
//!     └─ ready: Up                └── died too often ─────┘ (so does Down)
//! ```
//!
//! A backend with per-user credentials is `AwaitsCaller` until a caller uses it, and again if that caller turns out to
//! have no credential. Its home connection is opened on behalf of the first caller and serves that principal only.
//!
//! Only the `supervisor` task opens the home connection. A backend that is down stays down for its callers during the
//! next attempt. Two flags stand beside this state: a *retired* backend passes every new call to its successor and
//! finishes those in flight; a *stopping* backend refuses new calls.
//!
//! # Invariants
//!
//! - All mutable state except the configuration, the breaker and a few counters is in one `BackendState` behind one
//!   lock. Its parts (`connections`, `subscriptions`, `list_knowledge`, `condition`) are plain values that maintain
//!   their own invariants and do not know the lock.
//! - Lock order: session, backend, peer; a retiring backend before its successor. Code that holds the backend lock may
//!   ask a peer anything, but may read of a session only what is kept outside the session lock: whether it has ended,
//!   its client, and when the client was last seen.
//! - A connection is detached before it counts as lost, so a call that finds its connection lost is not routed to it
//!   again.
//! - Resources and the log level of a session are noted only if the session has not ended, checked under the lock. The
//!   end of a session removes its entries under the same lock, so a later entry would never be removed. A listen
//!   request that was noted too late is removed by `Gateway::listen`.
//! - An accepted call, unless its session cancels it, ends in exactly one of three ways: a peer takes it, the session
//!   is told that it failed, or a successor takes it over.
//!
//! # A backend must never
//!
//! - Wait, or feed a session an event, while it holds its lock.
//! - Resend a call that the server may have processed. Only a call that was never sent is retried from here
//!   (`waiting_calls`).
//! - Start a process for a client that only looks: lists, pings and `status` do not wake a backend (`asleep`).

mod asleep;
mod condition;
mod connection_request;
mod connections;
mod follows;
mod guard;
mod health;
pub mod idle;
mod list_knowledge;
mod listings;
mod pool;
pub mod process_share;
mod reload;
mod reopening;
mod routes;
mod sign_ins;
mod spec;
mod state;
mod subscriptions;
mod supervisor;
mod users;
mod waiting_calls;
mod watches;

pub(crate) use connections::{ConnectionRole, PoolKey};
pub use guard::BreakerStatus;
pub(crate) use guard::{Guard, GuardedCall};
pub use health::HealthStatus;
pub use pool::{ExclusiveUse, MAX_POOLED, MAX_POOLED_EACH};
use signalbox_engine::catalog::ListOwners;
use signalbox_engine::lock::LockResultExt;
pub use spec::{BackendSpec, FailureRules, Lifetime, QuestionTime, StartPolicy};
pub use state::{EraSupport, Home};
pub(crate) use subscriptions::FollowTargets;
pub use subscriptions::{MAX_WATCHES, MAX_WATCHES_EACH};

use self::condition::Condition;
use crate::gateway::Gateway;
use crate::link::Connector;
use crate::peer::{Peer, QueuedCall};
use crate::session::Session;
use arc_swap::ArcSwap;
use signalbox_engine::back::Wish;
use signalbox_engine::budget::Share;
use signalbox_engine::health::Health;
use signalbox_engine::{AuthorizedCall, Call, Event, ExchangeId, Fault, FaultKind, PeerId, ServerProfile, SessionKey};
use signalbox_wire::{Limits, method};
use state::BackendState;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, Semaphore};

/// Maximum number of client connections of one backend that read lists at a time. The gateway's own connection is
/// exempt.
const MAX_LIST_READERS: usize = 8;

/// A configured backend. See the [module documentation](self).
pub struct Backend {
    pub name: Arc<str>,
    /// Unique id. A successor has the same name and another id.
    pub id: u64,
    pub(crate) connector: Arc<dyn Connector>,
    spec: ArcSwap<BackendSpec>,
    strict: Option<Limits>,
    pub(crate) guard: Arc<Guard>,
    gateway: OnceLock<Weak<Gateway>>,
    share: OnceLock<Arc<Share>>,
    state: Mutex<BackendState>,
    changed: Notify,
    queue_refused: AtomicU64,
    retries: AtomicU64,
    /// Limits how many client connections read lists at a time, because each holds a whole copy until it is stored.
    list_readers: Semaphore,
}

static NEXT_PEER: AtomicU64 = AtomicU64::new(1);
static NEXT_BACKEND: AtomicU64 = AtomicU64::new(1);

impl Backend {
    /// Creates a backend without starting it.
    #[must_use]
    pub fn new(name: &str, connector: Arc<dyn Connector>, spec: BackendSpec) -> Arc<Self> {
        Arc::new(Self {
            name: Arc::from(name),
            id: NEXT_BACKEND.fetch_add(1, Ordering::Relaxed),
            connector,
            guard: Arc::new(Guard::new(spec.failing.breaker)),
            strict: spec.strict,
            state: Mutex::new(BackendState::new(Condition::new(spec.failing.ping.map(Health::new)))),
            spec: ArcSwap::from_pointee(spec),
            gateway: OnceLock::new(),
            share: OnceLock::new(),
            changed: Notify::new(),
            queue_refused: AtomicU64::new(0),
            retries: AtomicU64::new(0),
            list_readers: Semaphore::new(MAX_LIST_READERS),
        })
    }

    pub(crate) fn attach(&self, gateway: &Arc<Gateway>) {
        let _ = self.gateway.set(Arc::downgrade(gateway));
        let _ = self.share.set(gateway.budget.backend());
    }

    /// Returns the memory budget for messages of this backend.
    pub(crate) fn share(&self) -> Option<&Arc<Share>> {
        self.share.get()
    }

    pub(crate) fn gateway(&self) -> Option<Arc<Gateway>> {
        self.gateway.get().and_then(Weak::upgrade)
    }

    pub(crate) fn next_peer(&self) -> PeerId {
        PeerId(NEXT_PEER.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the current configuration.
    pub(crate) fn spec(&self) -> arc_swap::Guard<Arc<BackendSpec>> {
        self.spec.load()
    }

    /// Returns the limits for the strict scan of its messages, or `None` if they are not scanned.
    pub(crate) fn strict_limits(&self) -> Option<&Limits> {
        self.strict.as_ref()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, BackendState> {
        self.lock()
    }

    pub(crate) fn count_stray(&self, what: &'static str) {
        self.lock().condition.count_stray(what);
    }

    /// Accepts a client's call unless the breaker refuses it. The breaker is not asked about a further round of a call
    /// that was accepted before.
    pub(crate) fn accept(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId, call: AuthorizedCall) {
        if call.awaits_sign_in {
            return self.accept_after_sign_in(session, exchange, call);
        }
        self.admit(session, exchange, call);
    }

    fn admit(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId, call: AuthorizedCall) {
        if call.round.is_none()
            && let Err(fault) = self.guard.admit(&self.name, session, exchange, || self.spec().timeout)
        {
            return session.handle(Event::Failed { exchange, fault });
        }
        self.dispatch(session, exchange, call);
    }

    /// Returns the timeout of a call: the one configured for its tool, or else that of the backend.
    pub(crate) fn timeout_of(&self, call: &Call) -> Duration {
        let of_tool = || {
            let name = call.name.as_deref().filter(|_| call.method == method::TOOLS_CALL)?;
            self.gateway()?.governance.as_ref()?.timeouts.timeout(&self.name, name)
        };
        of_tool().unwrap_or_else(|| self.spec().timeout)
    }

    /// Returns true if each principal may be shown something different. The gateway then has no connection of its own.
    pub(crate) fn is_per_user(&self) -> bool {
        self.connector.is_per_user()
    }

    /// Returns true if each principal has a credential here that no other principal uses.
    pub(crate) fn has_own_credentials(&self) -> bool {
        self.connector.has_own_credentials()
    }

    /// Returns true if answers to callers of one principal may differ.
    pub(crate) fn is_per_caller(&self) -> bool {
        self.connector.is_per_caller()
    }

    /// Returns true if the backend is reachable only through an endpoint of its own.
    pub(crate) fn is_apart(&self) -> bool {
        self.connector.is_apart()
    }

    /// Returns the mapping from principals to the owners of the lists that they see, if that is not the identity.
    pub(crate) fn list_owners(&self) -> Option<Arc<dyn ListOwners>> {
        self.connector.list_owners()
    }

    /// Fails a call that has not reached the backend.
    pub(crate) fn refuse(&self, session: &Arc<Session>, exchange: ExchangeId, fault: Fault) {
        self.guard.release(&self.name, session, exchange);
        session.handle(Event::Failed { exchange, fault });
    }

    /// Fails a call that has not reached the backend, or asks its caller to sign in first.
    pub(crate) fn refuse_call(&self, session: &Arc<Session>, exchange: ExchangeId, fault: Fault, call: AuthorizedCall) {
        if fault.kind != FaultKind::SignInNeeded {
            return self.refuse(session, exchange, fault);
        }
        self.guard.release(&self.name, session, exchange);
        session.handle(Event::SignIn { exchange, fault, call });
    }

    /// Cancels an exchange that is queued or on a connection.
    pub(crate) fn cancel(&self, session: &Arc<Session>, exchange: ExchangeId, reason: Option<&[u8]>) {
        let user = self.user_of(session, exchange);
        let peers = {
            let mut state = self.lock();
            state.waiting.retain(|one| !(one.exchange == exchange && Arc::ptr_eq(&one.session, session)));
            state.connections.serving(session, &user)
        };
        // At most one peer has the exchange.
        let on = |thoroughly| peers.iter().any(|peer| peer.cancel(session, exchange, reason, thoroughly));
        let _ = on(false) || on(true);
        self.guard.release(&self.name, session, exchange);
    }

    /// Returns the connections that belong to this session alone.
    pub(crate) fn owned(&self, session: SessionKey) -> Vec<Arc<Peer>> {
        self.lock().connections.all_owned(session).to_vec()
    }

    /// Closes the connections of a session that has ended and removes its queued calls and subscriptions.
    pub(crate) fn session_closed(&self, session: &Session) {
        let owned = {
            let mut state = self.lock();
            state.waiting.retain(|one| one.session.key != session.key);
            state.connections.remove_owned(session.key)
        };
        let unwatched = self.lock().subscriptions.forget(session.key);
        if owned.is_empty() {
            self.unwatch(&self.user(session), &unwatched);
        }
        for peer in owned {
            peer.close();
        }
    }

    /// Fails calls that have been queued for too long and closes idle connections.
    pub(crate) fn tick(self: &Arc<Self>, now: Instant) {
        let (late, peers) = {
            let mut state = self.lock();
            let (late, kept): (Vec<QueuedCall>, Vec<QueuedCall>) =
                std::mem::take(&mut state.waiting).into_iter().partition(|one| one.deadline <= now);
            state.waiting = kept.into();
            (late, state.connections.not_quiet())
        };
        self.close_idle(now);
        self.dispatch_held_back();
        self.retry_for_room();
        for one in late {
            let fault = self.no_room(&self.lock()).unwrap_or_else(|| {
                let text = format!("backend `{}` was not ready in time", self.name);
                Fault::new(FaultKind::TimedOut, text).with_str("backend", &self.name)
            });
            self.refuse(&one.session, one.exchange, fault);
        }
        for peer in peers {
            peer.tick(now);
        }
    }

    /// Returns true if no call is queued and the home connection is not being opened.
    pub(crate) fn is_calm(&self) -> bool {
        let state = self.lock();
        state.waiting.is_empty() && !matches!(state.home, Home::Starting | Home::Restarting)
    }

    /// Closes every connection and fails the queued calls.
    pub(crate) fn stop(&self) {
        let (peers, waiting) = {
            let mut state = self.lock();
            state.stopping = true;
            (state.connections.all(), std::mem::take(&mut state.waiting))
        };
        self.changed.notify_one();
        for peer in peers {
            peer.close();
        }
        for one in waiting {
            let fault = Fault::new(FaultKind::Draining, "the gateway is shutting down");
            one.session.handle(Event::Failed { exchange: one.exchange, fault });
        }
    }

    /// Starts to use a connection that has completed its handshake.
    pub(crate) fn peer_ready(self: &Arc<Self>, peer: &Arc<Peer>, profile: &Arc<ServerProfile>) {
        let (home, waiting, replaced) = {
            let mut state = self.lock();
            if peer.is_lost() {
                return;
            }
            let home = state.connections.is_home(peer);
            state.support.learn(home, self.spec().wish, profile.era());
            let mut replaced = None;
            if home {
                state.home = Home::Up(Arc::clone(peer));
                state.condition.came_up(crate::clock::now());
                state.lists.reset();
                replaced = state.connections.share_home(profile.era());
            }
            (home, !state.waiting.is_empty(), replaced)
        };
        if let Some(replaced) = replaced {
            replaced.close();
        }
        if home {
            if let Some(gateway) = self.gateway() {
                gateway.reads.forget_backend(&self.name);
            }
            tracing::info!(
                backend = %self.name,
                revision = profile.revision.as_str(),
                server = profile.name().as_deref().unwrap_or("-"),
                "backend is up"
            );
            self.set_listed(true);
        }
        self.restore(peer, profile);
        self.refresh(peer, profile, home);
        if waiting {
            self.retry_waiting();
        }
    }

    pub(crate) fn is_home(&self, peer: &Arc<Peer>) -> bool {
        self.lock().connections.is_home(peer)
    }

    /// Stops routing calls to a connection that is ending. Must run before the connection counts as lost, so that a
    /// call that finds it lost is not routed to it again.
    pub(crate) fn detach(&self, peer: &Arc<Peer>, fault: &Fault) {
        let was_ready = peer.profile().is_some();
        let mut state = self.lock();
        state.connections.remove(peer);
        state.lists.end_reading(peer.id);
        let home = state.connections.is_home(peer);
        if fault.kind == FaultKind::EraRefused && !home {
            // The server speaks only the other era, so clients of this one reach it through the bridge from now on.
            state.support.refused(peer.wish);
        }
        let died_of_probe = home && !was_ready && peer.wish == Wish::Auto && fault.kind == FaultKind::BackendDied;
        // Clients keep waiting for lists that another era or another attempt may bring. The exception is a server that
        // refuses an era which it spoke on another connection: it would be asked for that era again and again.
        let no_lists = match fault.kind {
            FaultKind::Draining => false,
            FaultKind::EraRefused => !home && !state.support.lacks(peer.wish),
            _ => !died_of_probe,
        };
        let whose = self.lists_of(&peer.user);
        if !was_ready && no_lists && !state.others_reading(peer, whose.is_some()) {
            state.lists.failed(peer.caps.clone(), whose, fault, crate::clock::now());
        }
        if home {
            state.condition.set_error(fault.message.clone());
            state.condition.set_skip_probe(died_of_probe);
            state.home = match (was_ready, died_of_probe) {
                // The caller's token may have expired. The token of the next caller opens another connection.
                (true, _) if self.is_per_caller() => Home::AwaitsCaller,
                (true, _) => Home::Restarting,
                (false, true) => Home::Starting,
                (false, false) if self.lacks_only_credential(fault) => Home::AwaitsCaller,
                (false, false) => Home::Down(fault.clone()),
            };
        }
    }

    /// Reroutes or fails the calls that waited for a lost connection, and reopens the connection if necessary.
    pub(crate) fn peer_lost(self: &Arc<Self>, peer: &Arc<Peer>, fault: &Fault, queue: Vec<QueuedCall>) {
        let (mut queue, mut taken) = (queue, Vec::new());
        let (home, down, lonely, stopping, retired) = {
            let mut state = self.lock();
            let home = state.connections.is_home(peer);
            let down = state.home.fault().is_some() && home;
            // If it was opened for a caller without a credential, no other caller is affected.
            let lonely = home && matches!(state.home, Home::AwaitsCaller);
            if down || lonely {
                let all = std::mem::take(&mut state.waiting);
                taken = all.into();
            }
            (home, down, lonely, state.is_ending(), state.retired.is_some())
        };
        let concerned = |one: &QueuedCall| down || self.user_of(&one.session, one.exchange) == peer.user;
        let (failed, others): (Vec<QueuedCall>, Vec<QueuedCall>) = taken.into_iter().partition(concerned);
        queue.extend(failed);
        self.lock().waiting.extend(others);
        if home {
            self.log_loss(fault, peer.profile().is_some(), stopping);
            self.changed.notify_one();
        }
        if down {
            self.set_listed(false);
        }
        // Calls for an era that the server turned out not to speak go through the other one.
        let retry = fault.kind == FaultKind::EraRefused && self.lock().support.lacks(peer.wish);
        for one in queue {
            if retired {
                self.dispatch_until(&one.session, one.exchange, one.call, one.deadline);
            } else if retry && !home {
                self.dispatch(&one.session, one.exchange, one.call);
            } else if !home && !stopping && self.is_retried(fault, &one) {
                self.retry_later(one);
            } else {
                let kind = match fault.kind {
                    FaultKind::SignInNeeded | FaultKind::Refused | FaultKind::Overloaded => fault.kind,
                    _ => FaultKind::BackendDown,
                };
                let fault = Fault { kind, ..fault.clone() };
                self.refuse_call(&one.session, one.exchange, fault, one.call);
            }
        }
        if lonely && !stopping {
            self.retry_waiting();
        }
        if !home && !stopping && !peer.has_given_way() {
            self.reopen_later(peer);
        }
        if let Some(gateway) = self.gateway() {
            gateway.catalog.nudge();
        }
    }

    /// Returns true if a connection failed because its user has no credential.
    fn lacks_only_credential(&self, fault: &Fault) -> bool {
        self.is_per_user() && matches!(fault.kind, FaultKind::SignInNeeded | FaultKind::Refused)
    }

    fn set_listed(&self, listed: bool) {
        if let Some(gateway) = self.gateway() {
            let changed = gateway.catalog.set_listed(self, listed);
            gateway.notify_lists_changed(changed, None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, BackendState> {
        self.state.lock().unpoisoned()
    }
}
