//! A new connection whose server may ask for the client's roots gets its first call once it has them.
//!
//! A server that restricts itself to the roots asks for them when it hears `initialized`. What is sent to it before it has
//! the answer it refuses, or does outside of them. So the calls wait until it has answered a ping, which it got after
//! `initialized`, and has been answered what it asked before that.

use super::{Peer, PeerState};
use crate::backend::Backend;
use signalbox_engine::ServerProfile;
use signalbox_wire::{Era, json, method};
use std::sync::Arc;
use std::time::Duration;

/// How long the first call waits at most.
const SETTLE: Duration = Duration::from_secs(2);

impl Peer {
    /// True where calls wait for the roots first. A call of the new era carries its questions itself.
    pub(super) fn must_settle(&self, profile: &ServerProfile) -> bool {
        let caps = self.caps.as_json().as_bytes();
        self.owner().is_some() && profile.era() == Era::Legacy && json::member(caps, "roots").is_some()
    }

    /// Lets the calls go as soon as the server has what it asked for.
    pub(super) fn settle(self: &Arc<Self>) {
        let peer = Arc::clone(self);
        tokio::spawn(async move {
            let settling = async {
                let _ = peer.ask(method::PING, "", SETTLE).await;
                while peer.lock().machine.waits_for_roots() {
                    peer.replied.notified().await;
                }
            };
            if tokio::time::timeout(SETTLE, settling).await.is_err() {
                tracing::debug!(peer = %peer.id, "the server was not told its client's roots in time");
            }
            peer.lock().settling = false;
            if let Some(backend) = peer.backend.upgrade() {
                peer.send_queue(&backend);
            }
        });
    }

    /// Sends the calls that have waited for the connection.
    pub(super) fn send_queue(self: &Arc<Self>, backend: &Arc<Backend>) {
        let queue = std::mem::take(&mut self.lock().queue);
        let timeout = backend.spec().timeout;
        for queued in queue {
            if let Some(call) = self.call(&queued.session, queued.exchange, queued.call, timeout, queued.exclusive_use)
            {
                backend.dispatch(&queued.session, queued.exchange, call);
            }
        }
    }
}

impl PeerState {
    /// True once calls can be sent.
    pub(super) fn takes_calls(&self) -> bool {
        self.machine.is_ready() && !self.settling
    }
}
