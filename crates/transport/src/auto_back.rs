//! A backend at an `http://` address whose transport is not configured: Streamable HTTP, or HTTP+SSE of 2024-11-05.
//!
//! The transport is detected when a connection is opened, and remembered until opening one fails. HTTP+SSE is chosen
//! only if the backend actually opens a stream and names an address to post to. Otherwise Streamable HTTP is used,
//! whose own handshake then reports what is wrong. Detection costs a Streamable HTTP backend one extra request, once.

#[cfg(test)]
mod tests;

use crate::backend_fault::SpecError;
use crate::http_back::backend::Backend;
use crate::http_back::{HttpConnector, HttpSpec, headers};
use crate::http1::{ContentKind, body};
use crate::observed_events::{LinkObserver, ObservedEvents};
use crate::sse_back;
use signalbox_engine::{BackendUser, Fault, FaultKind, back};
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use signalbox_wire::Envelope;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

/// Timeout of each of the two requests that detect the transport.
const PATIENCE: Duration = Duration::from_secs(5);
/// Path suffix for which HTTP+SSE is tried first.
const SSE_PATH: &str = "/sse";

const UNKNOWN: u8 = 0;
const HTTP: u8 = 1;
const SSE: u8 = 2;

/// Opens links to one backend of either transport.
pub struct AutoConnector {
    http: Arc<HttpConnector>,
    found: Arc<AtomicU8>,
}

impl AutoConnector {
    /// Checks the configuration. Sends nothing yet.
    ///
    /// # Errors
    /// Returns an error if the address is unusable, or a configured header is reserved.
    pub fn new(spec: HttpSpec) -> Result<Self, SpecError> {
        Ok(Self { http: Arc::new(HttpConnector::new(spec)?), found: Arc::new(AtomicU8::new(UNKNOWN)) })
    }

    fn found(&self) -> u8 {
        self.found.load(Ordering::Relaxed)
    }
}

impl fmt::Debug for AutoConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AutoConnector").field("http", &self.http).field("found", &self.kind()).finish()
    }
}

impl Connector for AutoConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let opening = Opening { http: Arc::clone(&self.http), found: Arc::clone(&self.found), events };
        Box::pin(opening.run())
    }

    /// Until the transport is known, Streamable HTTP is assumed.
    fn carries_headers(&self) -> bool {
        self.found() != SSE
    }

    fn is_process(&self) -> bool {
        false
    }

    fn is_ending_sessions(&self) -> bool {
        self.http.is_ending_sessions()
    }

    fn signs_in(&self) -> bool {
        self.http.signs_in()
    }

    fn sign_in_end(&self, user: &BackendUser, agreed: bool) -> Option<BoxFuture<()>> {
        self.http.sign_in_end(user, agreed)
    }

    fn is_per_user(&self) -> bool {
        self.http.is_per_user()
    }

    fn has_own_credentials(&self) -> bool {
        self.http.has_own_credentials()
    }

    fn is_per_caller(&self) -> bool {
        self.http.is_per_caller()
    }

    fn kind(&self) -> &'static str {
        if self.found() == SSE { sse_back::KIND } else { self.http.kind() }
    }

    fn retries(&self) -> u64 {
        self.http.retries()
    }
}

struct Opening {
    http: Arc<HttpConnector>,
    found: Arc<AtomicU8>,
    events: Arc<dyn LinkEvents>,
}

impl Opening {
    async fn run(self) -> Result<Arc<dyn Link>, Fault> {
        match self.found.load(Ordering::Relaxed) {
            HTTP => self.http().await,
            SSE => {
                let opened = sse_back::open(Arc::clone(self.backend()), Arc::clone(&self.events)).await;
                if opened.is_err() {
                    self.found.store(UNKNOWN, Ordering::Relaxed);
                }
                opened
            }
            _ => self.detect().await,
        }
    }

    async fn detect(self) -> Result<Arc<dyn Link>, Fault> {
        let asked_first = self.backend().target.uri.path().trim_end_matches('/').ends_with(SSE_PATH);
        if !asked_first {
            match tokio::time::timeout(PATIENCE, probe_transport(self.backend(), &*self.events)).await {
                Ok(Ok(Verdict::PerhapsSse)) => {}
                // The connection failed, so another transport would fail in the same way.
                Ok(Err(fault)) if fault.kind == FaultKind::BackendDown => return Err(fault),
                Ok(Ok(Verdict::Other) | Err(_)) | Err(_) => return self.http().await,
            }
        }
        let opening = sse_back::open(Arc::clone(self.backend()), Arc::clone(&self.events));
        match tokio::time::timeout(PATIENCE, opening).await {
            Ok(Ok(link)) => {
                tracing::info!(backend = %self.backend().name, "the backend speaks HTTP+SSE");
                self.found.store(SSE, Ordering::Relaxed);
                Ok(link)
            }
            Ok(Err(fault)) if fault.kind == FaultKind::BackendDown => Err(fault),
            Ok(Err(fault)) => {
                tracing::debug!(%fault, "no HTTP+SSE");
                self.http().await
            }
            Err(_) => self.http().await,
        }
    }

    async fn http(self) -> Result<Arc<dyn Link>, Fault> {
        let observer = TransportDetection { found: self.found, has_message: AtomicBool::new(false) };
        self.http.open(Arc::new(ObservedEvents { events: self.events, observer })).await
    }

    fn backend(&self) -> &Arc<Backend> {
        self.http.backend()
    }
}

/// Records that the backend speaks Streamable HTTP once a message arrived on such a link. If requests fail before that,
/// opening has failed and the remembered transport may be outdated.
struct TransportDetection {
    found: Arc<AtomicU8>,
    has_message: AtomicBool,
}

impl LinkObserver for TransportDetection {
    fn on_message(&self) {
        if !self.has_message.load(Ordering::Relaxed) {
            self.has_message.store(true, Ordering::Relaxed);
            self.found.store(HTTP, Ordering::Relaxed);
        }
    }

    fn on_failure(&self) {
        if !self.has_message.load(Ordering::Relaxed) {
            self.found.store(UNKNOWN, Ordering::Relaxed);
        }
    }
}

/// Maximum size of the probe's answer that is read.
const MAX_ANSWER: usize = 64 * 1024;

/// Client information in the probe.
const INFO: &str = concat!(r#"{"name":"signalbox","version":""#, env!("CARGO_PKG_VERSION"), r#""}"#);

/// Interpretation of the probe's answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Verdict {
    /// The server may not accept a POST at this address.
    PerhapsSse,
    /// The answer comes from Streamable HTTP, or from a server that HTTP+SSE would not explain either.
    Other,
}

/// Sends the probe that distinguishes Streamable HTTP from HTTP+SSE: a POST that either era of Streamable HTTP answers
/// in its own way.
///
/// # Errors
/// Returns a fault if there is no answer.
async fn probe_transport(backend: &Backend, events: &dyn LinkEvents) -> Result<Verdict, Fault> {
    let probe = events.asks(back::probe(INFO));
    let credential = backend.credential(events, None).await?;
    let request = headers::post(backend, &probe, None, credential.as_ref(), Vec::new())?;
    let kept = backend.pool.take();
    let (mut conn, head) = backend.exchange(events, kept, request).await?;
    let (status, content) = (head.status.as_u16(), head.content);
    if !matches!(status, 400 | 404 | 405) {
        // A stream may take long to end and is not needed; a complete answer is recorded.
        if content != ContentKind::Events
            && let Ok(bytes) = body::whole(&mut conn, MAX_ANSWER, || None).await
        {
            events.told(&bytes);
            backend.pool.put(conn);
        }
        return Ok(Verdict::Other);
    }
    let read = body::whole(&mut conn, MAX_ANSWER, || None).await;
    let speaks = read.is_ok_and(|bytes| {
        backend.pool.put(conn);
        events.told(&bytes);
        Envelope::parse(bytes).is_ok()
    });
    Ok(if speaks { Verdict::Other } else { Verdict::PerhapsSse })
}
