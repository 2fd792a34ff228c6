//! Connections that nobody uses any more are ended, so that whoever came once does not hold a process for ever.

use super::Backend;
use super::state::Inner;
use crate::peer::Peer;
use signalbox_engine::SessionKey;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long the connection that a principal's calls share may be unused before it is ended.
pub const SHARED_IDLE: Duration = Duration::from_secs(300);

impl Backend {
    /// Ends shared connections whose principal has neither called nor been connected for a while. The gateway's own stay.
    pub(super) fn let_shared_go(self: &Arc<Self>, now: Instant) {
        let Some(gateway) = self.gateway() else { return };
        let unused: Vec<Arc<Peer>> = {
            let inner = self.lock();
            let unused = inner.shared.values().filter(|peer| peer.unused_since(now) > SHARED_IDLE);
            unused.filter(|peer| peer.principal != gateway.principal && is_free(&inner, peer)).cloned().collect()
        };
        for peer in unused {
            let connected = gateway.sessions.all().iter().any(|session| session.principal == peer.principal);
            if !connected && !self.works_on_task(&peer) && peer.close_if_idle() {
                tracing::debug!(backend = %self.name, peer = %peer.id, "a shared connection that nobody uses is ended");
            }
        }
    }
}

impl Backend {
    /// Has the child of a session whose client is away give up its place to another, the longest unused first. It is started
    /// again when the client comes back. False where there is none.
    pub(super) fn displace(&self, inner: &mut Inner) -> bool {
        if !self.connector.is_process() {
            return false;
        }
        let watches = |key| inner.watches.values().any(|sessions| sessions.contains_key(key));
        let mut away: Vec<(Instant, SessionKey)> = inner
            .owned
            .iter()
            .filter(|(key, peer)| !watches(key) && !self.works_on_task(peer))
            .filter_map(|(key, peer)| peer.owner().map(|session| (session.last_seen(), *key)))
            .collect();
        away.sort_unstable_by_key(|(seen, _)| *seen);
        let found = away.iter().find(|(_, key)| inner.owned.get(key).is_some_and(|peer| peer.displace()));
        let Some(peer) = found.and_then(|(_, key)| inner.owned.remove(key)) else { return false };
        tracing::info!(
            backend = %self.name, peer = %peer.id,
            "a process of a session without a connection makes room for another; it is started again when the client comes back"
        );
        tokio::spawn(async move { peer.close() });
        true
    }
}

/// True where nobody follows anything on this connection.
fn is_free(inner: &Inner, peer: &Arc<Peer>) -> bool {
    !inner.is_home(peer)
        && peer.in_flight() == 0
        && inner.follows_of(&peer.principal).next().is_none()
        && !inner.watches.values().flatten().any(|(_, of)| *of == peer.principal)
}
