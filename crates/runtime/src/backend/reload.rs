//! What a reload of the configuration does to a backend.
//!
//! A harmless change is made while it runs. A backend that was removed, or has a successor now, takes no further call,
//! finishes those in flight, and is stopped.

use super::Backend;
use super::spec::{BackendSpec, Start};
use super::state::BackendState;
use super::subscriptions::Subscriptions;
use crate::peer::{Peer, Queued};
use signalbox_engine::{Event, Fault, FaultKind};
use signalbox_wire::method;
use std::collections::HashSet;
use std::sync::{Arc, MutexGuard};

impl Backend {
    /// Goes on under other terms, with its connections and the calls in flight; these keep the time that they were given.
    /// Era and strictness stay as they are. `tools` says that other tools are let through.
    pub fn retune(self: &Arc<Self>, spec: BackendSpec, tools: bool) {
        let spec = Arc::new(spec);
        let before = self.spec.swap(Arc::clone(&spec)).lifetime;
        let rested = before.start == Start::FirstUse || before.idle_stop.is_some() && spec.lifetime.idle_stop.is_none();
        // Other tools can only be listed by a process that runs.
        if tools || rested && spec.lifetime.start == Start::Eager {
            self.wake(&mut self.lock());
        }
        let Some(gateway) = self.gateway().filter(|_| tools) else { return };
        let changed = gateway.catalog.keep_tools(self, |tool| (spec.allows)(tool));
        gateway.tell_lists_changed(changed, None);
        let peers = self.lock().connections.all();
        let mut again = HashSet::new();
        for peer in peers.iter().filter(|peer| peer.is_ready()) {
            if peer.view_key().is_some_and(|key| again.insert(key)) {
                self.lists_changed(peer, method::TOOLS_LIST_CHANGED);
            }
        }
        // What no connection can list now is listed by the next one of its kind.
        self.lock().lists.keep_only(&again);
    }

    /// Tries a backend that is down again at once, instead of at the end of its wait.
    pub fn try_now(&self) {
        self.lock().condition.hurry();
        self.changed.notify_one();
    }

    /// Takes no further call. What sessions follow here goes over to the successor, and so do the calls that were not sent yet;
    /// without a successor they are told that the backend is gone.
    pub(crate) fn retire(self: &Arc<Self>, successor: Option<&Arc<Self>>) {
        let (waiting, unready) = {
            let mut state = self.lock();
            if state.retired.is_some() {
                return;
            }
            state.retired = Some(successor.cloned());
            match successor {
                // Both locks at once, so that no wish is told to the one after it was taken over from it. The successor is
                // younger, and nobody locks a younger backend first.
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

    /// The one that has taken its place.
    pub(super) fn successor(&self) -> Option<Arc<Self>> {
        self.lock().retired.clone().flatten()
    }

    /// Its state; the successor instead, where whatever is to be noted belongs to that one.
    pub(super) fn lock_or_successor(&self) -> Result<MutexGuard<'_, BackendState>, Arc<Self>> {
        let state = self.lock();
        match state.retired.clone().flatten() {
            Some(successor) => Err(successor),
            None => Ok(state),
        }
    }

    /// Brings a call to the successor, or tells its caller that there is none.
    pub(super) fn hand_over(&self, successor: Option<Arc<Self>>, one: Queued) {
        match successor {
            Some(successor) => successor.dispatch_until(&one.session, one.exchange, one.call, one.deadline),
            None => one.session.handle(Event::Failed { exchange: one.exchange, fault: self.removed() }),
        }
    }

    /// Why a call to a backend that was removed fails.
    pub(super) fn removed(&self) -> Fault {
        let text = format!("backend `{}` was removed from the configuration", self.name);
        Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name)
    }

    /// Ends the connections that nothing is worked on any more. True where none is left.
    pub(crate) fn let_go(&self) -> bool {
        let peers = self.lock().connections.all();
        let gateway = self.gateway();
        let works = |peer: &Peer| gateway.as_ref().is_some_and(|gateway| gateway.tasks.holds(peer.id));
        let mut left = false;
        for peer in peers {
            left |= works(&peer) || !peer.close_if_idle();
        }
        !left
    }

    /// Ends what is left of it once its time is over.
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
        tracing::info!(backend = %self.name, "backend is stopped: the configuration has changed");
    }
}
