//! Reload of a backend's configuration.
//!
//! Compatible changes are applied while it runs. A backend that was removed or replaced accepts no further call,
//! finishes those in flight, and is stopped.

use super::Backend;
use super::spec::{BackendSpec, StartPolicy};
use super::state::BackendState;
use super::subscriptions::Subscriptions;
use crate::peer::{Peer, QueuedCall};
use signalbox_engine::{Event, Fault, FaultKind};
use signalbox_wire::method;
use std::collections::HashSet;
use std::sync::{Arc, MutexGuard};

impl Backend {
    /// Changes the configuration of a running backend. Connections and calls in flight stay, and these calls keep their
    /// time limits. Era and strictness cannot be changed here. `tools` is true if the tool filter has changed.
    pub fn retune(self: &Arc<Self>, spec: BackendSpec, tools: bool) {
        let spec = Arc::new(spec);
        let before = self.spec.swap(Arc::clone(&spec)).lifetime;
        let rested =
            before.start == StartPolicy::FirstUse || before.idle_stop.is_some() && spec.lifetime.idle_stop.is_none();
        // Only a running process can list the tools that the new filter lets through.
        if tools || rested && spec.lifetime.start == StartPolicy::Eager {
            self.wake(&mut self.lock(), None);
        }
        let Some(gateway) = self.gateway().filter(|_| tools) else { return };
        let changed = gateway.catalog.keep_tools(self, |tool| (spec.allows)(tool));
        gateway.notify_lists_changed(changed, None);
        let peers = self.lock().connections.all();
        let mut again = HashSet::new();
        for peer in peers.iter().filter(|peer| peer.is_ready()) {
            if peer.view_key().is_some_and(|key| again.insert(key)) {
                self.lists_changed(peer, method::TOOLS_LIST_CHANGED);
            }
        }
        // The other views are read again by the next connection of their kind.
        self.lock().lists.keep_only(&again);
    }

    /// Starts a backend that is down without further delay.
    pub fn try_now(&self) {
        self.lock().condition.retry_now();
        self.changed.notify_one();
    }

    /// Stops accepting calls. Subscriptions and unsent calls move to the successor; without a successor the unsent
    /// calls fail.
    pub(crate) fn retire(self: &Arc<Self>, successor: Option<&Arc<Self>>) {
        let (waiting, unready) = {
            let mut state = self.lock();
            if state.retired.is_some() {
                return;
            }
            state.retired = Some(successor.cloned());
            match successor {
                // Both locks are held at once, so that no subscription is added here after the move. The successor is
                // younger, and no code locks a younger backend first.
                Some(successor) => successor.lock().subscriptions.take_over(&mut state.subscriptions),
                None => Subscriptions::default().take_over(&mut state.subscriptions),
            }
            let unready: Vec<Arc<Peer>> = state.connections.all().into_iter().filter(|peer| peer.is_unused()).collect();
            (std::mem::take(&mut state.waiting), unready)
        };
        self.changed.notify_one();
        for peer in unready {
            peer.close();
        }
        for one in waiting {
            self.dispatch_until(&one.session, one.exchange, one.call, one.deadline);
        }
        if let Some(successor) = successor {
            successor.reopen_all();
        }
    }

    /// Returns the backend that has replaced this one.
    pub(super) fn successor(&self) -> Option<Arc<Self>> {
        self.lock().retired.clone().flatten()
    }

    /// Returns the locked state, or the successor that has the state now.
    pub(super) fn lock_or_successor(&self) -> Result<MutexGuard<'_, BackendState>, Arc<Self>> {
        let state = self.lock();
        match state.retired.clone().flatten() {
            Some(successor) => Err(successor),
            None => Ok(state),
        }
    }

    /// Passes a call to the successor, or fails it without one.
    pub(super) fn hand_over(&self, successor: Option<Arc<Self>>, one: QueuedCall) {
        match successor {
            Some(successor) => successor.dispatch_until(&one.session, one.exchange, one.call, one.deadline),
            None => one.session.handle(Event::Failed { exchange: one.exchange, fault: self.removed() }),
        }
    }

    /// Returns the fault for calls to a removed backend.
    pub(super) fn removed(&self) -> Fault {
        let text = format!("backend `{}` was removed from the configuration", self.name);
        Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name)
    }

    /// Closes the connections without calls and tasks. Returns true if none is left.
    pub(crate) fn close_finished(&self) -> bool {
        let peers = self.lock().connections.all();
        let gateway = self.gateway();
        let works = |peer: &Peer| gateway.as_ref().is_some_and(|gateway| gateway.tasks.holds(peer.id));
        let mut left = false;
        for peer in peers {
            left |= works(&peer) || !peer.close_if_idle();
        }
        !left
    }

    /// Ends the remaining connections and their calls after the drain timeout.
    pub(crate) fn stop_retired(&self) {
        let why = match self.successor() {
            Some(_) => "a reload has replaced it, and the call was not done in time",
            None => "a reload has removed it from the configuration, and the call was not done in time",
        };
        let peers = {
            let mut state = self.lock();
            state.stopping = true;
            state.connections.all()
        };
        self.changed.notify_one();
        for peer in peers {
            peer.close_because(&Fault::new(FaultKind::Draining, why));
        }
        tracing::info!(backend = %self.name, "backend stopped, since the configuration has changed");
    }
}
