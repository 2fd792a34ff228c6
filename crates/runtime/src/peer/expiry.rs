//! What happens to messages that found their backend session expired.

use super::{Peer, PeerState};
use signalbox_engine::back::Outbound;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most messages that wait for a new session.
const MAX_WAITING: usize = 1024;
/// Most keys that are remembered as sent again.
const MAX_REMEMBERED: usize = 10_000;
/// Most sessions opened within [`WINDOW`].
const MAX_REOPENED: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);

/// What to do with a message that was not processed because its session had expired.
pub(super) enum Expired {
    /// A new session is being opened, and the message is sent in it.
    Waits,
    /// A newer session is open already.
    Resend(Outbound),
    /// Open a new session; the message waits for it.
    Reopen,
    /// Give up: it was sent again before, or sessions expire too fast.
    Hopeless,
}

impl PeerState {
    pub(super) fn expired(&mut self, message: Outbound, now: Instant) -> Expired {
        if self.resent.len() >= MAX_REMEMBERED {
            self.resent.clear();
        }
        let again = message.key().is_some_and(|key| !self.resent.insert(key));
        if again || self.resend.len() >= MAX_WAITING {
            return Expired::Hopeless;
        }
        if message.epoch() < self.epoch && self.machine.is_ready() {
            return Expired::Resend(message);
        }
        if !self.machine.is_ready() {
            self.resend.push(message);
            return Expired::Waits;
        }
        self.reopened.retain(|when| now.saturating_duration_since(*when) < WINDOW);
        if self.reopened.len() >= MAX_REOPENED {
            return Expired::Hopeless;
        }
        self.reopened.push(now);
        self.epoch += 1;
        self.level = None;
        self.resend.push(message);
        Expired::Reopen
    }
}

impl Peer {
    /// Sends messages again, except those whose caller has gone meanwhile.
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
