//! Supervisor: opens the home connection, waits until it is lost, and reopens it after a backoff.

use super::Backend;
use super::state::Home;
use crate::clock;
use crate::peer::Peer;
use signalbox_engine::back::Wish;
use signalbox_engine::{Fault, FaultKind};
use std::sync::Arc;
use std::time::Duration;

/// Minimum delay before a new attempt.
pub const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// Maximum delay before a new attempt.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// Lifetime of a connection that resets the count of failures.
pub const HEALTHY: Duration = Duration::from_secs(60);

/// Returns the delay after `failures` consecutive failures.
#[must_use]
pub fn backoff(failures: u32) -> Duration {
    BACKOFF_MIN.saturating_mul(1 << failures.min(6)).min(BACKOFF_MAX)
}

impl Backend {
    /// Runs until the backend is stopped.
    pub(crate) async fn supervise(self: Arc<Self>) {
        let mut failures = 0;
        let mut wish = self.spec().wish;
        self.begin_asleep();
        loop {
            if !self.wait_for_use().await {
                return;
            }
            let peer = {
                let mut state = self.lock();
                if state.is_ending() {
                    return;
                }
                let Some(gateway) = self.gateway() else { return };
                let user = state.home_for.clone().unwrap_or_else(|| gateway.principal.clone().into());
                let peer = Peer::home(&self, user, wish, self.offer());
                state.connections.insert(Arc::clone(&peer));
                peer
            };
            let opened = clock::now();
            tokio::spawn(Arc::clone(&peer).open());
            self.ping_until_lost(&peer).await;
            {
                let mut state = self.lock();
                if state.is_ending() {
                    return;
                }
                // A server that dies of the modern probe is opened with `initialize` at once.
                if state.condition.take_skip_probe() {
                    wish = Wish::Legacy;
                    continue;
                }
            }
            if peer.profile().is_none() {
                wish = self.spec().wish;
            }
            if peer.profile().is_some() && clock::now().saturating_duration_since(opened) >= HEALTHY {
                failures = 0;
            }
            // It was closed because it was unused, or its caller has no credential. The next use starts it.
            if peer.has_given_way() || self.awaits_caller() {
                continue;
            }
            if self.has_died_too_often(failures) {
                if !self.give_up_until_requested(failures).await {
                    return;
                }
                failures = 0;
                self.lock().condition.restarted();
                continue;
            }
            let wait = backoff(failures);
            failures += 1;
            if !self.wait_before_restart(wait).await {
                return;
            }
        }
    }

    /// Waits before the next attempt. Returns false if the backend is stopped meanwhile.
    async fn wait_before_restart(&self, wait: Duration) -> bool {
        self.lock().condition.restarted();
        tracing::info!(backend = %self.name, seconds = wait.as_secs(), "restarting the backend after a wait");
        // Only a stop or a reload ends the wait early, not a late notification about the lost connection.
        let stopped = async {
            while !self.lock().is_cut_short() {
                self.changed.notified().await;
            }
        };
        // A request that arrived during the last attempt has been fulfilled by it.
        self.lock().condition.take_retry_now();
        let _ = tokio::time::timeout(wait, stopped).await;
        let mut state = self.lock();
        // A backend that is down stays so for its callers until an attempt succeeds.
        if matches!(state.home, Home::Up(_)) {
            state.home = Home::Restarting;
        }
        !state.is_ending()
    }

    /// Returns true if a child has died too often to restart it. A remote server may come back by itself, and trying
    /// costs little.
    fn has_died_too_often(&self, restarts: u32) -> bool {
        self.connector.is_process() && self.spec().failing.max_restarts.is_some_and(|most| restarts >= most)
    }

    /// Gives a child up until another attempt is requested. Returns false if the backend is stopped meanwhile.
    async fn give_up_until_requested(self: &Arc<Self>, restarts: u32) -> bool {
        let waiting = {
            let mut state = self.lock();
            let why = state.condition.last_error().unwrap_or_default().to_owned();
            let text = match self.spec().failing.max_restarts {
                Some(0) => format!("it has ended ({why}) and is not started again (`restart = false`) until a reload"),
                _ => format!(
                    "it was started again {restarts} times and never lived for {} s ({why}); correct what is wrong \
                     and reload the configuration",
                    HEALTHY.as_secs()
                ),
            };
            tracing::error!(backend = %self.name, "the backend has failed: {text}");
            state.condition.set_error(text.clone());
            state.home = Home::Failed(Fault::new(FaultKind::BackendDown, text));
            state.condition.take_retry_now();
            std::mem::take(&mut state.waiting)
        };
        self.set_listed(false);
        for one in waiting {
            let fault = self.down(&self.lock());
            if let Some(fault) = fault {
                self.refuse(&one.session, one.exchange, fault);
            }
        }
        loop {
            {
                let mut state = self.lock();
                if state.is_ending() {
                    return false;
                }
                if state.condition.take_retry_now() {
                    state.home = Home::Restarting;
                    return true;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Logs the end of the home connection.
    pub(super) fn log_loss(&self, fault: &Fault, was_up: bool, stopping: bool) {
        let backend = &self.name;
        match (was_up, fault.kind) {
            _ if stopping => tracing::debug!(%backend, "backend stopped"),
            (true, _) => tracing::warn!(%backend, why = %fault, "lost the connection to the backend"),
            // The link is for the reader of the log, which redacts links elsewhere.
            (false, FaultKind::SignInNeeded) => {
                tracing::warn!(target: "signalbox::sign_in", %backend, why = %fault, "cannot open a connection to the backend");
            }
            (false, _) => tracing::warn!(%backend, why = %fault, "cannot open a connection to the backend"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves NO-4.
    #[test]
    fn backoff_grows_from_one_second_to_sixty() {
        let waits: Vec<u64> = (0..8).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
