//! The HTTP+SSE transport of 2024-11-05 to a backend.
//!
//! A GET opens a stream of events that carries all messages of the backend. Its first event names the address to which
//! messages are posted, which must have the same origin. For the runtime this is a pipe: a request of the backend does
//! not say which call caused it, a cancellation is a notification, and the end of the stream is the end of the
//! connection.

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

/// Name of this transport in status output.
pub(crate) const KIND: &str = "sse";

/// Opens links to one HTTP+SSE backend.
pub struct SseConnector {
    backend: Arc<Backend>,
}

impl SseConnector {
    /// Checks the configuration. Sends nothing yet.
    ///
    /// # Errors
    /// Returns an error if the address is unusable, or a configured header is reserved.
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

    fn has_own_credentials(&self) -> bool {
        self.backend.credentials.as_ref().is_some_and(|credentials| credentials.is_own())
    }

    fn is_per_caller(&self) -> bool {
        self.backend.credentials.as_ref().is_some_and(|credentials| credentials.is_per_caller())
    }

    fn kind(&self) -> &'static str {
        KIND
    }
}

/// Opens the stream, waits until the backend has named the address to post to, and continues to read.
///
/// # Errors
/// Returns `BackendDown` if the backend cannot be reached, and another kind if it does not speak HTTP+SSE here.
pub(crate) async fn open(backend: Arc<Backend>, events: Arc<dyn LinkEvents>) -> Result<Arc<dyn Link>, Fault> {
    let opened = stream::open(&backend, &*events).await?;
    Ok(Arc::new(SseLink::begin(backend, events, opened)))
}
