use super::post;
use super::stream::Opened;
use crate::http_back::backend::Backend;
use crate::http_back::gate::{self, Closed, Gate, Hold};
use crate::http_back::post::{MAX_RUNNING, spawn};
use http::Uri;
use signalbox_engine::back::ToBackend;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{Link, LinkEvents};
use signalbox_wire::method;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// An open connection. Dropping it closes it.
pub(super) struct SseLink {
    shared: Arc<Shared>,
    reader: AbortHandle,
    runtime: Handle,
}

/// What the link and its tasks share.
pub(super) struct Shared {
    pub backend: Arc<Backend>,
    pub events: Arc<dyn LinkEvents>,
    /// Where messages are posted to.
    pub post_to: Uri,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    serial: u64,
    /// The messages on their way, by serial: the key of a request, and its task.
    running: KeyMap<u64, (Option<u64>, AbortHandle)>,
    gate: Gate,
}

impl SseLink {
    /// Goes on reading a stream that was opened.
    pub(super) fn begin(backend: Arc<Backend>, events: Arc<dyn LinkEvents>, opened: Opened) -> Self {
        let post_to = opened.post_to.clone();
        let shared = Arc::new(Shared { backend, events, post_to, state: Mutex::default() });
        let reader = tokio::spawn(opened.follow(Arc::clone(&shared))).abort_handle();
        Self { shared, reader, runtime: Handle::current() }
    }
}

impl Link for SseLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let backend = &self.shared.backend;
        if state.closed {
            return Err(backend.fault(FaultKind::BackendDown, "has no open event stream"));
        }
        if state.running.len() >= MAX_RUNNING {
            let text = format!("already has {MAX_RUNNING} messages on their way");
            return Err(backend.fault(FaultKind::Overloaded, text));
        }
        let mut running = Running {
            shared: Arc::clone(&self.shared),
            serial: state.serial,
            behind: state.gate.closed(),
            holds: None,
            begun: false,
        };
        state.serial += 1;
        if message.key().is_none() && message.method() == method::INITIALIZED {
            running.holds = Some(state.gate.close());
        }
        let (key, serial) = (message.key(), running.serial);
        // The lock is held until the task is registered, so that the task cannot end before.
        let task = spawn(&self.runtime, post::run(running, message));
        if task.is_finished() {
            // A runtime that shuts down drops a task instead of taking it.
            return Err(backend.fault(FaultKind::BackendDown, "is not called any more: the gateway is shutting down"));
        }
        state.running.insert(serial, (key, task.abort_handle()));
        Ok(())
    }

    fn abort(&self, key: u64) {
        let found = {
            let state = self.shared.lock();
            state.running.values().find(|(found, _)| *found == Some(key)).map(|(_, task)| task.clone())
        };
        if let Some(task) = found {
            task.abort();
        }
    }

    fn close(&self) {
        self.reader.abort();
        let running = {
            let mut state = self.shared.lock();
            state.closed = true;
            std::mem::take(&mut state.running)
        };
        for (_, task) in running.into_values() {
            task.abort();
        }
    }
}

impl Drop for SseLink {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    /// The stream has ended, and nothing can be answered any more.
    pub(super) fn lost(&self, why: String) {
        self.lock().closed = true;
        self.events.lost(why);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

/// A message on its way. Dropping it takes the message off the link's books, however its task ends.
pub(super) struct Running {
    shared: Arc<Shared>,
    serial: u64,
    /// What has to be accepted before this message is sent.
    behind: Option<Closed>,
    /// Set if others have to wait for this message.
    holds: Option<Hold>,
    /// Set once the task runs. One that is dropped before, by a runtime that shuts down, may be so inside
    /// [`SseLink::send`], which holds the lock.
    begun: bool,
}

impl Running {
    /// The task runs.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn shared(&self) -> &Shared {
        &self.shared
    }

    pub(super) async fn wait_for_gate(&self) {
        gate::wait(self.behind.clone()).await;
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.begun {
            self.shared.lock().running.remove(&self.serial);
        }
    }
}
