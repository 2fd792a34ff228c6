//! Backends whose process runs only while it is used. Before and after that the backend is asleep: its last known lists
//! are shown, it gets no requests, and the next use starts it.

use super::Backend;
use super::spec::StartPolicy;
use super::state::{BackendState, Home};
use crate::gateway::Gateway;
use crate::peer::Peer;
use signalbox_engine::chain::Ruling;
use signalbox_engine::fact::Decision;
use signalbox_engine::{BackendUser, Fact, SessionKey};
use std::sync::Arc;

impl Backend {
    /// Returns true while the process is stopped until it is needed.
    #[must_use]
    pub fn is_asleep(&self) -> bool {
        matches!(self.lock().home, Home::Asleep)
    }

    /// Returns true while the backend waits for a caller whose credential opens it.
    #[must_use]
    pub fn awaits_caller(&self) -> bool {
        matches!(self.lock().home, Home::AwaitsCaller)
    }

    /// Puts the backend to sleep if its process is to start at first use and its lists are known.
    pub(super) fn begin_asleep(&self) {
        let Some(gateway) = self.gateway() else { return };
        if self.is_per_user() {
            let mut state = self.lock();
            if !state.is_wanted() {
                state.home = Home::AwaitsCaller;
            }
            return;
        }
        if self.lifetime().start != StartPolicy::FirstUse || !gateway.catalog.has_lists(self) {
            return;
        }
        {
            let mut state = self.lock();
            if state.is_wanted() {
                return;
            }
            self.fall_asleep(&mut state);
        }
        // The known lists may have been read under another tool filter.
        let spec = Arc::clone(&self.spec());
        let changed = gateway.catalog.keep_tools(self, |tool| (spec.allows)(tool));
        gateway.notify_lists_changed(changed, None);
    }

    pub(super) fn fall_asleep(&self, state: &mut BackendState) {
        state.home = Home::Asleep;
        state.connections.drop_home();
    }

    /// Returns true if the process behind the home connection can be stopped without loss.
    pub(super) fn may_sleep(&self, state: &BackendState, gateway: &Gateway, home: &Peer) -> bool {
        matches!(state.home, Home::Up(_))
            && !state.is_ending()
            && state.waiting.is_empty()
            && !state.lists.is_busy(home.id)
            && gateway.catalog.has_lists(self)
    }

    /// Starts the process if the backend is asleep, or opens the home connection on behalf of this user if it waits for
    /// one.
    pub(super) fn wake(&self, state: &mut BackendState, whose: Option<&BackendUser>) {
        if state.is_ending() || self.lacks_token(whose) {
            return;
        }
        match (&state.home, whose) {
            (Home::Asleep, _) => {
                tracing::info!(backend = %self.name, "starting the process of the backend, which is needed now");
            }
            (Home::AwaitsCaller, Some(_)) => {}
            _ => return,
        }
        state.home_for = whose.filter(|_| self.is_per_user()).cloned();
        state.home = Home::Starting;
        self.changed.notify_one();
    }

    /// Returns true once the era of the backend is known.
    pub(crate) fn knows_era(&self) -> bool {
        self.lock().support.known()
    }

    /// Wakes the backend and waits until its era is known or the start has failed.
    pub(crate) async fn learn_era(&self, whose: &BackendUser) {
        self.wake(&mut self.lock(), Some(whose));
        let _ = tokio::time::timeout(self.spec().timeout, self.attempted()).await;
    }

    /// Waits until the current attempt to start has succeeded or failed.
    pub(super) async fn attempted(&self) {
        let Some(mut changes) = self.gateway().map(|gateway| gateway.catalog.follow()) else { return };
        while matches!(self.lock().home, Home::Starting | Home::Restarting) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Waits while the backend is asleep. Returns false if it is stopped meanwhile.
    pub(super) async fn wait_for_use(&self) -> bool {
        loop {
            {
                let state = self.lock();
                if state.is_ending() {
                    return false;
                }
                if !matches!(state.home, Home::Asleep | Home::AwaitsCaller) {
                    return true;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Logs and records that an unused connection is closed, and what is lost with its process.
    pub(super) fn report_closing(&self, gateway: &Gateway, peer: &Peer) {
        if !self.connector.is_process() {
            tracing::debug!(backend = %self.name, peer = %peer.id, "closing an unused connection");
            return;
        }
        let why = if peer.was_called() {
            "it is not used any more; whatever it kept in memory for its clients is lost, and the next use starts it anew"
        } else {
            "it was never used, so nothing is lost with it; the first use starts it again"
        };
        tracing::info!(backend = %self.name, peer = %peer.id, pid = peer.pid(), "a process is stopped: {why}");
        if gateway.message_facts() {
            let owner = peer.owner();
            let mut ruling = Ruling::of("stopped", format!("the process of backend `{}` is stopped: {why}", self.name));
            ruling.inputs.extend(peer.pid().map(|pid| ("process", pid.to_string())));
            let fact = Fact::Decision(Arc::new(Decision {
                at: crate::clock::now(),
                session: owner.map_or(SessionKey::GATEWAY, |owner| owner.key),
                caller: owner.map_or_else(|| gateway.caller.clone(), |owner| owner.caller.clone()),
                exchange: None,
                phase: "backend",
                rulings: vec![("idle", ruling.into())],
            }));
            match owner {
                Some(owner) => gateway.note(owner, [fact]),
                None => gateway.note_own(fact),
            }
        }
    }
}
