//! Pings a backend at intervals over the gateway's own connection.
//!
//! Without calls, a hanging child or a vanished server would go unnoticed. A backend that misses several pings in a row
//! counts as unwell, and its connection is reopened.

use super::Backend;
use crate::clock;
use crate::peer::Peer;
use serde::Serialize;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Era, method};
use std::sync::Arc;
use std::time::Duration;

/// Health of a backend according to pings.
#[derive(Clone, Debug, Serialize)]
pub struct HealthStatus {
    /// `not pinged yet`, `well`, `in doubt` or `unwell`.
    pub state: &'static str,
    /// Number of unanswered pings.
    pub failed: u64,
}

enum Pong {
    Answered,
    Failed,
    /// No evidence about the backend.
    Unclear,
}

impl Backend {
    /// Pings the home connection until it is lost.
    pub(super) async fn ping_until_lost(&self, peer: &Arc<Peer>) {
        let mut due = clock::now() + self.ping_wait();
        while !peer.is_lost() {
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(due.into()) => {
                    self.check(peer).await;
                    due = clock::now() + self.ping_wait();
                }
            }
        }
    }

    /// Returns the delay before the next ping.
    fn ping_wait(&self) -> Duration {
        /// Delay for a backend that is not pinged.
        const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
        self.lock().condition.ping_wait().unwrap_or(NEVER)
    }

    async fn check(&self, peer: &Arc<Peer>) {
        let (Some(rules), Some(profile)) = (self.spec().failing.ping, peer.profile().filter(|_| peer.is_ready()))
        else {
            return;
        };
        // The modern era has no ping, but every server answers `server/discover`.
        let name = if profile.era() == Era::Modern { method::SERVER_DISCOVER } else { method::PING };
        let answer = tokio::time::timeout(rules.timeout, peer.ask(name, "", rules.timeout)).await;
        let pong = match answer {
            Ok(Ok(Ok(_))) => Pong::Answered,
            // The connection is gone; the supervisor handles that.
            _ if peer.is_lost() => Pong::Unclear,
            // The ping was not sent: the gateway had no connection left for it.
            Ok(Ok(Err(fault))) if fault.kind == FaultKind::Overloaded => Pong::Unclear,
            Ok(Ok(Err(fault))) if fault.kind != FaultKind::TimedOut => Pong::Failed,
            // A server that handles one request at a time answers after the current one.
            _ if !self.connector.carries_headers() && peer.has_calls() => Pong::Unclear,
            // Some legacy servers do not know pings and do not even answer with an error.
            _ if name == method::PING && !self.lock().condition.answers_pings() => Pong::Unclear,
            _ => Pong::Failed,
        };
        self.pinged(peer, &pong);
    }

    fn pinged(&self, peer: &Arc<Peer>, pong: &Pong) {
        let answered = match pong {
            Pong::Answered => true,
            Pong::Failed => false,
            Pong::Unclear => return,
        };
        let Some((fell, state)) = self.lock().condition.pinged(answered) else { return };
        if answered {
            self.guard.pinged(&self.name);
        } else {
            tracing::warn!(backend = %self.name, state, "the backend did not answer a ping");
        }
        if fell {
            let text = format!("backend `{}` does not answer pings any more; its connection is opened anew", self.name);
            peer.fail_all(&Fault::new(FaultKind::BackendDied, text).with_str("backend", &self.name));
        }
    }

    /// Returns true unless pings have shown the backend to be unwell.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.lock().condition.is_well()
    }

    pub(crate) fn health(&self) -> Option<HealthStatus> {
        let state = self.lock();
        Some(HealthStatus { state: state.condition.health()?, failed: state.condition.pings_failed() })
    }
}
