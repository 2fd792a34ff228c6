use super::post;
use super::stream::Opened;
use crate::http_back::backend::Backend;
use crate::http_back::in_flight::{self, InFlight, LinkShared, Ticket};
use http::Uri;
use signalbox_engine::Fault;
use signalbox_engine::back::ToBackend;
use signalbox_engine::lock::LockResultExt;
use signalbox_runtime::{Link, LinkEvents};
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
    in_flight: Mutex<InFlight>,
}

impl SseLink {
    /// Goes on reading a stream that was opened.
    pub(super) fn begin(backend: Arc<Backend>, events: Arc<dyn LinkEvents>, opened: Opened) -> Self {
        let post_to = opened.post_to.clone();
        let shared = Arc::new(Shared { backend, events, post_to, in_flight: Mutex::default() });
        let reader = tokio::spawn(opened.follow(Arc::clone(&shared))).abort_handle();
        Self { shared, reader, runtime: Handle::current() }
    }
}

impl Link for SseLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let mut in_flight = self.shared.lock();
        let running = in_flight.begin(&self.shared, &message)?;
        let ticket = running.ticket();
        let task = in_flight::spawn(&self.runtime, post::run(running, message));
        in_flight.register(&self.shared.backend, ticket, &task)
    }

    fn abort(&self, key: u64) {
        let request = self.shared.lock().remove(key);
        if let Some(task) = request {
            task.abort();
        }
    }

    fn close(&self) {
        self.reader.abort();
        let running = {
            let mut in_flight = self.shared.lock();
            in_flight.close();
            in_flight.take_all()
        };
        for task in running {
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
        self.lock().close();
        self.events.lost(why);
    }

    fn lock(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unpoisoned()
    }
}

impl LinkShared for Shared {
    const NOT_OPEN: &'static str = "has no open event stream";

    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn ended(&self, ticket: Ticket) {
        self.lock().end(ticket);
    }
}
