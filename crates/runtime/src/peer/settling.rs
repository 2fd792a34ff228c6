//! Holds the first calls of a connection back until its server knows the client's roots.
//!
//! A server that restricts itself to the roots asks for them when it gets `initialized`. It refuses calls that come before the
//! answer, or carries them out outside the roots. So calls wait until the server has answered a ping that was sent after
//! `initialized`, has got the answers to the questions that it asked before, and has answered a second ping: it takes a moment to make
//! the roots its own.

use super::{Peer, PeerState};
use crate::backend::Backend;
use signalbox_engine::ServerProfile;
use signalbox_wire::{Era, json, method};
use std::sync::Arc;
use std::time::Duration;

/// How long the first call waits at most.
const SETTLE: Duration = Duration::from_secs(2);
/// Most time that it waits once the server has the roots.
const APPLY: Duration = Duration::from_secs(1);

impl Peer {
    /// True if calls have to wait for the roots. A call of the new era carries the questions itself.
    pub(super) fn must_settle(&self, profile: &ServerProfile) -> bool {
        let caps = self.caps.as_json().as_bytes();
        self.owner().is_some() && profile.era() == Era::Legacy && json::member(caps, "roots").is_some()
    }

    /// Sends the waiting calls as soon as the server has its answers.
    pub(super) fn settle(self: &Arc<Self>) {
        let peer = Arc::clone(self);
        tokio::spawn(async move {
            let settling = async {
                let _ = peer.ask(method::PING, "", SETTLE).await;
                while peer.lock().machine.waits_for_roots() {
                    peer.replied.notified().await;
                }
                let _ = peer.ask(method::PING, "", APPLY).await;
            };
            if tokio::time::timeout(SETTLE, settling).await.is_err() {
                tracing::debug!(peer = %peer.id, "the server did not get its client's roots in time");
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
        for queued in queue {
            let timeout = backend.timeout_of(&queued.call);
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
