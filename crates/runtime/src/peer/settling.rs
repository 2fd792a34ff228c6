//! Delays the first calls of a connection until its server knows the client's roots.
//!
//! A server that restricts itself to the roots asks for them after `initialized`. It refuses calls that arrive before
//! the answer, or carries them out outside the roots. So calls wait until the server has answered a ping sent after
//! `initialized`, has received the answers to its earlier questions, and has answered a few more pings. The extra pings
//! give it time: it checks the roots in the file system before it applies them, and answers a ping meanwhile.

use super::{Peer, PeerState};
use crate::backend::Backend;
use signalbox_engine::ServerProfile;
use signalbox_wire::{Era, json, method};
use std::sync::Arc;
use std::time::Duration;

/// Maximum wait of the first call for the first ping and the client's answers.
const SETTLE: Duration = Duration::from_secs(2);
/// Maximum further wait once the server has the roots.
const APPLY: Duration = Duration::from_secs(1);
/// Number of pings that a server answers before it counts as having applied the roots, and the pause before each.
const PINGS: u32 = 3;
const PAUSE: Duration = Duration::from_millis(20);

impl Peer {
    /// Returns true if calls must wait for the roots. A modern call carries the questions itself.
    pub(super) fn must_settle(&self, profile: &ServerProfile) -> bool {
        let caps = self.caps.as_json().as_bytes();
        self.owner().is_some() && profile.era() == Era::Legacy && json::member(caps, "roots").is_some()
    }

    /// Sends the queued calls as soon as the server has its answers.
    pub(super) fn settle(self: &Arc<Self>) {
        let peer = Arc::clone(self);
        tokio::spawn(async move {
            let answered = async {
                let _ = peer.ask(method::PING, "", SETTLE).await;
                while peer.lock().machine.waits_for_roots() {
                    peer.replied.notified().await;
                }
            };
            // The server has a limit of its own: a client that is slow to answer must not cost it the time to apply the
            // roots.
            match tokio::time::timeout(SETTLE, answered).await {
                Ok(()) => peer.apply_roots().await,
                Err(_) => tracing::debug!(peer = %peer.id, "the server did not get its client's roots in time"),
            }
            peer.lock().settling = false;
            if let Some(backend) = peer.backend.upgrade() {
                peer.send_queue(&backend);
            }
        });
    }

    /// Waits until the server has most likely applied the roots.
    async fn apply_roots(&self) {
        let applying = async {
            for _ in 0..PINGS {
                tokio::time::sleep(PAUSE).await;
                let _ = self.ask(method::PING, "", APPLY).await;
            }
        };
        let _ = tokio::time::timeout(APPLY, applying).await;
    }

    /// Sends the calls that were queued until the connection was ready.
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
    /// Returns true once calls can be sent.
    pub(super) fn takes_calls(&self) -> bool {
        self.machine.is_ready() && !self.settling
    }
}
