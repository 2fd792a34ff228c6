//! A session with an HTTP backend, or a series of stateless requests to one.

use super::backend::Backend;
use super::gate::{self, Closed, Gate, Hold};
use super::{general, headers, post};
use crate::http1::Head;
use http::header::HeaderValue;
use signalbox_engine::back::ToBackend;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{Link, LinkEvents};
use signalbox_wire::{Revision, method};
use std::collections::hash_map::Entry;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};

/// Longest session id that is kept, in bytes.
const MAX_SESSION_ID: usize = 4096;
/// How long the end of a session may take to be told.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// A link to an HTTP backend. Dropping it closes it.
pub struct HttpLink {
    shared: Arc<Shared>,
    runtime: Handle,
}

/// What the link and its tasks share.
pub(super) struct Shared {
    pub backend: Arc<Backend>,
    pub events: Arc<dyn LinkEvents>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    closed: bool,
    session: Option<HeaderValue>,
    /// The revision of the last message of the old era, for requests that carry none.
    revision: Option<Revision>,
    /// Tells tasks of one key apart: a message may be sent again before the task of its first try has ended.
    serial: u64,
    requests: KeyMap<u64, (u64, AbortHandle)>,
    notes: KeyMap<u64, AbortHandle>,
    gate: Gate,
    general: Option<AbortHandle>,
}

impl HttpLink {
    pub(super) fn new(backend: Arc<Backend>, events: Arc<dyn LinkEvents>, runtime: Handle) -> Self {
        let state = Mutex::default();
        Self { shared: Arc::new(Shared { backend, events, state }), runtime }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        post::spawn(&self.runtime, task)
    }
}

impl Link for HttpLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let mut guard = self.shared.lock();
        let state = &mut *guard;
        let backend = &self.shared.backend;
        if state.closed {
            return Err(backend.fault(FaultKind::BackendDown, "has no open link"));
        }
        if state.requests.len() + state.notes.len() >= post::MAX_RUNNING {
            let text = format!("already has {} messages on their way", post::MAX_RUNNING);
            return Err(backend.fault(FaultKind::Overloaded, text));
        }
        let session = state.session_for(&message);
        let mut running = Running {
            shared: Arc::clone(&self.shared),
            key: message.key(),
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
        // Boxed, since tokio would move the whole of it into its task and out again, piece by piece.
        let task = self.spawn(Box::pin(post::run(running, message, session)));
        if task.is_finished() {
            // A runtime that shuts down drops a task instead of taking it.
            return Err(backend.fault(FaultKind::BackendDown, "is not called any more: the gateway is shutting down"));
        }
        match key {
            Some(key) => drop(state.requests.insert(key, (serial, task.abort_handle()))),
            None => drop(state.notes.insert(serial, task.abort_handle())),
        }
        Ok(())
    }

    fn abort(&self, key: u64) {
        let request = self.shared.lock().requests.remove(&key);
        if let Some((_, task)) = request {
            task.abort();
        }
    }

    fn open_general(&self) {
        let mut state = self.shared.lock();
        if state.closed || state.general.is_some() {
            return;
        }
        let closed = state.gate.closed();
        let (session, revision) = (state.session.clone(), state.revision);
        let shared = Arc::clone(&self.shared);
        let holds = state.gate.close();
        let task = self.spawn(async move {
            gate::wait(closed).await;
            general::run(shared, session, revision, holds).await;
        });
        state.general = Some(task.abort_handle());
    }

    fn forget_session(&self) {
        let general = {
            let mut state = self.shared.lock();
            state.session = None;
            state.general.take()
        };
        if let Some(task) = general {
            task.abort();
        }
    }

    fn close(&self) {
        let (state, revision) = {
            let mut state = self.shared.lock();
            let revision = state.revision;
            (std::mem::replace(&mut *state, State { closed: true, ..State::default() }), revision)
        };
        let requests = state.requests.into_values().map(|(_, task)| task);
        for task in requests.chain(state.notes.into_values()).chain(state.general) {
            task.abort();
        }
        if let Some(session) = state.session {
            let backend = Arc::clone(&self.shared.backend);
            self.spawn(end_session(backend, session, revision));
        }
    }
}

impl Drop for HttpLink {
    fn drop(&mut self) {
        self.close();
    }
}

impl fmt::Debug for HttpLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpLink").field("backend", &self.shared.backend.name).finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

impl State {
    /// The session the message belongs to. Neither the new era nor the message that opens a session has one.
    fn session_for(&mut self, message: &ToBackend) -> Option<HeaderValue> {
        if headers::is_modern(message) || message.method() == method::INITIALIZE {
            return None;
        }
        self.revision = message.revision().or(self.revision);
        self.session.clone()
    }
}

/// Tells the backend that the session is over. Whether it listens does not matter.
async fn end_session(backend: Arc<Backend>, session: HeaderValue, revision: Option<Revision>) {
    let request = headers::delete(&backend, &session, revision);
    let telling = async {
        match backend.exchange(backend.pool.take(), request).await {
            Ok((conn, _)) => backend.finish(conn).await,
            Err(fault) => tracing::debug!(%fault, "the backend was not told that the session is over"),
        }
    };
    if tokio::time::timeout(DELETE_TIMEOUT, telling).await.is_err() {
        tracing::debug!(backend = %backend.name, "the backend did not accept the end of the session in time");
    }
}

/// A message on its way. Dropping it takes the message off the link's books, however its task ends.
pub(super) struct Running {
    shared: Arc<Shared>,
    key: Option<u64>,
    serial: u64,
    /// What has to be accepted before this message is sent.
    behind: Option<Closed>,
    /// Set if others have to wait for this message.
    holds: Option<Hold>,
    /// Set once the task runs. One that is dropped before, by a runtime that shuts down, may be so inside
    /// [`HttpLink::send`], which holds the lock.
    begun: bool,
}

impl Running {
    /// The task runs.
    pub(super) fn begin(&mut self) {
        self.begun = true;
    }

    pub(super) fn backend(&self) -> &Backend {
        &self.shared.backend
    }

    pub(super) fn events(&self) -> &dyn LinkEvents {
        &*self.shared.events
    }

    pub(super) async fn wait_for_gate(&self) {
        if self.behind.is_some() {
            gate::wait(self.behind.clone()).await;
        }
    }

    pub(super) fn session(&self) -> Option<HeaderValue> {
        self.shared.lock().session.clone()
    }

    /// Keeps the session id that came with the answer to `initialize`.
    pub(super) fn begin_session(&self, head: &Head) {
        let Some(mut id) = head.get(&headers::SESSION_ID) else { return };
        if id.len() > MAX_SESSION_ID {
            let backend = &self.shared.backend.name;
            tracing::warn!(%backend, "a session id of {} bytes was ignored", id.len());
            return;
        }
        id.set_sensitive(true);
        let mut state = self.shared.lock();
        if !state.closed {
            state.session = Some(id);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !self.begun {
            return;
        }
        let mut state = self.shared.lock();
        match self.key {
            Some(key) => {
                if let Entry::Occupied(found) = state.requests.entry(key)
                    && found.get().0 == self.serial
                {
                    found.remove();
                }
            }
            None => drop(state.notes.remove(&self.serial)),
        }
    }
}
