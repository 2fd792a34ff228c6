//! Changes of a resource that several connections tell: a backend of several processes tells each change several times.
//!
//! They are held back for a moment and told once, after the last of them. To tell the first and drop the others would lose
//! a change that came after somebody had read the resource again.

use super::Backend;
use crate::peer::Peer;
use signalbox_engine::Event;
use signalbox_wire::Envelope;
use std::sync::Arc;
use std::time::Duration;

/// For how long a change is held back.
const SAME_CHANGE: Duration = Duration::from_millis(50);

impl Backend {
    /// True where this change will be told in a moment, since other connections of the principal may tell it too.
    pub(crate) fn tell_later(self: &Arc<Self>, peer: &Arc<Peer>, uri: &str, message: &Envelope) -> bool {
        if !peer.is_legacy() || peer.owner().is_some() {
            return false;
        }
        let key = (peer.principal.clone(), Box::from(uri));
        {
            let mut state = self.lock();
            if state.subscriptions.renew_change(&key, message) {
                return true;
            }
            let alone = !state.connections.has_other(peer);
            if alone || !state.shared_wants(&peer.principal, uri) {
                return false;
            }
            if !state.subscriptions.hold_change(key.clone(), message) {
                return false;
            }
        }
        let (backend, peer) = (Arc::clone(self), peer.id);
        tokio::spawn(async move {
            tokio::time::sleep(SAME_CHANGE).await;
            let Some(message) = backend.lock().subscriptions.take_change(&key) else { return };
            let (principal, uri) = key;
            let followers = backend.followers(&uri, &principal).into_iter().map(|(session, id)| (session, Some(id)));
            let watchers = backend.watchers(&uri, &principal).into_iter().map(|session| (session, None));
            for (session, about) in followers.chain(watchers) {
                let name = Arc::clone(&backend.name);
                session.handle(Event::Notified { backend: name, peer, message: message.clone(), about });
            }
        });
        true
    }
}
