//! Keeps the home connection alive: opens it, waits until it is lost, and opens it again after a while.

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
/// The longest.
pub const BACKOFF_MAX: Duration = Duration::from_secs(60);
/// A connection that lived this long starts counting anew.
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
                let Some(principal) = self.gateway().map(|gateway| gateway.principal.clone()) else { return };
                let peer = Peer::home(&self, principal, wish, self.offer());
                state.connections.insert(Arc::clone(&peer));
                peer
            };
            let opened = clock::now();
            tokio::spawn(Arc::clone(&peer).open());
            self.watch_over(&peer).await;
            {
                let mut state = self.lock();
                if state.is_ending() {
                    return;
                }
                // A server that dies of the question which era it speaks gets the old greeting at once.
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
            // It was stopped for want of use, and is started again by the next one.
            if peer.has_given_way() {
                continue;
            }
            if self.is_hopeless(failures) {
                if !self.rest(failures).await {
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

    /// Waits before the next attempt. False where the backend is ended instead.
    async fn wait_before_restart(&self, wait: Duration) -> bool {
        self.lock().condition.restarted();
        tracing::info!(backend = %self.name, seconds = wait.as_secs(), "backend is started again after a wait");
        // Only the end and a reload cut the wait short: a late word of the connection that was lost does not.
        let stopped = async {
            while !self.lock().is_cut_short() {
                self.changed.notified().await;
            }
        };
        // What was asked for while it was up, or was being tried, is done.
        self.lock().condition.take_hurry();
        let _ = tokio::time::timeout(wait, stopped).await;
        let mut state = self.lock();
        // A backend that has failed stays down for its callers until it is really back.
        if matches!(state.home, Home::Up(_)) {
            state.home = Home::Restarting;
        }
        !state.is_ending()
    }

    /// True where a child has died so often that starting it once more makes no sense. A remote server may come back by
    /// itself, and asking for it costs little.
    fn is_hopeless(&self, restarts: u32) -> bool {
        self.connector.is_process() && self.spec().failing.max_restarts.is_some_and(|most| restarts >= most)
    }

    /// Leaves a child alone until it is told to try again. False where the backend is stopped instead.
    async fn rest(self: &Arc<Self>, restarts: u32) -> bool {
        let waiting = {
            let mut state = self.lock();
            let why = state.condition.last_error().unwrap_or_default().to_owned();
            let text = format!(
                "it was started again {restarts} times and never lived for {} s ({why}); correct what is wrong and \
                 reload the configuration",
                HEALTHY.as_secs()
            );
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
