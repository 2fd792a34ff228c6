//! Connections that nobody uses any more are ended, so that whoever came once does not hold a process for ever.

use super::Backend;
use super::state::Inner;
use crate::peer::Peer;
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

/// True where nobody follows anything on this connection.
fn is_free(inner: &Inner, peer: &Arc<Peer>) -> bool {
    !inner.is_home(peer)
        && peer.in_flight() == 0
        && inner.follows_of(&peer.principal).next().is_none()
        && !inner.watches.values().flatten().any(|(_, of)| *of == peer.principal)
}
