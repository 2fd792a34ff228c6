//! The HTTP front: the listener that clients connect to. It serves Streamable HTTP of 2025-03-26 to 2026-07-28 and
//! WebSocket on one path, HTTP+SSE of 2024-11-05 on two others, and hands every other request to the [`Router`]. hyper
//! reads and writes HTTP/1; the front routes each request, finds its session, and formats the response.
//!
//! A request passes these gates in this order. Each gate answers the requests that it refuses:
//!
//! ```text
//! accept ─► admission (places) ─► TLS ─► Host, Origin ─► CORS preflight ─► authenticators ─► path and method
//!                                                                                               │
//!   POST: body (bounded, charged) ─► strict scan, envelope ─► proofs in the message ─► session ─┤
//!                                                                                               ▼
//!                                        Session::receive ─► Outbox ─► one JSON body, or events
//! ```
//!
//! A [`ClientConnection`] is in one of four phases. The front's clock advances every [`TICK`] and ends connections that
//! exceed the time limit of their phase:
//!
//! ```text
//!            first byte of a head           head is whole            answered as a whole
//!   Quiet ───────────────────────► Head ──────────────────► Busy ──────────────────────────► Quiet
//!   (75 s)                  (header_timeout)                 │ ▲
//!                                                            ▼ │ first message of the answer
//!                                                          Waiting ── after 5 s the answer becomes an event stream
//! ```
//!
//! If all places are taken, the longest-idle connection in `Quiet` or `Head` gives its place to a new one. If none is
//! idle, a stream of the caller or address that is furthest above its share gives way ([`crate::places`]).
//!
//! Invariants:
//!
//! - No byte of a body is read before the caller is known. A large body is charged to that caller's share while it
//!   arrives.
//! - A message is parsed into an [`signalbox_wire::Envelope`] once. Its bytes are never copied on the way to the
//!   session.
//! - A client receives what the session pushed to the stream's outbox, in that order. The front adds framing but no
//!   messages. A request that never reached a session is refused here and recorded as a fact of its own.
//! - A connection is served by one worker for its whole life.
//! - A stream that the client lost is kept in the [`resume`] store for a while, so that no event is lost between two
//!   GETs.
//! - A stop ends connections between two requests, never during an answer. Answers are cut short only for a holder
//!   above its share of places, while others wait for these places.
//!
//! The front must never wait while it holds a lock, never start a timer per request (the clock does that job), and
//! never allocate memory by a length that the client announced before the budget has granted it.

mod accepts;
mod answer;
mod client_connection;
mod client_connections;
mod connection;
mod cors;
mod get;
mod guard;
mod heads;
mod path_secret;
mod place;
mod post;
mod protobuf_post;
mod resume;
mod routed;
mod secondary_endpoint;
mod secure;
mod service;
mod socket;
mod sse;
mod sse_body;
#[cfg(test)]
mod tests;
mod track;
mod upgrade;

pub(crate) use accepts::Accepts;
pub(crate) use client_connection::ClientConnection;
pub(crate) use client_connections::ClientConnections;
pub(crate) use connection::serve_http;
pub(crate) use guard::OriginGuard;
pub use path_secret::PathSecret;
pub use place::IDLE;
pub use resume::{MAX_PARKED, MAX_PARKED_BYTES, MAX_PARKED_PER_SESSION, PARKED_FOR};
pub use secondary_endpoint::{SecondaryEndpoint, SecondaryRequest, SecondarySession};
pub(crate) use service::handle_control;
pub use sse::{POST_PATH, STREAM_PATH};

use crate::admission::Admission;
use crate::front_clock::{FrontClock, TICK};
use crate::places::unknown_caller;
use crate::router::Router;
use crate::tls::{FrontTls, MaybeTlsStream};
use crate::turned_away::RefusalSender;
use crate::workers::Workers;
use bytes::Bytes;
use resume::ResumeStore;
use signalbox_engine::Principal;
use signalbox_engine::authenticator::{Authenticators, Challenge};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_runtime::Gateway;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::MissedTickBehavior;

/// Maximum wait for an answer before the stream is opened as SSE, so that the client sees signs of life.
pub const COMMIT_AFTER: Duration = Duration::from_secs(5);
/// Interval at which a silent SSE stream sends a comment.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Maximum size of a request head, in bytes.
pub const MAX_HEAD: usize = 256 * 1024;
/// Maximum number of header lines, which is hyper's limit.
pub const MAX_HEADERS: usize = 100;

/// Interval at which streams are dropped whose client did not return.
const SWEEP: Duration = Duration::from_secs(15);

/// Configuration of the front.
#[derive(Clone, Debug)]
pub struct FrontSpec {
    /// Path of the MCP endpoint.
    pub path: String,
    /// Checks of `Host` and `Origin`, and the limits on open connections.
    pub admission: Arc<Admission>,
    /// Maximum time to receive a request head.
    pub header_timeout: Duration,
    /// Maximum time to receive a request body.
    pub body_timeout: Duration,
    /// Maximum time that a client may leave written data unread.
    pub reader_timeout: Duration,
    /// Methods by which callers authenticate.
    pub authenticators: Authenticators,
    /// Maximum wait for the first message of a WebSocket that must authenticate in it.
    pub authentication_timeout: Duration,
    /// Source of the `WWW-Authenticate` header for clients that must authenticate.
    pub challenge: Option<Arc<dyn Challenge>>,
    /// Name of the transport in facts and metrics.
    pub transport: &'static str,
    /// TLS configuration; `None` serves plain TCP. A client that presents a certificate is its own principal.
    pub tls: Option<Arc<FrontTls>>,
    /// Path that is opened by a dedicated bearer secret.
    pub path_secret: Option<PathSecret>,
    /// Second MCP endpoint, which represents a server of its own.
    pub entry: Option<Arc<dyn SecondaryEndpoint>>,
}

impl Default for FrontSpec {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            admission: Admission::new(10_000, &[], &[]),
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            reader_timeout: client_connection::KEPT_FOR,
            authenticators: Authenticators::open(Principal::anonymous()),
            authentication_timeout: Duration::from_secs(30),
            challenge: None,
            transport: "http",
            tls: None,
            path_secret: None,
            entry: None,
        }
    }
}

/// State shared by all connections of a front.
pub(crate) struct FrontState {
    pub gateway: Arc<Gateway>,
    pub spec: Arc<FrontSpec>,
    /// Handler of requests that are not MCP.
    pub router: Arc<Router>,
    pub resume: Arc<ResumeStore>,
    pub clock: FrontClock,
    pub connections: Mutex<ClientConnections>,
    /// Set once the front stops; connections accept no further request.
    pub stopping: AtomicBool,
}

impl FrontState {
    /// Creates a front without connections.
    pub fn new(gateway: Arc<Gateway>, spec: Arc<FrontSpec>, router: Arc<Router>) -> Arc<Self> {
        Arc::new(Self {
            gateway,
            spec,
            router,
            resume: Arc::default(),
            clock: FrontClock::default(),
            connections: Mutex::default(),
            stopping: AtomicBool::new(false),
        })
    }
}

/// Accepts connections and assigns each to the next worker until `stop` is set. Then it accepts none, and open
/// connections end after their current answer.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    spec: Arc<FrontSpec>,
    router: Arc<Router>,
    workers: &Workers,
    mut stop: watch::Receiver<bool>,
) {
    let refusals = RefusalSender::new(spec.admission.reserve());
    let front = FrontState::new(gateway, spec, router);
    let mut connections = tokio::task::JoinSet::new();
    let open = || front.connections.lock().unpoisoned();
    let mut sweep = tokio::time::interval(SWEEP);
    let mut tick = tokio::time::interval(TICK);
    tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => break,
            _ = sweep.tick() => {
                front.resume.sweep(|session| front.gateway.sessions.get(session).is_some());
                continue;
            }
            _ = tick.tick(), if !open().is_empty() => {
                open().tick(&front);
                continue;
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let (socket, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                // Most likely the process is out of descriptors: wait for some to be closed instead of spinning.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let place = open().seat(&front);
        let Some(place) = place else {
            front.gateway.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
            let caller = unknown_caller(Some(address), front.spec.transport);
            front.gateway.refused(&caller, Some(503), &place::no_place(), None);
            // Inside TLS a response needs a handshake first, and there is no room for one.
            if front.spec.tls.is_none()
                && let Some(sending) = refusals.send(socket, NO_ROOM.to_vec())
            {
                connections.spawn(sending);
            }
            continue;
        };
        // The socket is registered with the runtime that accepted it until it is moved to a worker's.
        let Ok(socket) = socket.into_std() else { continue };
        let connection = ClientConnection::new(Arc::clone(&front), Some(address), Some(place));
        open().add(&connection);
        let serving = async move {
            if let Ok(socket) = TcpStream::from_std(socket)
                && let Some(socket) = secure::accept(socket, &connection).await
            {
                serve_connection(socket, &connection).await;
            }
            connection.leave();
        };
        connections.spawn_on(serving, workers.turn());
    }
    drop(listener);
    front.stopping.store(true, Ordering::Release);
    open().tick(&front);
    while !connections.is_empty() {
        tokio::select! {
            _ = connections.join_next() => {}
            _ = tick.tick() => open().tick(&front),
        }
    }
}

/// Waits until `stop` is set or its sender is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Response to a client for which there is no room. Its request is not read.
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-type: text/plain\r\n\
    content-length: 30\r\nconnection: close\r\n\r\ntoo many connections are open\n";

async fn serve_connection(socket: MaybeTlsStream, connection: &Arc<ClientConnection>) {
    let _ = socket.set_nodelay();
    let counters = &connection.front.gateway.counters.connections;
    counters.fetch_add(1, Ordering::Relaxed);
    serve_http(socket, connection, service::handle).await;
    if let Some(pending) = connection.upgraded() {
        // Boxed, so that other connections do not reserve space for it.
        Box::pin(socket::serve(connection, *pending)).await;
    }
    counters.fetch_sub(1, Ordering::Relaxed);
}

/// Response type of this front.
pub(crate) type FrontAnswer = http::Response<routed::FrontBody>;

/// Returns a body that is complete.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> routed::FrontBody {
    routed::FrontBody::whole(bytes.into())
}
