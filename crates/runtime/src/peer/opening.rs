//! Creates a connection in one of four roles, and opens it.

use super::events::PeerEvents;
use super::live_tasks::LiveTasks;
use super::watching::WatchState;
use super::{Peer, PeerState};
use crate::backend::{Backend, ConnectionRole, PoolKey};
use crate::counters::network_transport;
use crate::link::LinkEvents;
use crate::session::Session;
use signalbox_engine::back::{BackMachine, ClientOffer, Wish};
use signalbox_engine::call_index::CallIndex;
use signalbox_engine::operation_metrics::OperationTimer;
use signalbox_engine::{BackendUser, CapSet, Fault, FaultKind};
use std::collections::{HashSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;

impl Peer {
    /// Creates the gateway's own connection, without opening it.
    pub(crate) fn home(backend: &Arc<Backend>, user: BackendUser, wish: Wish, offer: ClientOffer) -> Arc<Self> {
        Self::new(backend, user, ConnectionRole::Home, None, wish, offer)
    }

    /// Creates a connection that the sessions of a user share, without opening it.
    pub(crate) fn shared(backend: &Arc<Backend>, user: BackendUser, wish: Wish, offer: ClientOffer) -> Arc<Self> {
        Self::new(backend, user.clone(), ConnectionRole::Shared(user), None, wish, offer)
    }

    /// Creates a connection of one session for its requests as this user, without opening it.
    pub(crate) fn owned(
        backend: &Arc<Backend>,
        session: &Arc<Session>,
        user: BackendUser,
        wish: Wish,
        offer: ClientOffer,
    ) -> Arc<Self> {
        let (role, owner) = (ConnectionRole::Owned(session.key), Some(Arc::clone(session)));
        Self::new(backend, user, role, owner, wish, offer)
    }

    /// Creates a pooled connection, without opening it.
    pub(crate) fn pooled(backend: &Arc<Backend>, key: PoolKey, offer: ClientOffer) -> Arc<Self> {
        Self::new(backend, key.user.clone(), ConnectionRole::Pooled(key), None, Wish::Legacy, offer)
    }

    fn new(
        backend: &Arc<Backend>,
        user: BackendUser,
        role: ConnectionRole,
        owner: Option<Arc<Session>>,
        wish: Wish,
        offer: ClientOffer,
    ) -> Arc<Self> {
        let caps = CapSet::read(&offer.capabilities);
        let timed = backend.gateway().map(|gateway| Arc::clone(&gateway.counters.client_operations));
        let machine = BackMachine::new(Arc::clone(&backend.name), wish, offer, backend.connector.carries_headers())
            .numbered_from(first_id())
            .keeping_calls(backend.connector.signs_in())
            .timed(OperationTimer::new(timed));
        Arc::new(Self {
            id: backend.next_peer(),
            user,
            role,
            owner,
            caps,
            wish,
            lists_turn: tokio::sync::Mutex::new(()),
            busy: Arc::default(),
            tasks: LiveTasks::default(),
            closed: AtomicBool::new(false),
            gave_way: AtomicBool::new(false),
            quiet: AtomicBool::new(false),
            calls: AtomicU64::new(0),
            opened: crate::clock::now(),
            unused: Mutex::new((0, crate::clock::now())),
            backend: Arc::downgrade(backend),
            name: Arc::clone(&backend.name),
            guard: Arc::clone(&backend.guard),
            link: OnceLock::new(),
            replied: tokio::sync::Notify::new(),
            inner: Mutex::new(PeerState {
                machine,
                by_exchange: CallIndex::default(),
                queue: VecDeque::new(),
                resend: Vec::new(),
                resent: HashSet::new(),
                reopened: Vec::new(),
                epoch: 0,
                level: None,
                floor: None,
                watching: WatchState::default(),
                buffer: Vec::new(),
                settling: false,
                closing: false,
                lost: false,
            }),
        })
    }

    /// Records the lifetime of a connection that was ready.
    pub(super) fn count_session(&self, backend: &Backend, now: Instant) {
        if let Some(gateway) = backend.gateway() {
            let lasted = now.saturating_duration_since(self.opened);
            gateway.counters.client_sessions.add(network_transport(backend.connector.kind()), lasted);
        }
    }

    /// Opens the link and starts the handshake. The outcome is `peer_ready` or `peer_lost` of the backend.
    pub async fn open(self: Arc<Self>) {
        let Some(backend) = self.backend.upgrade() else { return };
        let events: Arc<dyn LinkEvents> = Arc::new(PeerEvents(Arc::downgrade(&self)));
        let opening = tokio::time::timeout(backend.spec().start_timeout, backend.connector.open(events)).await;
        let opened = opening.unwrap_or_else(|_| {
            let text = format!("backend `{}` could not be opened in time", backend.name);
            Err(Fault::new(FaultKind::TimedOut, text).with_str("backend", &backend.name))
        });
        match opened {
            Ok(link) => {
                if self.link.set(Arc::clone(&link)).is_err() || self.lock().lost {
                    return link.close();
                }
                self.drive(|machine, now, out| machine.opened(now, out));
            }
            Err(fault) => self.end(&fault),
        }
    }
}

/// Returns the first request id of a connection: random, and low enough for backends that read ids as 32 bits.
fn first_id() -> u64 {
    let mut bytes = [0; 4];
    // Without randomness from the system the ids are predictable, which costs nothing else.
    let _ = getrandom::fill(&mut bytes);
    u64::from(u32::from_le_bytes(bytes) >> 3) + 1
}
