//! One configured backend: its connections, who may use which of them, and what waits while it starts.
//!
//! The *home* connection belongs to the gateway itself. It tells which era the backend speaks, feeds the catalog, is kept
//! alive by [`supervisor`], and serves every session that may share it.

mod asleep;
mod change_coalescing;
mod followed;
mod follows;
mod guard;
mod health;
pub mod idle;
mod listings;
mod pool;
mod reopening;
mod retiring;
mod retrying;
mod routes;
mod slow_start;
mod state;
mod supervisor;
mod tuning;
mod watches;

pub(crate) use followed::Followed;
pub use guard::BreakerStatus;
pub(crate) use guard::{CallKey, Guard};
pub use health::HealthStatus;
pub use pool::{MAX_POOLED, MAX_POOLED_EACH};
pub use state::{Home, Support};
pub use watches::{MAX_WATCHES, MAX_WATCHES_EACH};

use crate::failure_rules::FailureRules;
use crate::gateway::Gateway;
use crate::lifetime::Lifetime;
use crate::link::Connector;
use crate::peer::{Peer, Queued};
use crate::session::Session;
use arc_swap::ArcSwap;
use signalbox_engine::back::Wish;
use signalbox_engine::breaker::CallResult;
use signalbox_engine::budget::Share;
use signalbox_engine::health::Health;
use signalbox_engine::{Call, Event, ExchangeId, Fault, FaultKind, PeerId, ServerProfile, SessionKey};
use signalbox_wire::Limits;
use state::Inner;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// What is configured of a backend.
pub struct BackendSpec {
    /// How long a call may be silent.
    pub timeout: Duration,
    /// How long the handshake may take.
    pub start_timeout: Duration,
    /// Most processes at a time.
    pub max_children: usize,
    /// Which era to speak.
    pub wish: Wish,
    /// The bounds of the strict scan; none where messages pass unscanned.
    pub strict: Option<Limits>,
    /// How it is treated when it fails.
    pub failing: FailureRules,
    /// From when to when its process runs.
    pub lifetime: Lifetime,
    /// A mark of the program and of all that its lists depend on. Lists kept under another mark are not its own.
    pub source: u64,
    /// Which tools are let through.
    pub allows: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The backend.
pub struct Backend {
    /// Its configured name.
    pub name: Arc<str>,
    /// Its number: two backends may have one name, one after the other.
    pub id: u64,
    pub(crate) connector: Arc<dyn Connector>,
    spec: ArcSwap<BackendSpec>,
    strict: Option<Limits>,
    pub(crate) guard: Arc<Guard>,
    gateway: OnceLock<Weak<Gateway>>,
    share: OnceLock<Arc<Share>>,
    inner: Mutex<Inner>,
    changed: Notify,
    queue_refused: AtomicU64,
    retries: AtomicU64,
}

static NEXT_PEER: AtomicU64 = AtomicU64::new(1);
static NEXT_BACKEND: AtomicU64 = AtomicU64::new(1);

impl Backend {
    /// A backend that is not started yet.
    #[must_use]
    pub fn new(name: &str, connector: Arc<dyn Connector>, spec: BackendSpec) -> Arc<Self> {
        Arc::new(Self {
            name: Arc::from(name),
            id: NEXT_BACKEND.fetch_add(1, Ordering::Relaxed),
            connector,
            guard: Arc::new(Guard::new(spec.failing.breaker)),
            strict: spec.strict,
            inner: Mutex::new(Inner { health: spec.failing.ping.map(Health::new), ..Inner::default() }),
            spec: ArcSwap::from_pointee(spec),
            gateway: OnceLock::new(),
            share: OnceLock::new(),
            changed: Notify::new(),
            queue_refused: AtomicU64::new(0),
            retries: AtomicU64::new(0),
        })
    }

    pub(crate) fn attach(&self, gateway: &Arc<Gateway>) {
        let _ = self.gateway.set(Arc::downgrade(gateway));
        let _ = self.share.set(gateway.budget.backend());
    }

    /// What it may make the gateway hold.
    pub(crate) fn share(&self) -> Option<&Arc<Share>> {
        self.share.get()
    }

    pub(crate) fn gateway(&self) -> Option<Arc<Gateway>> {
        self.gateway.get().and_then(Weak::upgrade)
    }

    pub(crate) fn next_peer(&self) -> PeerId {
        PeerId(NEXT_PEER.fetch_add(1, Ordering::Relaxed))
    }

    /// What is configured of it, as it stands.
    pub(crate) fn spec(&self) -> arc_swap::Guard<Arc<BackendSpec>> {
        self.spec.load()
    }

    /// The bounds that a message of the backend must keep, where messages are governed at all.
    pub(crate) fn strict_limits(&self) -> Option<&Limits> {
        self.strict.as_ref()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, Inner> {
        self.lock()
    }

    pub(crate) fn count_stray(&self, what: &'static str) {
        *self.lock().strays.entry(what).or_default() += 1;
    }

    /// Takes a call of a client, unless the backend is left alone for a while. A further round belongs to a call that was
    /// taken before.
    pub(crate) fn accept(self: &Arc<Self>, session: &Arc<Session>, exchange: ExchangeId, call: Box<Call>) {
        if call.round.is_none()
            && let Err(fault) = self.guard.admit(&self.name, (session.key, exchange), || self.spec().timeout)
        {
            return session.handle(Event::Failed { exchange, fault });
        }
        self.dispatch(session, exchange, call);
    }

    /// A call that was taken ends here, before it reached the backend.
    pub(crate) fn refuse(&self, session: &Arc<Session>, exchange: ExchangeId, fault: Fault) {
        self.guard.settle(&self.name, Some((session.key, exchange)), CallResult::Unknown);
        session.handle(Event::Failed { exchange, fault });
    }

    /// Stops the work on an exchange, wherever it is.
    pub(crate) fn cancel(&self, session: &Arc<Session>, exchange: ExchangeId, reason: Option<&[u8]>) {
        let peers = {
            let mut inner = self.lock();
            inner.waiting.retain(|one| !(one.exchange == exchange && Arc::ptr_eq(&one.session, session)));
            inner.serving(session)
        };
        // It is on one of them at most.
        let on = |thoroughly| peers.iter().any(|peer| peer.cancel(session, exchange, reason, thoroughly));
        let _ = on(false) || on(true);
        self.guard.settle(&self.name, Some((session.key, exchange)), CallResult::Unknown);
    }

    /// The connection that belongs to this session alone.
    pub(crate) fn owned(&self, session: SessionKey) -> Option<Arc<Peer>> {
        self.lock().owned.get(&session).cloned()
    }

    /// A session is over: its own connection ends, and what it wanted to hear is forgotten.
    pub(crate) fn session_closed(&self, session: &Session) {
        let owned = {
            let mut inner = self.lock();
            inner.waiting.retain(|one| one.session.key != session.key);
            inner.owned.remove(&session.key)
        };
        let unwatched = self.forget(session.key);
        match owned {
            Some(peer) => peer.close(),
            None => self.unwatch(&session.principal, &unwatched),
        }
    }

    /// Gives up what has waited too long.
    pub(crate) fn tick(self: &Arc<Self>, now: Instant) {
        let (late, peers) = {
            let mut inner = self.lock();
            let (late, kept): (Vec<Queued>, Vec<Queued>) =
                std::mem::take(&mut inner.waiting).into_iter().partition(|one| one.deadline <= now);
            inner.waiting = kept.into();
            (late, inner.waiting_peers())
        };
        self.let_idle_go(now);
        self.go_on_slowly();
        for one in late {
            let text = format!("backend `{}` was not ready in time", self.name);
            let fault = Fault::new(FaultKind::TimedOut, text).with_str("backend", &self.name);
            self.refuse(&one.session, one.exchange, fault);
        }
        for peer in peers {
            peer.tick(now);
        }
    }

    /// True where no call waits for a connection, and none is being opened for the gateway itself.
    pub(crate) fn is_calm(&self) -> bool {
        let inner = self.lock();
        inner.waiting.is_empty() && !matches!(inner.home, Home::Starting | Home::Restarting)
    }

    /// Ends every connection and answers what still waits for one.
    pub(crate) fn stop(&self) {
        let (peers, waiting) = {
            let mut inner = self.lock();
            inner.stopping = true;
            (inner.peers(), std::mem::take(&mut inner.waiting))
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

    /// A connection finished its handshake.
    pub(crate) fn peer_ready(self: &Arc<Self>, peer: &Arc<Peer>, profile: &Arc<ServerProfile>) {
        let (home, waiting, replaced) = {
            let mut inner = self.lock();
            if peer.is_lost() {
                return;
            }
            let home = inner.is_home(peer);
            inner.support.learn(home, self.spec().wish, profile.era());
            let mut replaced = None;
            if home {
                inner.home = Home::Up(Arc::clone(peer));
                inner.up_since = Some(crate::clock::now());
                self.begin_slowly(&mut inner);
                inner.last_error = None;
                inner.last_words.clear();
                inner.failed_views.clear();
                inner.read_views.clear();
                let key = (peer.principal.clone(), profile.era());
                replaced = inner.shared.insert(key, Arc::clone(peer)).filter(|old| !Arc::ptr_eq(old, peer));
            }
            (home, !inner.waiting.is_empty(), replaced)
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

    /// True where calls may wait for a connection. Does not wait itself, since whoever asks may hold any lock.
    pub(crate) fn may_have_waiting(&self) -> bool {
        self.inner.try_lock().map_or(true, |inner| !inner.waiting.is_empty())
    }

    /// Tries the calls that wait for a connection again.
    pub(crate) fn retry_waiting(self: &Arc<Self>) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        for one in waiting {
            self.dispatch_until(&one.session, one.exchange, one.call, one.deadline);
        }
    }

    pub(crate) fn is_home(&self, peer: &Arc<Peer>) -> bool {
        self.lock().is_home(peer)
    }

    /// A connection is ending: no call is given to it any more. This comes before it counts as lost, so that whoever finds
    /// it lost will not find it here again.
    pub(crate) fn detach(&self, peer: &Arc<Peer>, fault: &Fault) {
        let was_ready = peer.profile().is_some();
        let mut inner = self.lock();
        inner.forget_peer(peer);
        inner.reading.remove(&peer.id);
        let home = inner.is_home(peer);
        if fault.kind == FaultKind::EraRefused && !home {
            // It speaks the other era only: from now on the bridge carries clients of this one to it.
            inner.support.refused(peer.wish);
        }
        let died_of_probe = home && !was_ready && peer.wish == Wish::Auto && fault.kind == FaultKind::BackendDied;
        // Lists that another era or another attempt will still bring are waited for. A backend that refuses an era which it
        // spoke on another connection would be asked for that era again and again.
        let no_lists = match fault.kind {
            FaultKind::Draining => false,
            FaultKind::EraRefused => !home && !inner.support.lacks(peer.wish),
            _ => !died_of_probe,
        };
        if !was_ready && no_lists && !inner.others_reading(&peer.caps, Some(peer.id)) {
            inner.failed(peer.caps.clone());
        }
        if home {
            inner.last_error = Some(fault.message.clone());
            inner.greet_old = died_of_probe;
            inner.home = match (was_ready, died_of_probe) {
                (true, _) => Home::Restarting,
                (false, true) => Home::Starting,
                (false, false) => Home::Down(fault.clone()),
            };
        }
    }

    /// A connection is gone, with calls that had not been sent on it yet.
    pub(crate) fn peer_lost(self: &Arc<Self>, peer: &Arc<Peer>, fault: &Fault, queue: Vec<Queued>) {
        let mut queue = queue;
        let (home, down, stopping, retired) = {
            let mut inner = self.lock();
            let home = inner.is_home(peer);
            let down = inner.home.fault().is_some() && home;
            if down {
                queue.extend(std::mem::take(&mut inner.waiting));
            }
            (home, down, inner.is_ending(), inner.retired.is_some())
        };
        if home {
            if stopping {
                tracing::debug!(backend = %self.name, "backend is stopped");
            } else {
                tracing::warn!(backend = %self.name, why = %fault, "backend is gone");
            }
            self.changed.notify_one();
        }
        if down {
            self.set_listed(false);
        }
        // What was meant for the era that it does not speak is carried over the other one.
        let retry = fault.kind == FaultKind::EraRefused && self.lock().support.lacks(peer.wish);
        for one in queue {
            if retired {
                self.dispatch_until(&one.session, one.exchange, one.call, one.deadline);
            } else if retry && !home {
                self.dispatch(&one.session, one.exchange, one.call);
            } else if !home && !stopping && self.tries_again(fault, &one) {
                self.dispatch_later(one);
            } else {
                let fault = Fault { kind: FaultKind::BackendDown, ..fault.clone() };
                self.refuse(&one.session, one.exchange, fault);
            }
        }
        if !home && !stopping && !peer.has_given_way() {
            self.reopen_later(peer);
        }
        if let Some(gateway) = self.gateway() {
            gateway.catalog.nudge();
        }
    }

    fn set_listed(&self, listed: bool) {
        if let Some(gateway) = self.gateway() {
            let changed = gateway.catalog.set_listed(self, listed);
            gateway.tell_lists_changed(changed, None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
