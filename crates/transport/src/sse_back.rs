//! The HTTP+SSE transport of 2024-11-05 toward a backend.
//!
//! A GET opens a stream of events on which everything the backend says arrives. Its first event names the address that
//! messages are posted to, which must be of the same origin. Toward the runtime this is a pipe: a question does not say
//! which call caused it, a cancellation is a notification, and the end of the stream is the end of the connection.

mod link;
mod stream;
#[cfg(test)]
mod tests;

use crate::backend_fault::SpecError;
use crate::http_back::backend::Backend;
use crate::http_back::{HttpConnector, HttpSpec};
use link::SseLink;
use signalbox_engine::{BackendUser, Fault};
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use std::fmt;
use std::sync::Arc;

/// How this transport is shown to people.
pub(crate) const KIND: &str = "sse";

/// Opens links to one HTTP+SSE backend.
pub struct SseConnector {
    backend: Arc<Backend>,
}

impl SseConnector {
    /// Checks what is configured. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address is not a usable one, or a header is not the configuration's to set.
    pub fn new(spec: HttpSpec) -> Result<Self, SpecError> {
        let backend = Arc::clone(HttpConnector::new(spec)?.backend());
        Ok(Self { backend })
    }
}

impl fmt::Debug for SseConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SseConnector").field("backend", &self.backend.name).finish_non_exhaustive()
    }
}

impl Connector for SseConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        Box::pin(open(Arc::clone(&self.backend), events))
    }

    fn carries_headers(&self) -> bool {
        false
    }

    fn is_process(&self) -> bool {
        false
    }

    fn signs_in(&self) -> bool {
        self.backend.credentials.is_some()
    }

    fn sign_in_end(&self, user: &BackendUser, agreed: bool) -> Option<BoxFuture<()>> {
        self.backend.credentials.as_ref()?.sign_in_end(user, agreed)
    }

    fn is_per_user(&self) -> bool {
        self.backend.credentials.as_ref().is_some_and(|credentials| credentials.is_per_user())
    }

    fn is_per_caller(&self) -> bool {
        self.backend.credentials.as_ref().is_some_and(|credentials| credentials.is_per_caller())
    }

    fn kind(&self) -> &'static str {
        KIND
    }
}

/// Opens the stream, waits until the backend has said where to post to, and goes on reading.
///
/// # Errors
/// `BackendDown` where the backend cannot be reached, any other kind where it does not speak HTTP+SSE here.
pub(crate) async fn open(backend: Arc<Backend>, events: Arc<dyn LinkEvents>) -> Result<Arc<dyn Link>, Fault> {
    let opened = stream::open(&backend, &*events).await?;
    Ok(Arc::new(SseLink::begin(backend, events, opened)))
}
