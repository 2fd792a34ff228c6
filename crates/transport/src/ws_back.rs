//! Backends over WebSocket: one connection per link, one message per text frame.
//!
//! One task drives each connection: it writes queued messages, posts received ones, and is the only one that reports
//! the end.

mod connect;
mod life;
#[cfg(test)]
mod tests;

use crate::backend_fault::SpecError;
use crate::http_back::CONNECT_TIMEOUT;
use crate::http1::HttpTarget;
use crate::tls::BackTlsSpec;
use http::header::{self, HeaderName, HeaderValue};
use signalbox_engine::{BackendUser, Fault};
use signalbox_runtime::{BackendCredentials, BoxFuture, Connector, Link, LinkEvents};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Scheme that this transport serves.
const SCHEME: &str = "ws";

/// Configuration of a WebSocket backend.
#[derive(Clone)]
pub struct WsSpec {
    /// Name of the backend, for messages.
    pub name: Arc<str>,
    /// Address: `ws://host:port/path`, or the same with `wss`.
    pub url: String,
    /// Headers to send with the handshake. Their values are secrets.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Source of the credential of each handshake, if the backend is protected.
    pub credentials: Option<Arc<dyn BackendCredentials>>,
    /// Maximum size of a message from the backend, in bytes.
    pub max_message: usize,
    /// Maximum time to connect, and again for the handshake.
    pub connect_timeout: Duration,
    /// TLS configuration for `wss` addresses.
    pub tls: BackTlsSpec,
}

impl WsSpec {
    /// Creates a configuration with this address and defaults for everything else.
    #[must_use]
    pub fn new(name: impl Into<Arc<str>>, url: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            url: url.into(),
            headers: Vec::new(),
            credentials: None,
            max_message: signalbox_wire::limits::MESSAGE,
            connect_timeout: CONNECT_TIMEOUT,
            tls: BackTlsSpec::default(),
        }
    }
}

impl fmt::Debug for WsSpec {
    /// Addresses and header values may contain secrets, so only the names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("WsSpec").field("name", &self.name).field("headers", &names).finish_non_exhaustive()
    }
}

/// Opens a connection for every link.
pub struct WsConnector {
    backend: Arc<Backend>,
}

/// State shared by all connections to one backend.
struct Backend {
    name: Arc<str>,
    target: HttpTarget,
    headers: Vec<(HeaderName, HeaderValue)>,
    credentials: Option<Arc<dyn BackendCredentials>>,
    max_message: usize,
    connect_timeout: Duration,
}

impl WsConnector {
    /// Checks the configuration. Sends nothing yet.
    ///
    /// # Errors
    /// Returns an error if the address is unusable, or a configured header is reserved.
    pub fn new(spec: WsSpec) -> Result<Self, SpecError> {
        let WsSpec { name, url, mut headers, credentials, max_message, connect_timeout, tls } = spec;
        if let Some((reserved, _)) = headers.iter().find(|(name, _)| is_reserved(name)) {
            return Err(SpecError::ReservedHeader { backend: name, header: reserved.to_string() });
        }
        for (_, value) in &mut headers {
            value.set_sensitive(true);
        }
        let target = HttpTarget::parse(&url, SCHEME).and_then(|target| target.with_tls(&name, tls));
        let target = target.map_err(|error| SpecError::Target { backend: Arc::clone(&name), error })?;
        let backend = Backend { name, target, headers, credentials, max_message, connect_timeout };
        Ok(Self { backend: Arc::new(backend) })
    }
}

impl fmt::Debug for WsConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WsConnector").field("backend", &self.backend.name).finish_non_exhaustive()
    }
}

impl Connector for WsConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let backend = Arc::clone(&self.backend);
        Box::pin(async move {
            let duplex = connect::connect(&backend, &*events).await?;
            Ok(Arc::new(life::begin(&backend.name, duplex, events)) as Arc<dyn Link>)
        })
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
        "websocket"
    }
}

/// Returns `true` for headers of the handshake itself.
fn is_reserved(name: &HeaderName) -> bool {
    let framing = [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::UPGRADE];
    framing.contains(name) || name.as_str().starts_with("sec-websocket-")
}
