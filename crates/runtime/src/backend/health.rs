//! Pings a backend from time to time on the gateway's own connection.
//!
//! Without calls nobody would notice that a child hangs or a server is gone. A backend that leaves several pings in a row
//! unanswered counts as unwell, and its connection is reopened.

use super::Backend;
use crate::clock;
use crate::peer::Peer;
use serde::Serialize;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Era, method};
use std::sync::Arc;
use std::time::Duration;

/// What pings have shown of a backend.
#[derive(Clone, Debug, Serialize)]
pub struct HealthStatus {
    /// `not pinged yet`, `well`, `in doubt` or `unwell`.
    pub state: &'static str,
    /// Pings that were not answered.
    pub failed: u64,
}

/// The outcome of a ping.
enum Pong {
    Answered,
    Failed,
    /// Says nothing about the backend.
    Unclear,
}

impl Backend {
    /// Waits until the home connection is lost, and pings it meanwhile.
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

    /// How long to wait before the next ping.
    fn ping_wait(&self) -> Duration {
        /// For a backend that is not pinged.
        const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
        self.lock().condition.ping_wait().unwrap_or(NEVER)
    }

    async fn check(&self, peer: &Arc<Peer>) {
        let (Some(rules), Some(profile)) = (self.spec().failing.ping, peer.profile().filter(|_| peer.is_ready()))
        else {
            return;
        };
        // The new era has no ping, but every server answers `server/discover`.
        let name = if profile.era() == Era::Modern { method::SERVER_DISCOVER } else { method::PING };
        let answer = tokio::time::timeout(rules.timeout, peer.ask(name, "", rules.timeout)).await;
        let pong = match answer {
            Ok(Ok(Ok(_))) => Pong::Answered,
            // The connection is gone, and the supervisor sees to that.
            _ if peer.is_lost() => Pong::Unclear,
            // It was not asked: the gateway had no connection left for that.
            Ok(Ok(Err(fault))) if fault.kind == FaultKind::Overloaded => Pong::Unclear,
            Ok(Ok(Err(fault))) if fault.kind != FaultKind::TimedOut => Pong::Failed,
            // A server that handles one request at a time answers when it is done with the current one.
            _ if !self.connector.carries_headers() && peer.has_calls() => Pong::Unclear,
            // Some servers of the old era do not know pings and do not even answer with an error.
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

    /// True unless pings have shown that it is unwell.
    #[must_use]
    pub fn is_well(&self) -> bool {
        self.lock().condition.is_well()
    }

    pub(crate) fn health(&self) -> Option<HealthStatus> {
        let state = self.lock();
        Some(HealthStatus { state: state.condition.health()?, failed: state.condition.pings_failed() })
    }
}
