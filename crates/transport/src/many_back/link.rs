//! A link to all addresses of an HTTP backend.

use super::relay::Relay;
use super::targets::{AddressUse, Targets, chance, outcome};
use crate::http_back::headers;
use signalbox_engine::back::ToBackend;
use signalbox_engine::breaker::CallResult;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Fault, FaultKind, pacing};
use signalbox_runtime::{Link, LinkEvents};
use signalbox_wire::method;
use std::sync::{Arc, Mutex, MutexGuard};

/// A link to all addresses. Dropping it closes it.
pub(super) struct ManyLink {
    shared: Arc<ManyLinkState>,
}

/// State shared by the link and the events of its addresses.
pub(super) struct ManyLinkState {
    targets: Arc<Targets>,
    pub events: Arc<dyn LinkEvents>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// One link per address, in their order; empty once this link is closed.
    links: Vec<Arc<dyn Link>>,
    /// Index of the address of the legacy session.
    home: Option<usize>,
    pending: KeyMap<u64, AddressedRequest>,
}

/// A request that waits for its answer or for a retry.
struct AddressedRequest {
    message: ToBackend,
    /// `None` while it waits for a retry.
    chosen: Option<AddressUse>,
    tried: Vec<usize>,
    /// Number of times all addresses were tried.
    rounds: u32,
}

impl ManyLink {
    /// Opens a link to each address. Sends nothing yet.
    pub(super) async fn open(targets: Arc<Targets>, events: Arc<dyn LinkEvents>) -> Result<Self, Fault> {
        let shared = Arc::new(ManyLinkState { targets: Arc::clone(&targets), events, state: Mutex::default() });
        let mut links = Vec::with_capacity(targets.all.len());
        for (at, target) in targets.all.iter().enumerate() {
            links.push(target.connector.open(Arc::new(Relay::new(&shared, at))).await?);
        }
        shared.lock().links = links;
        Ok(Self { shared })
    }

    fn at_home(&self) -> Option<Arc<dyn Link>> {
        let state = self.shared.lock();
        state.home.and_then(|at| state.links.get(at).cloned())
    }
}

impl Link for ManyLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let Some(key) = message.key() else { return self.shared.send_note(message) };
        let pending = AddressedRequest { message, chosen: None, tried: Vec::new(), rounds: 0 };
        self.shared.send(key, pending)
    }

    fn abort(&self, key: u64) {
        let (pending, link) = {
            let mut state = self.shared.lock();
            let Some(pending) = state.pending.remove(&key) else { return };
            let link = pending.chosen.and_then(|chosen| state.links.get(chosen.at).cloned());
            (pending, link)
        };
        if let Some(chosen) = pending.chosen {
            self.shared.targets.end(chosen, CallResult::Unknown);
        }
        if let Some(link) = link {
            link.abort(key);
        }
    }

    fn open_general(&self) {
        if let Some(link) = self.at_home() {
            link.open_general();
        }
    }

    fn forget_session(&self) {
        let link = self.at_home();
        self.shared.lock().home = None;
        if let Some(link) = link {
            link.forget_session();
        }
    }

    fn close(&self) {
        let state = {
            let mut state = self.shared.lock();
            std::mem::take(&mut *state)
        };
        for chosen in state.pending.into_values().filter_map(|pending| pending.chosen) {
            self.shared.targets.end(chosen, CallResult::Unknown);
        }
        for link in state.links {
            link.close();
        }
    }
}

impl Drop for ManyLink {
    fn drop(&mut self) {
        self.close();
    }
}

impl ManyLinkState {
    /// Sends a message that gets no answer to the address of its session, or to any address.
    fn send_note(&self, message: ToBackend) -> Result<(), Fault> {
        let link = {
            let state = self.lock();
            if state.links.is_empty() {
                return Err(self.closed());
            }
            let at = match (headers::is_modern(&message), state.home) {
                (false, Some(home)) => Some(home),
                _ => self.targets.choose(&[]).map(|chosen| {
                    self.targets.end(chosen, CallResult::Unknown);
                    chosen.at
                }),
            };
            at.and_then(|at| state.links.get(at).cloned())
        };
        link.ok_or_else(|| self.closed())?.send(message)
    }

    /// Sends a request to an address where it was not tried yet.
    fn send(&self, key: u64, mut pending: AddressedRequest) -> Result<(), Fault> {
        let (link, chosen, message) = {
            let mut state = self.lock();
            if state.links.is_empty() {
                return Err(self.closed());
            }
            let home = if self.is_free(&pending.message) { None } else { state.home };
            let chosen = match home {
                Some(home) => self.targets.begin(home),
                None => self.targets.choose(&pending.tried),
            };
            let link = chosen.and_then(|chosen| state.links.get(chosen.at).cloned());
            let (Some(chosen), Some(link)) = (chosen, link) else { return Err(self.closed()) };
            if !headers::is_modern(&pending.message) {
                state.home = Some(chosen.at);
            }
            pending.chosen = Some(chosen);
            pending.tried.push(chosen.at);
            let message = pending.message.clone();
            // Insert before sending, since the answer may arrive first.
            state.pending.insert(key, pending);
            (link, chosen, message)
        };
        link.send(message).inspect_err(|_| {
            self.lock().pending.remove(&key);
            self.targets.end(chosen, CallResult::Unknown);
        })
    }

    /// Returns `true` if the message belongs to no session.
    fn is_free(&self, message: &ToBackend) -> bool {
        headers::is_modern(message) || message.method() == method::INITIALIZE
    }

    /// Removes a request that was answered or will not be.
    pub(super) fn finish_request(&self, key: u64, outcome: CallResult) {
        let pending = self.lock().pending.remove(&key);
        if let Some(chosen) = pending.and_then(|pending| pending.chosen) {
            self.targets.end(chosen, outcome);
        }
    }

    /// Handles a failed request. If it was certainly not processed, it is sent to another address. A legacy session is
    /// opened again at another address.
    pub(super) fn failed(self: &Arc<Self>, key: u64, fault: Fault) {
        let Some(pending) = self.lock().pending.remove(&key) else { return self.events.failed(key, fault) };
        if let Some(chosen) = pending.chosen {
            self.targets.end(chosen, outcome(fault.kind));
        }
        if fault.kind != FaultKind::BackendDown || !self.events.is_wanted(key) {
            return self.events.failed(key, fault);
        }
        if self.is_free(&pending.message) {
            return self.retry(key, pending, fault);
        }
        let elsewhere = pending.chosen.is_some_and(|chosen| self.targets.has_other(chosen.at));
        if elsewhere {
            self.targets.count_retry();
            self.events.expired(pending.message);
        } else {
            self.events.failed(key, fault);
        }
    }

    /// Tries the next address at once; once all were tried, retries all of them after a delay.
    fn retry(self: &Arc<Self>, key: u64, mut pending: AddressedRequest, fault: Fault) {
        if pending.tried.len() < self.targets.all.len() {
            self.targets.count_retry();
            if let Err(fault) = self.send(key, pending) {
                self.events.failed(key, fault);
            }
            return;
        }
        if pending.rounds >= self.targets.spec.retries {
            return self.events.failed(key, fault);
        }
        let wait = pacing::retry_delay(pending.rounds, chance());
        pending.rounds += 1;
        pending.tried.clear();
        pending.chosen = None;
        self.lock().pending.insert(key, pending);
        let shared = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            let Some(shared) = shared.upgrade() else { return };
            // A request that was aborted meanwhile has been removed.
            let Some(pending) = shared.lock().pending.remove(&key) else { return };
            if !shared.events.is_wanted(key) {
                return;
            }
            shared.targets.count_retry();
            if let Err(fault) = shared.send(key, pending) {
                shared.events.failed(key, fault);
            }
        });
    }

    fn closed(&self) -> Fault {
        self.targets.fault(FaultKind::BackendDown, "has no open link")
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}
