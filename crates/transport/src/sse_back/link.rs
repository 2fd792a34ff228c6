use super::stream::{OpenedStream, refusal};
use crate::http_back::backend::Backend;
use crate::http_back::headers;
use crate::http_back::in_flight::{self, InFlight, LinkState, MessageSlot, Running};
use crate::http_back::post::{in_time, log_undelivered, refusal_kind};
use crate::http1::HttpRequest;
use http::{Method, Uri, header};
use signalbox_engine::Fault;
use signalbox_engine::back::ToBackend;
use signalbox_engine::lock::LockResultExt;
use signalbox_runtime::backend_credentials::MAX_CREDENTIAL_TRIES;
use signalbox_runtime::{AuthHeader, Link, LinkEvents};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

/// An open connection. Dropping it closes it.
pub(super) struct SseLink {
    shared: Arc<SseLinkState>,
    reader: AbortHandle,
    runtime: Handle,
}

/// State shared by the link and its tasks.
pub(super) struct SseLinkState {
    pub backend: Arc<Backend>,
    pub events: Arc<dyn LinkEvents>,
    /// Address to which messages are posted.
    pub post_to: Uri,
    in_flight: Mutex<InFlight>,
}

impl SseLink {
    /// Continues to read an open stream.
    pub(super) fn begin(backend: Arc<Backend>, events: Arc<dyn LinkEvents>, opened: OpenedStream) -> Self {
        let post_to = opened.post_to.clone();
        let shared = Arc::new(SseLinkState { backend, events, post_to, in_flight: Mutex::default() });
        let reader = tokio::spawn(opened.follow(Arc::clone(&shared))).abort_handle();
        Self { shared, reader, runtime: Handle::current() }
    }
}

impl Link for SseLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        let mut in_flight = self.shared.lock();
        let running = in_flight.begin(&self.shared, &message)?;
        let slot = running.slot();
        let task = in_flight::spawn(&self.runtime, run(running, message));
        in_flight.register(&self.shared.backend, slot, &task)
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

impl SseLinkState {
    /// Closes the link after its stream has ended, since no request can be answered any more.
    pub(super) fn lost(&self, why: String) {
        self.lock().close();
        self.events.lost(why);
    }

    fn lock(&self) -> MutexGuard<'_, InFlight> {
        self.in_flight.lock().unpoisoned()
    }
}

impl LinkState for SseLinkState {
    const NOT_OPEN: &'static str = "has no open event stream";

    fn backend(&self) -> &Backend {
        &self.backend
    }

    fn remove_message(&self, slot: MessageSlot) {
        self.lock().end(slot);
    }
}

/// Sends a message. A refused request fails; a refused notification is only logged.
pub(super) async fn run(mut running: Running<SseLinkState>, message: ToBackend) {
    running.begin().await;
    let shared = &*running.shared;
    let posting = post(shared, &message);
    let Some(key) = message.key() else {
        if let Err(fault) = in_time(&shared.backend, posting).await {
            log_undelivered(&fault);
        }
        return;
    };
    if let Err(fault) = posting.await {
        shared.events.failed(key, fault);
    }
}

async fn post(shared: &SseLinkState, message: &ToBackend) -> Result<(), Fault> {
    let (backend, events) = (&*shared.backend, &*shared.events);
    let mut credential = backend.credential(events, message.key()).await?;
    let mut tries = 1;
    let (conn, head) = loop {
        let request = request(backend, credential.as_ref(), &shared.post_to, message);
        let (conn, head) = backend.exchange(events, backend.pool.take(), request).await?;
        match backend.renew_credential(events, message.key(), &head, credential.as_ref()).await? {
            Some(other) if tries < MAX_CREDENTIAL_TRIES => {
                backend.finish(conn).await;
                (credential, tries) = (Some(other), tries + 1);
            }
            _ => break (conn, head),
        }
    };
    if head.status.is_success() {
        backend.finish(conn).await;
        return Ok(());
    }
    let kind = refusal_kind(head.status.as_u16());
    let hidden = [None, credential.as_ref().map(|credential| &credential.value)];
    Err(Fault { kind, ..refusal(backend, conn, &head, "a message", hidden).await })
}

fn request(backend: &Backend, credential: Option<&AuthHeader>, to: &Uri, message: &ToBackend) -> HttpRequest {
    let mut draft = headers::bare(backend, credential, &Method::POST, to);
    draft.add(&header::CONTENT_TYPE, &headers::JSON);
    headers::add_session(&mut draft, None, message.revision());
    draft.with_body(message.bytes().clone())
}
