//! One configured backend: its connections, who may use which of them, and what waits while it starts.
//!
//! The *home* connection belongs to the gateway itself. It tells which era the backend speaks, feeds the catalog, is kept
//! alive by [`supervisor`], and serves every session that may share it.

mod listings;
mod routes;
mod state;
mod supervisor;

pub use state::{Home, Support};

use crate::gateway::Gateway;
use crate::link::Connector;
use crate::peer::{Peer, Queued};
use crate::session::Session;
use signalbox_engine::back::Wish;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Event, ExchangeId, Fault, FaultKind, PeerId, ServerProfile, SessionKey};
use signalbox_wire::{Era, Limits};
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
    /// Which tools are let through.
    pub allows: Box<dyn Fn(&str) -> bool + Send + Sync>,
}

/// The backend.
pub struct Backend {
    /// Its configured name.
    pub name: Arc<str>,
    pub(crate) connector: Arc<dyn Connector>,
    pub(crate) spec: BackendSpec,
    gateway: OnceLock<Weak<Gateway>>,
    inner: Mutex<Inner>,
    changed: Notify,
}

static NEXT_PEER: AtomicU64 = AtomicU64::new(1);

impl Backend {
    /// A backend that is not started yet.
    #[must_use]
    pub fn new(name: &str, connector: Arc<dyn Connector>, spec: BackendSpec) -> Arc<Self> {
        Arc::new(Self {
            name: Arc::from(name),
            connector,
            spec,
            gateway: OnceLock::new(),
            inner: Mutex::new(Inner::default()),
            changed: Notify::new(),
        })
    }

    pub(crate) fn attach(&self, gateway: &Arc<Gateway>) {
        let _ = self.gateway.set(Arc::downgrade(gateway));
    }

    fn gateway(&self) -> Option<Arc<Gateway>> {
        self.gateway.get().and_then(Weak::upgrade)
    }

    pub(crate) fn next_peer(&self) -> PeerId {
        PeerId(NEXT_PEER.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn session(&self, key: SessionKey) -> Option<Arc<Session>> {
        self.gateway()?.sessions.by_key(key)
    }

    /// The bounds that a message of the backend must keep, where messages are governed at all.
    pub(crate) fn strict_limits(&self) -> Option<&Limits> {
        self.spec.strict.as_ref()
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, Inner> {
        self.lock()
    }

    pub(crate) fn count_stray(&self, what: &'static str) {
        *self.lock().strays.entry(what).or_default() += 1;
    }

    /// Stops the work on an exchange, wherever it is.
    pub(crate) fn cancel(&self, session: &Arc<Session>, exchange: ExchangeId, reason: Option<&[u8]>) {
        let peers = {
            let mut inner = self.lock();
            inner.waiting.retain(|one| !(one.exchange == exchange && Arc::ptr_eq(&one.session, session)));
            inner.serving(session.key)
        };
        for peer in peers {
            peer.cancel(session, exchange, reason);
        }
    }

    /// Notes what a session follows. True where the backend has to be told.
    pub(crate) fn watch(&self, session: &Session, uri: &str, on: bool) -> bool {
        let shared = {
            let inner = self.lock();
            if inner.owned.contains_key(&session.key) {
                return true;
            }
            inner.shared.get(&(session.principal.clone(), Era::Legacy)).cloned()
        };
        shared.is_none_or(|peer| peer.watch(session.key, uri, on))
    }

    /// Tells the connections of a session which log level it wants.
    pub(crate) fn set_level(&self, session: &Session, level: LogLevel) {
        let peer = {
            let inner = self.lock();
            let owned = inner.owned.get(&session.key);
            owned.or_else(|| inner.shared.get(&(session.principal.clone(), Era::Legacy))).cloned()
        };
        if let Some(peer) = peer {
            peer.set_level(session.key, level);
        }
    }

    /// The connection that belongs to this session alone.
    pub(crate) fn owned(&self, session: SessionKey) -> Option<Arc<Peer>> {
        self.lock().owned.get(&session).cloned()
    }

    /// A session is over: its own connection ends, shared ones forget it.
    pub(crate) fn session_closed(&self, session: &Session) {
        let (owned, shared) = {
            let mut inner = self.lock();
            inner.waiting.retain(|one| one.session.key != session.key);
            let shared: Vec<Arc<Peer>> = inner.shared.values().cloned().collect();
            (inner.owned.remove(&session.key), shared)
        };
        if let Some(peer) = owned {
            peer.close();
        }
        for peer in shared {
            peer.forget(session.key);
        }
    }

    /// Gives up what has waited too long.
    pub(crate) fn tick(&self, now: Instant) {
        let (late, peers) = {
            let mut inner = self.lock();
            let (late, kept): (Vec<Queued>, Vec<Queued>) =
                std::mem::take(&mut inner.waiting).into_iter().partition(|one| one.deadline <= now);
            inner.waiting = kept.into();
            (late, inner.peers())
        };
        for one in late {
            let text = format!("backend `{}` was not ready in time", self.name);
            let fault = Fault::new(FaultKind::TimedOut, text).with_str("backend", &self.name);
            one.session.handle(Event::Failed { exchange: one.exchange, fault });
        }
        for peer in peers {
            peer.tick(now);
        }
    }

    /// Ends every connection.
    pub(crate) fn stop(&self) {
        let peers = {
            let mut inner = self.lock();
            inner.stopping = true;
            inner.peers()
        };
        self.changed.notify_one();
        for peer in peers {
            peer.close();
        }
    }

    /// A connection finished its handshake.
    pub(crate) fn peer_ready(self: &Arc<Self>, peer: &Arc<Peer>, profile: &Arc<ServerProfile>) {
        let (home, waiting) = {
            let mut inner = self.lock();
            inner.support.learn(peer.wish, profile.era());
            let home = inner.is_home(peer);
            if home {
                inner.home = Home::Up(Arc::clone(peer));
                inner.up_since = Some(Instant::now());
                inner.last_error = None;
                if let Some(gateway) = self.gateway() {
                    inner.shared.insert((gateway.principal.clone(), profile.era()), Arc::clone(peer));
                }
            }
            (home, std::mem::take(&mut inner.waiting))
        };
        if home {
            tracing::info!(
                backend = %self.name,
                revision = profile.revision.as_str(),
                server = profile.name().as_deref().unwrap_or("-"),
                "backend is up"
            );
            self.set_listed(true);
        }
        self.refresh(peer, profile, home);
        for one in waiting {
            self.dispatch(&one.session, one.exchange, one.call);
        }
    }

    /// A connection is ending: no call is given to it any more. This comes before it counts as lost, so that whoever finds
    /// it lost will not find it here again.
    pub(crate) fn detach(&self, peer: &Arc<Peer>, fault: &Fault) {
        let was_ready = peer.profile().is_some();
        let mut inner = self.lock();
        inner.owned.retain(|_, one| !Arc::ptr_eq(one, peer));
        inner.shared.retain(|_, one| !Arc::ptr_eq(one, peer));
        let home = inner.is_home(peer);
        if !was_ready && !home && peer.wish == Wish::Legacy && inner.support.modern == Some(true) {
            // It speaks the new era and refuses the old one: from now on the bridge carries old clients to it.
            inner.support.legacy.get_or_insert(false);
        }
        if !was_ready {
            inner.failed_views.insert(peer.caps.clone());
        }
        if home {
            inner.last_error = Some(fault.message.clone());
            inner.home = if was_ready { Home::Restarting } else { Home::Down(fault.clone()) };
        }
    }

    /// A connection is gone, with calls that had not been sent on it yet.
    pub(crate) fn peer_lost(self: &Arc<Self>, peer: &Arc<Peer>, fault: &Fault, queue: Vec<Queued>) {
        let mut queue = queue;
        let (home, down, stopping) = {
            let mut inner = self.lock();
            let home = inner.is_home(peer);
            let down = matches!(inner.home, Home::Down(_)) && home;
            if down {
                queue.extend(std::mem::take(&mut inner.waiting));
            }
            (home, down, inner.stopping)
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
        let retry = self.lock().support.legacy == Some(false) && peer.wish == Wish::Legacy;
        for one in queue {
            if retry && !home {
                self.dispatch(&one.session, one.exchange, one.call);
            } else {
                let fault = Fault { kind: FaultKind::BackendDown, ..fault.clone() };
                one.session.handle(Event::Failed { exchange: one.exchange, fault });
            }
        }
        if let Some(gateway) = self.gateway() {
            gateway.catalog.nudge();
        }
    }

    fn set_listed(&self, listed: bool) {
        if let Some(gateway) = self.gateway() {
            let changed = gateway.catalog.set_listed(&self.name, listed);
            gateway.tell_lists_changed(changed, None);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
