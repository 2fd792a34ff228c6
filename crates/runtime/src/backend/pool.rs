//! Pooled connections to legacy backends, for modern clients that declare sampling, elicitation, roots or extensions.
//!
//! Pools are keyed by principal and capability set. An HTTP backend asks on the stream of the call concerned, so one
//! connection serves all calls of a key. A pipe carries one call at a time, unless clients with this set cannot be
//! asked anything; such clients share it, legacy clients among them.

use super::Backend;
use super::connection_request::{Capacity, ConnectionRequest, Pick};
use super::connections::{Candidates, PoolKey};
use super::state::{BackendState, Home};
use crate::peer::Peer;
use bytes::Bytes;
use signalbox_engine::{Fault, FaultKind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

/// Maximum number of pooled connections of one backend.
pub const MAX_POOLED: usize = 1024;
/// Maximum number of pooled connections of one principal at one backend.
pub const MAX_POOLED_EACH: usize = 128;
/// Maximum size of a client's info that is part of the pool key, in bytes.
const MAX_INFO: usize = 4 * 1024;

/// Exclusive use of a connection by one call. Dropping it lets the next call in.
///
/// A legacy server on a pipe does not say which call a question belongs to, so a client that can be asked gets the pipe
/// to itself until its call is over, including the time the call is parked.
pub struct ExclusiveUse {
    busy: Arc<AtomicBool>,
    backend: Weak<Backend>,
}

impl ExclusiveUse {
    /// Acquires the connection, unless another call has it.
    #[must_use]
    pub fn take(busy: &Arc<AtomicBool>, backend: &Arc<Backend>) -> Option<Self> {
        let taken = busy.compare_exchange(false, true, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        taken.then(|| Self { busy: Arc::clone(busy), backend: Arc::downgrade(backend) })
    }
}

impl Drop for ExclusiveUse {
    fn drop(&mut self) {
        self.busy.store(false, Ordering::Release);
        // The holder may have locked the connection, so a separate task dispatches the next call to it.
        let (Some(backend), Ok(runtime)) = (self.backend.upgrade(), tokio::runtime::Handle::try_current()) else {
            return;
        };
        if backend.may_have_waiting() {
            runtime.spawn(async move { backend.retry_waiting() });
        }
    }
}

impl Backend {
    pub(super) fn pick_pooled(self: &Arc<Self>, state: &mut BackendState, caller: ConnectionRequest<'_>) -> Pick {
        let caps = caller.caps();
        let askable = caps.may_be_asked();
        // A server remembers nothing of clients that it cannot ask, so those can share a pool.
        let client = caller.client.filter(|_| askable);
        let info = client.and_then(|client| client.info.clone()).filter(|info| info.len() <= MAX_INFO);
        let info = info.map(|info| Bytes::copy_from_slice(&info));
        let key = PoolKey { user: caller.user.clone(), caps, info };
        let exclusive = askable && !self.connector.carries_headers();
        for peer in state.connections.pool(&key) {
            if !exclusive {
                return Pick::Peer(Arc::clone(peer), None);
            }
            if let Some(exclusive_use) = peer.exclusive_use() {
                return Pick::Peer(Arc::clone(peer), Some(exclusive_use));
            }
        }
        if matches!(state.home, Home::Starting | Home::Restarting) {
            return Pick::Wait;
        }
        if let Some(fault) = self.down(state) {
            return Pick::Refuse(fault);
        }
        let crowded = state.connections.pooled_of(&key.user).count() >= MAX_POOLED_EACH;
        let beyond_share = self.beyond_share(state, &key.user);
        if crowded || beyond_share.is_some() || self.is_full(state) {
            let among = match (crowded, &beyond_share) {
                (true, _) => Candidates::PooledOf(&key.user),
                (false, Some(_)) => Candidates::Of(&key.user),
                (false, None) => Candidates::OwnedThenPooled,
            };
            return match (self.make_room(state, among), beyond_share) {
                (Capacity::Available, _) => self.pick_pooled(state, caller),
                (Capacity::AfterClose, _) => Pick::Wait,
                // The call gets a connection of its caller when the call there is over.
                (Capacity::Exhausted, Some(_)) if !state.connections.pool(&key).is_empty() => Pick::Wait,
                (Capacity::Exhausted, Some(fault)) => Pick::Refuse(fault),
                // The call gets a pooled connection when the call there is over, or the first process of its caller.
                (Capacity::Exhausted, None) if state.connections.pooled_count() > 0 => Pick::Wait,
                (Capacity::Exhausted, None) if self.has_no_process(state, &key.user) => Pick::Wait,
                (Capacity::Exhausted, None) => Pick::Refuse(self.no_room(state).unwrap_or_else(|| self.crowded())),
            };
        }
        let mut offer = self.offer();
        offer.capabilities = Bytes::copy_from_slice(key.caps.as_json().as_bytes());
        if let Some(info) = key.info.as_deref().and_then(|info| std::str::from_utf8(info).ok()) {
            offer.info = Arc::from(info);
        }
        let peer = Peer::pooled(self, key, offer);
        let exclusive_use = if exclusive { peer.exclusive_use() } else { None };
        state.connections.insert(Arc::clone(&peer));
        tokio::spawn(Arc::clone(&peer).open());
        Pick::Peer(peer, exclusive_use)
    }

    fn crowded(&self) -> Fault {
        let text = format!("{MAX_POOLED_EACH} connections of this caller to backend `{}` are open", self.name);
        Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name)
    }
}
