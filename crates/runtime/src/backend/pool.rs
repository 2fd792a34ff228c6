//! Connections of the old era for clients of the new one that declare sampling, elicitation or roots.
//!
//! They are kept by principal and capability set. An HTTP backend says on which call's stream it asks, so that one
//! connection serves all calls with the same set; a pipe is given to one call at a time.

use super::Backend;
use super::routes::{Caller, Pick};
use super::state::{Home, Inner, PoolKey};
use crate::peer::{Peer, Use};
use bytes::Bytes;
use signalbox_engine::back::Wish;
use signalbox_engine::{Fault, FaultKind, Principal};
use std::sync::Arc;

/// Most pooled connections of one backend.
pub const MAX_POOLED: usize = 1024;
/// Most of them for one principal.
pub const MAX_POOLED_EACH: usize = 128;
/// The longest name of a client that counts.
const MAX_INFO: usize = 4 * 1024;

impl Backend {
    pub(super) fn pick_pooled(self: &Arc<Self>, inner: &mut Inner, caller: Caller<'_>) -> Pick {
        let caps = caller.caps();
        let info = caller.client.and_then(|client| client.info.clone()).filter(|info| info.len() <= MAX_INFO);
        let info = info.map(|info| Bytes::copy_from_slice(&info));
        let key = PoolKey { principal: caller.session.principal.clone(), caps, info };
        let exclusive = !self.connector.carries_headers();
        for peer in inner.pooled.get(&key).into_iter().flatten() {
            if !exclusive {
                return Pick::Peer(Arc::clone(peer), None);
            }
            if let Some(exclusive_use) = peer.exclusive_use() {
                return Pick::Peer(Arc::clone(peer), Some(exclusive_use));
            }
        }
        if matches!(inner.home, Home::Starting | Home::Restarting) {
            return Pick::Wait;
        }
        if let Some(fault) = self.down(inner) {
            return Pick::Refuse(fault);
        }
        let own = inner.pooled.iter().filter(|(other, _)| other.principal == key.principal);
        let crowded = own.map(|(_, pool)| pool.len()).sum::<usize>() >= MAX_POOLED_EACH;
        if crowded || self.is_full(inner) {
            // A connection that nobody uses makes room; else the call waits for one, if there are any to wait for.
            let among = crowded.then_some(&key.principal);
            if !crowded && self.displace(inner) {
                return self.pick_pooled(inner, caller);
            }
            if self.make_room(inner, among) || inner.pooled_count() > 0 {
                return Pick::Wait;
            }
            return Pick::Refuse(self.no_room(inner).unwrap_or_else(|| self.crowded()));
        }
        let mut offer = self.offer();
        offer.capabilities = Bytes::copy_from_slice(key.caps.as_json().as_bytes());
        if let Some(info) = key.info.as_deref().and_then(|info| std::str::from_utf8(info).ok()) {
            offer.info = Arc::from(info);
        }
        let peer = Peer::new(self, key.principal.clone(), Use::Pool, Wish::Legacy, offer);
        let exclusive_use = if exclusive { peer.exclusive_use() } else { None };
        inner.pooled.entry(key).or_default().push(Arc::clone(&peer));
        tokio::spawn(Arc::clone(&peer).open());
        Pick::Peer(peer, exclusive_use)
    }

    /// Ends a pooled connection that nobody uses, of this principal or of any. False where there is none.
    pub(super) fn make_room(self: &Arc<Self>, inner: &mut Inner, among: Option<&Principal>) -> bool {
        let idle = |peer: &&Arc<Peer>| {
            among.is_none_or(|principal| peer.principal == *principal)
                && !peer.is_in_exclusive_use()
                && peer.in_flight() == 0
                && !self.works_on_task(peer)
        };
        let Some(peer) = inner.pooled.values().flatten().find(idle).cloned() else { return false };
        // Nobody may pick it any more while it is being ended.
        inner.pooled.values_mut().for_each(|pool| pool.retain(|one| !Arc::ptr_eq(one, &peer)));
        let backend = Arc::clone(self);
        tokio::spawn(async move {
            peer.close();
            backend.retry_waiting();
        });
        true
    }

    fn crowded(&self) -> Fault {
        let text = format!("{MAX_POOLED_EACH} connections of this caller to backend `{}` are open", self.name);
        Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name)
    }
}
