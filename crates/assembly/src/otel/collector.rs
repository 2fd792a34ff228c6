//! Posts requests to an OTLP collector and limits how often failures are logged.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::uri::Uri;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use signalbox_runtime::Gateway;
use signalbox_wire::hex::hex;
use std::io;
use std::sync::{OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// Timeout for one request.
const PATIENCE: Duration = Duration::from_secs(5);
/// Least time between two logged failures.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);

/// Reason why a request failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExportError {
    #[error("it cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
    #[error("it broke the connection: {0}")]
    Broken(#[from] hyper::Error),
    #[error("it does not answer in time")]
    TooSlow,
    #[error("it answers {0}")]
    Refused(StatusCode),
    #[error("the request could not be built")]
    Request(#[from] http::Error),
}

impl ExportError {
    /// Returns `true` if a retry may succeed. OTLP defines the statuses.
    pub(super) fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::TooSlow => true,
            Self::Refused(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            Self::Request(_) => false,
        }
    }
}

/// Endpoint of a collector with the headers for it.
pub(super) struct Collector {
    endpoint: Uri,
    headers: HeaderMap,
    complained: Option<Instant>,
}

impl Collector {
    pub(super) fn new(endpoint: Uri, headers: HeaderMap) -> Self {
        Self { endpoint, headers, complained: None }
    }

    /// Posts a request in the binary form of OTLP.
    pub(super) async fn post(&self, body: Bytes) -> Result<(), ExportError> {
        let posted = tokio::time::timeout(PATIENCE, self.post_patiently(body)).await;
        posted.unwrap_or(Err(ExportError::TooSlow))
    }

    async fn post_patiently(&self, body: Bytes) -> Result<(), ExportError> {
        let endpoint = &self.endpoint;
        let host = endpoint.host().unwrap_or_default().trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, endpoint.port_u16().unwrap_or(80))).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() =
            endpoint.path_and_query().map_or("/", |path| path.as_str()).parse().map_err(http::Error::from)?;
        let headers = request.headers_mut();
        headers.extend(self.headers.clone());
        let authority = endpoint.authority().map_or("", |authority| authority.as_str());
        headers.insert(HOST, HeaderValue::from_str(authority).map_err(http::Error::from)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("signalbox/", env!("CARGO_PKG_VERSION"))));
        let answered = sender.send_request(request).await;
        // The body of the response is not needed.
        connection.abort();
        let status = answered?.status();
        if status.is_success() { Ok(()) } else { Err(ExportError::Refused(status)) }
    }

    /// Logs a failure with the number of lost items, at most once a minute.
    pub(super) fn complain(&mut self, error: &ExportError, what: &'static str, count: usize) {
        if self.complained.is_some_and(|before| before.elapsed() < COMPLAIN_EVERY) {
            return;
        }
        self.complained = Some(Instant::now());
        tracing::warn!(
            collector = %self.endpoint,
            count,
            "dropping {what} because the collector does not accept them: {error}; reported at most once a minute"
        );
    }
}

/// Returns a random id for this process.
pub(super) fn instance() -> String {
    let mut id = [0_u8; 16];
    // Without randomness, fall back to the process id.
    match getrandom::fill(&mut id) {
        Ok(()) => hex(&id),
        Err(_) => std::process::id().to_string(),
    }
}

/// Drop reason of a span that found the queue full.
pub(super) const QUEUE_FULL: &str = "span_queue_full";
/// Drop reason of a span that the collector did not accept.
pub(super) const SPAN_NOT_EXPORTED: &str = "span_not_exported";
/// Drop reason of a metrics reading that the collector did not accept.
pub(super) const METRICS_NOT_EXPORTED: &str = "metrics_not_exported";

/// Counts losses in the gateway's drop counters, once the gateway exists.
#[derive(Default)]
pub(super) struct ExportDropCounter(OnceLock<Weak<Gateway>>);

impl ExportDropCounter {
    /// Sets the gateway whose counters are used.
    pub(super) fn count_at(&self, gateway: Weak<Gateway>) {
        let _ = self.0.set(gateway);
    }

    pub(super) fn count(&self, reason: &'static str, count: usize) {
        if let Some(gateway) = self.0.get().and_then(Weak::upgrade) {
            (0..count).for_each(|_| gateway.counters.dropped(reason));
        }
    }
}
