//! Keeps the home connection open: opens it, waits until it is lost, and opens it again after a backoff.

use super::Backend;
use super::state::Home;
use crate::clock;
use crate::peer::Peer;
use signalbox_engine::back::Wish;
use signalbox_engine::{Fault, FaultKind};
use std::sync::Arc;
use std::time::Duration;

/// The shortest wait before a new attempt.
pub const BACKOFF_MIN: Duration = Duration::from_secs(1);
/// The longest wait before a new attempt.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// A connection that lived this long resets the count of failures.
pub const HEALTHY: Duration = Duration::from_secs(60);

/// The wait after so many failures in a row.
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
                // A server that dies of the probe for the new era is greeted in the old one at once.
                if state.condition.take_greet_old() {
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
            // It was stopped because nobody used it, or its caller has no credential. The next use starts it.
            if peer.has_given_way() || self.awaits_caller() {
                continue;
            }
            if self.has_died_too_often(failures) {
                if !self.give_up_until_asked(failures).await {
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

    /// Waits before the next attempt. False if the backend is stopped meanwhile.
    async fn wait_before_restart(&self, wait: Duration) -> bool {
        self.lock().condition.restarted();
        tracing::info!(backend = %self.name, seconds = wait.as_secs(), "restarting the backend after a wait");
        // Only a stop or a reload ends the wait early, not a late notification about the connection that was lost.
        let stopped = async {
            while !self.lock().is_cut_short() {
                self.changed.notified().await;
            }
        };
        // A request for an attempt that came during the last attempt has been met.
        self.lock().condition.take_hurry();
        let _ = tokio::time::timeout(wait, stopped).await;
        let mut state = self.lock();
        // A backend that is down stays so for its callers until an attempt succeeds.
        if matches!(state.home, Home::Up(_)) {
            state.home = Home::Restarting;
        }
        !state.is_ending()
    }

    /// True if a child has died so often that restarting it makes no sense. A remote server may come back by itself, and
    /// trying costs little.
    fn has_died_too_often(&self, restarts: u32) -> bool {
        self.connector.is_process() && self.spec().failing.max_restarts.is_some_and(|most| restarts >= most)
    }

    /// Gives a child up until somebody asks for another attempt. False if the backend is stopped meanwhile.
    async fn give_up_until_asked(self: &Arc<Self>, restarts: u32) -> bool {
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
            state.condition.take_hurry();
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
                if state.condition.take_hurry() {
                    state.home = Home::Restarting;
                    return true;
                }
            }
            self.changed.notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no4_backoff_grows_from_one_second_to_sixty() {
        let waits: Vec<u64> = (0..8).map(|failures| backoff(failures).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
