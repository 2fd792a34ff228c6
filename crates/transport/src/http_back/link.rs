//! A session with an HTTP backend, or a series of stateless requests to one.

use super::backend::Backend;
use super::in_flight::{self, InFlight, LinkState, MessageSlot};
use super::{general, headers, post};
use crate::http1::Head;
use http::header::HeaderValue;
use signalbox_engine::Fault;
use signalbox_engine::back::ToBackend;
use signalbox_engine::lock::LockResultExt;
use signalbox_runtime::{Link, LinkEvents};
use signalbox_wire::{Revision, method};
use std::fmt;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::task::{AbortHandle, JoinHandle};

/// Maximum length of a session id, in bytes.
const MAX_SESSION_ID: usize = 4096;
/// Maximum time for the DELETE of a session.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// A link to an HTTP backend. Dropping it closes it.
pub struct HttpLink {
    shared: Arc<HttpLinkState>,
    runtime: Handle,
}

/// State shared by the link and its tasks.
pub(super) struct HttpLinkState {
    pub backend: Arc<Backend>,
    pub events: Arc<dyn LinkEvents>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    in_flight: InFlight,
    session: Option<HeaderValue>,
    /// Revision of the last legacy message, for requests that carry none.
    revision: Option<Revision>,
    general: Option<AbortHandle>,
}

impl HttpLink {
    pub(super) fn new(backend: Arc<Backend>, events: Arc<dyn LinkEvents>, runtime: Handle) -> Self {
        let state = Mutex::default();
        Self { shared: Arc::new(HttpLinkState { backend, events, state }), runtime }
    }

    fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
        in_flight::spawn(&self.runtime, task)
    }
}

impl Link for HttpLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let mut state = self.shared.lock();
        let running = state.in_flight.begin(&self.shared, &message)?;
        let (slot, session) = (running.slot(), state.session_for(&message));
        // Boxed: tokio would otherwise move the large future into its task and out again.
        let task = self.spawn(Box::pin(post::run(running, message, session)));
        state.in_flight.register(&self.shared.backend, slot, &task)
    }

    fn abort(&self, key: u64) {
        let request = self.shared.lock().in_flight.remove(key);
        if let Some(task) = request {
            task.abort();
        }
    }

    fn open_general(&self) {
        let mut state = self.shared.lock();
        if state.in_flight.is_closed() || state.general.is_some() {
            return;
        }
        let closed = state.in_flight.gate.closed();
        let (session, revision) = (state.session.clone(), state.revision);
        let shared = Arc::clone(&self.shared);
        let holds = state.in_flight.gate.close();
        let task = self.spawn(async move {
            if let Some(closed) = closed {
                in_flight::wait(closed).await;
            }
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
        let mut state = {
            let mut state = self.shared.lock();
            let before = std::mem::take(&mut *state);
            state.in_flight.close();
            before
        };
        for task in state.in_flight.take_all().chain(state.general) {
            task.abort();
        }
        if let Some(session) = state.session {
            self.shared.backend.ending.fetch_add(1, Ordering::Relaxed);
            self.spawn(end_session(Arc::clone(&self.shared), session, state.revision));
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

impl HttpLinkState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unpoisoned()
    }
}

impl LinkState for HttpLinkState {
    const NOT_OPEN: &'static str = "has no open link";

    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn remove_message(&self, slot: MessageSlot) {
        self.lock().in_flight.end(slot);
    }
}

impl State {
    /// Returns the session that a message belongs to. Modern messages have none, and neither has the one that opens a
    /// session.
    fn session_for(&mut self, message: &ToBackend) -> Option<HeaderValue> {
        if headers::is_modern(message) || message.method() == method::INITIALIZE {
            return None;
        }
        self.revision = message.revision().or(self.revision);
        self.session.clone()
    }
}

/// Tells the backend that the session is over. A failure is only logged.
async fn end_session(shared: Arc<HttpLinkState>, session: HeaderValue, revision: Option<Revision>) {
    let backend = &shared.backend;
    let deleting = async {
        let credential = backend.credential(&*shared.events, None).await.unwrap_or_default();
        let request = headers::delete(backend, &session, credential.as_ref(), revision);
        match backend.exchange(&*shared.events, backend.pool.take(), request).await {
            Ok((conn, _)) => backend.finish(conn).await,
            Err(fault) => tracing::debug!(%fault, "the backend was not told that the session is over"),
        }
    };
    if tokio::time::timeout(DELETE_TIMEOUT, deleting).await.is_err() {
        tracing::debug!(backend = %backend.name, "the backend did not accept the end of the session in time");
    }
    backend.ending.fetch_sub(1, Ordering::Relaxed);
}

/// A message of this link in flight.
pub(super) type Running = in_flight::Running<HttpLinkState>;

impl Running {
    pub(super) fn backend(&self) -> &Backend {
        &self.shared.backend
    }

    pub(super) fn events(&self) -> &dyn LinkEvents {
        &*self.shared.events
    }

    pub(super) fn session(&self) -> Option<HeaderValue> {
        self.shared.lock().session.clone()
    }

    /// Stores the session id that came with the answer to `initialize`.
    pub(super) fn begin_session(&self, head: &Head) {
        let Some(mut id) = head.get(&headers::SESSION_ID) else { return };
        if id.len() > MAX_SESSION_ID {
            let backend = &self.shared.backend.name;
            tracing::warn!(%backend, "a session id of {} bytes was ignored", id.len());
            return;
        }
        id.set_sensitive(true);
        let mut state = self.shared.lock();
        if !state.in_flight.is_closed() {
            state.session = Some(id);
        }
    }
}
