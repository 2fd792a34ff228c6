//! Backends reached over WebSocket: one connection per link, one message per text frame.
//!
//! One task drives each connection: it writes what is queued, posts what comes, and is the only one that reports its end.

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

/// The scheme that this transport serves.
const SCHEME: &str = "ws";

/// What is configured about a WebSocket backend.
#[derive(Clone)]
pub struct WsSpec {
    /// The backend's name, for messages.
    pub name: Arc<str>,
    /// `ws://host:port/path`, or the same with `wss`.
    pub url: String,
    /// Headers to send with the handshake. Their values are secrets.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Gives the credential of each handshake, where the backend is protected.
    pub credentials: Option<Arc<dyn BackendCredentials>>,
    /// The largest message accepted from the backend, in bytes.
    pub max_message: usize,
    /// How long connecting may take, and the handshake after it.
    pub connect_timeout: Duration,
    /// How TLS is spoken, where the address begins with `wss`.
    pub tls: BackTlsSpec,
}

impl WsSpec {
    /// A backend at this address, with the defaults for everything else.
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
    /// Addresses and header values may hold secrets, so only the names are shown.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.headers.iter().map(|(name, _)| name).collect();
        f.debug_struct("WsSpec").field("name", &self.name).field("headers", &names).finish_non_exhaustive()
    }
}

/// Opens a connection for every link.
pub struct WsConnector {
    backend: Arc<Backend>,
}

/// What all connections to one backend share.
struct Backend {
    name: Arc<str>,
    target: HttpTarget,
    headers: Vec<(HeaderName, HeaderValue)>,
    credentials: Option<Arc<dyn BackendCredentials>>,
    max_message: usize,
    connect_timeout: Duration,
}

impl WsConnector {
    /// Checks what is configured. Nothing is sent yet.
    ///
    /// # Errors
    /// When the address is not a usable one, or a header is not the configuration's to set.
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

    fn is_per_caller(&self) -> bool {
        self.backend.credentials.as_ref().is_some_and(|credentials| credentials.is_per_caller())
    }

    fn kind(&self) -> &'static str {
        "websocket"
    }
}

/// Headers of the handshake itself.
fn is_reserved(name: &HeaderName) -> bool {
    let framing = [header::CONNECTION, header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::UPGRADE];
    framing.contains(name) || name.as_str().starts_with("sec-websocket-")
}
