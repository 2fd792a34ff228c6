//! The Streamable HTTP transport to a backend, in both eras.
//!
//! Every message is one POST in a task of its own. The response, a JSON body or a stream of events, is posted to the
//! link's events. All links of a connector share one pool of kept-alive connections. A connection has no task of its
//! own: its user polls it, so that a call costs one task and aborting that task closes the socket.

pub(crate) mod answer;
pub(crate) mod backend;
pub(crate) mod general;
pub(crate) mod headers;
pub(crate) mod in_flight;
mod link;
pub(crate) mod post;
mod stream;
#[cfg(test)]
pub(crate) mod tests;

pub use link::HttpLink;

use crate::backend_fault::SpecError;
use crate::file_budget::UNLIMITED_BACKENDS;
use crate::tls::BackTlsSpec;
use backend::Backend;
use http::header::{self, HeaderName, HeaderValue};
use signalbox_engine::{BackendUser, Fault};
use signalbox_runtime::caller_places::CallerPlaces;
use signalbox_runtime::{BackendCredentials, BoxFuture, Connector, Link, LinkEvents};
use signalbox_wire::Limits;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

/// Maximum time to open a connection, including name lookup.
pub const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of idle connections to one backend.
pub const MAX_IDLE: usize = 64;
/// Maximum idle time of a connection. Common servers close theirs after 5 s without notice, and a call written at that
/// moment is lost.
pub const IDLE_TIMEOUT: Duration = Duration::from_secs(4);

/// Places for connections to all HTTP backends. They are shared because the process has one table of open files.
pub static BACKEND_PLACES: LazyLock<Arc<CallerPlaces>> = LazyLock::new(|| CallerPlaces::new(UNLIMITED_BACKENDS));

/// Configuration of an HTTP backend.
#[derive(Clone)]
pub struct HttpSpec {
    /// Name of the backend, for messages.
    pub name: Arc<str>,
    /// Address: `http://host:port/path`, or the same with `https`.
    pub url: String,
    /// Headers to send with every request. Their values are secrets.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Source of the credential of each request, if the backend is protected.
    pub credentials: Option<Arc<dyn BackendCredentials>>,
    /// Limits on what the backend may send.
    pub limits: Limits,
    /// Maximum time to open a connection.
    pub connect_timeout: Duration,
    /// Maximum number of idle connections.
    pub max_idle: usize,
    /// Maximum idle time of a connection, if the backend does not ask for less.
    pub idle_timeout: Duration,
    /// TLS configuration for `https` addresses.
    pub tls: BackTlsSpec,
    /// Maximum number of times a message is sent again that was certainly not processed.
    pub retries: u32,
    /// Places for connections that carry a request. Idle ones, of which there are at most `max_idle`, need none.
    pub places: Arc<CallerPlaces>,
}

impl HttpSpec {
    /// Creates a configuration with this address and defaults for everything else.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            headers: Vec::new(),
            credentials: None,
            limits: Limits::default(),
            connect_timeout: CONNECT_TIMEOUT,
            max_idle: MAX_IDLE,
            idle_timeout: IDLE_TIMEOUT,
            tls: BackTlsSpec::default(),
            retries: 0,
            places: Arc::clone(&BACKEND_PLACES),
        }
    }
}

impl fmt::Debug for HttpSpec {
    /// Addresses and header values may contain secrets, so only the names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("HttpSpec").field("name", &self.name).field("headers", &names).finish_non_exhaustive()
    }
}

/// Opens links to one HTTP backend.
pub struct HttpConnector {
    backend: Arc<Backend>,
}

impl HttpConnector {
    /// Checks the configuration. Sends nothing yet.
    ///
    /// # Errors
    /// Returns an error if the address is unusable, or a configured header is reserved.
    pub fn new(spec: HttpSpec) -> Result<Self, SpecError> {
        let reserved = spec.headers.iter().find(|(name, _)| is_reserved(name));
        if let Some((name, _)) = reserved {
            return Err(SpecError::ReservedHeader { backend: spec.name, header: name.to_string() });
        }
        let backend = Arc::new(Backend::new(spec)?);
        Ok(Self { backend })
    }

    /// Returns the shared state of the backend, for other transports to the same address.
    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }
}

impl fmt::Debug for HttpConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpConnector").field("backend", &self.backend.name).finish_non_exhaustive()
    }
}

impl Connector for HttpConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let backend = Arc::clone(&self.backend);
        Box::pin(async move {
            let runtime = tokio::runtime::Handle::current();
            let link: Arc<dyn Link> = Arc::new(HttpLink::new(backend, events, runtime));
            Ok(link)
        })
    }

    fn carries_headers(&self) -> bool {
        true
    }

    fn is_process(&self) -> bool {
        false
    }

    fn is_ending_sessions(&self) -> bool {
        self.backend.ending.load(Ordering::Relaxed) > 0
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
        "http"
    }

    fn retries(&self) -> u64 {
        self.backend.retried.load(Ordering::Relaxed)
    }
}

/// Returns `true` for headers that control framing or repeat parts of the message.
fn is_reserved(name: &HeaderName) -> bool {
    let framing = [
        header::ACCEPT,
        header::CONNECTION,
        header::CONTENT_LENGTH,
        header::CONTENT_TYPE,
        header::EXPECT,
        header::TE,
        header::TRAILER,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
    ];
    framing.contains(name)
        || headers::OURS.contains(&name)
        || name.as_str().starts_with(signalbox_wire::header::PARAM_PREFIX)
}
