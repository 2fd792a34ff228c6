//! Handling of messages that found their backend session expired.

use super::{Peer, PeerState};
use signalbox_engine::back::Outbound;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of messages that wait for a new session.
const MAX_WAITING: usize = 1024;
/// Maximum number of keys that are remembered as resent.
const MAX_REMEMBERED: usize = 10_000;
/// Maximum number of sessions opened within [`WINDOW`].
const MAX_REOPENED: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// Action for a message that was not processed because its session had expired.
pub(super) enum ExpiryAction {
    /// Wait: a new session is being opened, and the message is sent in it.
    Wait,
    /// Resend at once: a newer session is open already.
    Resend(Outbound),
    /// Open a new session. The message waits for it.
    Reopen,
    /// Give up: the message was resent before, or sessions expire too fast.
    GiveUp,
}

impl PeerState {
    pub(super) fn expired(&mut self, message: Outbound, now: Instant) -> ExpiryAction {
        if self.resent.len() >= MAX_REMEMBERED {
            self.resent.clear();
        }
        let again = message.key().is_some_and(|key| !self.resent.insert(key));
        if again || self.resend.len() >= MAX_WAITING {
            return ExpiryAction::GiveUp;
        }
        if message.epoch() < self.epoch && self.machine.is_ready() {
            return ExpiryAction::Resend(message);
        }
        if !self.machine.is_ready() {
            self.resend.push(message);
            return ExpiryAction::Wait;
        }
        self.reopened.retain(|when| now.saturating_duration_since(*when) < WINDOW);
        if self.reopened.len() >= MAX_REOPENED {
            return ExpiryAction::GiveUp;
        }
        self.reopened.push(now);
        self.epoch += 1;
        self.level = None;
        self.resend.push(message);
        ExpiryAction::Reopen
    }
}

impl Peer {
    /// Resends messages, except those whose caller has left meanwhile.
    pub(super) fn resend(self: &Arc<Self>, messages: Vec<Outbound>) {
        for message in messages {
            let Some(origin) = message.key().and_then(|key| self.lock().machine.origin(key).cloned()) else { continue };
            if let Some((session, exchange)) = origin.exchange() {
                session.retried(exchange);
            }
            let sent = self.transmit(&mut self.lock(), message);
            if let Err(fault) = sent {
                self.fail(&origin, fault);
            }
        }
    }
}
