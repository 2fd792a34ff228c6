//! The HTTP front: where clients connect. It serves Streamable HTTP of 2025-03-26 to 2026-07-28 and WebSocket on one
//! path, HTTP+SSE of 2024-11-05 on two others, and hands everything else to the [`Router`]. hyper reads and writes
//! HTTP/1; the front decides what a request is for, finds its session, and gives the answer its form.
//!
//! A request passes these gates in this order, and each of them answers what it refuses:
//!
//! ```text
//! accept ─► admission (places) ─► TLS ─► Host, Origin ─► CORS preflight ─► authenticators ─► path and method
//!                                                                                               │
//!   POST: body (bounded, charged) ─► strict scan, envelope ─► proofs in the message ─► session ─┤
//!                                                                                               ▼
//!                                        Session::receive ─► Outbox ─► one JSON body, or events
//! ```
//!
//! A [`ClientConnection`] is in one of four phases, and the front's clock, which moves every [`TICK`], ends
//! what stays too long:
//!
//! ```text
//!            first byte of a head           head is whole            answered as a whole
//!   Quiet ───────────────────────► Head ──────────────────► Busy ──────────────────────────► Quiet
//!   (75 s)                  (header_timeout)                 │ ▲
//!                                                            ▼ │ first message of the answer
//!                                                          Waiting ── after 5 s the answer becomes an event stream
//! ```
//!
//! If all places are taken, the idlest connection in `Quiet` or `Head` gives its place to a new one, or else a stream
//! of the caller or address with the most connections above its share ([`crate::places`]).
//!
//! Invariants:
//!
//! - Nothing of a body is read before the caller is known, and a large one is charged to that caller's share while it comes.
//! - A message becomes an [`signalbox_wire::Envelope`] once, and its bytes are never copied on the way to the session.
//! - What a client gets is what the session pushed to the stream's outbox, in that order. The front adds framing and no message;
//!   a request that never reached a session is refused here, and told as a fact of its own.
//! - A connection is served by the worker that took it, from its first byte to its last.
//! - A stream that the client lost goes on in the [`resume`] store for a while, so that nothing is lost between two GETs.
//! - Stopping ends connections between two requests, never in the middle of an answer. Only a holder above its share of places loses
//!   answers, while others want these places.
//!
//! The front must never wait with a lock held, start a timer for each request (the clock is there for that), or let
//! what a client sends decide how much memory is set aside before the budget has agreed.

mod accepts;
mod answer;
mod client_connection;
mod client_connections;
mod connection;
mod cors;
mod entry;
mod get;
mod guard;
mod heads;
mod path_secret;
mod place;
mod post;
mod protobuf_post;
mod resume;
mod routed;
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
pub(crate) use connection::speak;
pub use entry::{Entry, Named, OpenedRoom};
pub(crate) use guard::OriginGuard;
pub use path_secret::PathSecret;
pub use place::IDLE;
pub use resume::{MAX_PARKED, MAX_PARKED_BYTES, MAX_PARKED_PER_SESSION, PARKED_FOR};
pub(crate) use service::handle_control;
pub use sse::{POST_PATH, STREAM_PATH};

use crate::admission::Admission;
use crate::front_clock::{FrontClock, TICK};
use crate::places::unknown_caller;
use crate::router::Router;
use crate::tls::{FrontTls, MaybeTlsStream};
use crate::turned_away::Exit;
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

/// How long an answer may take before the stream is opened as SSE, so that the client sees signs of life.
pub const COMMIT_AFTER: Duration = Duration::from_secs(5);
/// How often a silent SSE stream carries a comment.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The largest head of a request, in bytes.
pub const MAX_HEAD: usize = 256 * 1024;
/// Most lines of a head, which is what hyper takes.
pub const MAX_HEADERS: usize = 100;

/// How often streams that nobody came back for are given up.
const SWEEP: Duration = Duration::from_secs(15);

/// How the front is set up.
#[derive(Clone, Debug)]
pub struct FrontSpec {
    /// The path of the MCP endpoint.
    pub path: String,
    /// Who is welcome, and how many at a time.
    pub admission: Arc<Admission>,
    /// How long a client may take for its headers.
    pub header_timeout: Duration,
    /// How long a client may take for its body.
    pub body_timeout: Duration,
    /// How long a client may take nothing of what is written to it.
    pub reader_timeout: Duration,
    /// How callers prove who they are.
    pub authenticators: Authenticators,
    /// How long a WebSocket's first message may take that has to prove who calls.
    pub authentication_timeout: Duration,
    /// What clients that have to prove who they are are told of how to do so.
    pub challenge: Option<Arc<dyn Challenge>>,
    /// How clients come, in a word.
    pub transport: &'static str,
    /// How TLS is spoken, if it is. A client that shows a certificate is a principal of its own.
    pub tls: Option<Arc<FrontTls>>,
    /// A path that only a secret of its own opens.
    pub path_secret: Option<PathSecret>,
    /// A second MCP endpoint, which stands for a server of its own.
    pub entry: Option<Arc<dyn Entry>>,
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

/// What every connection needs.
pub(crate) struct FrontShared {
    pub gateway: Arc<Gateway>,
    pub spec: Arc<FrontSpec>,
    /// What is not MCP.
    pub router: Arc<Router>,
    pub resume: Arc<ResumeStore>,
    pub clock: FrontClock,
    pub connections: Mutex<ClientConnections>,
    /// No request is begun any more.
    pub stopping: AtomicBool,
}

impl FrontShared {
    /// A front to which nobody has come yet.
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

/// Serves, each connection on the worker whose turn it is, until told to stop; then no connection is accepted and open
/// ones end after the answer they are busy with.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    spec: Arc<FrontSpec>,
    router: Arc<Router>,
    workers: &Workers,
    mut stop: watch::Receiver<bool>,
) {
    let exit = Exit::new(spec.admission.reserve());
    let front = FrontShared::new(gateway, spec, router);
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
                // Out of descriptors, most likely: wait for some to come free instead of spinning.
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
            // Inside TLS nothing can be said before a handshake, which is what there is no room for.
            if front.spec.tls.is_none()
                && let Some(telling) = exit.tell(socket, NO_ROOM.to_vec())
            {
                connections.spawn(telling);
            }
            continue;
        };
        // The socket belongs to the runtime that accepted it until it is handed to a worker's.
        let Ok(socket) = socket.into_std() else { continue };
        let connection = ClientConnection::new(Arc::clone(&front), Some(address), Some(place));
        open().add(&connection);
        let serving = async move {
            if let Ok(socket) = TcpStream::from_std(socket)
                && let Some(socket) = secure::secured(socket, &connection).await
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

/// Waits until the front is told to stop, or nobody is left to tell it.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// What a client is told for which there is no room, without a look at what it wants.
const NO_ROOM: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-type: text/plain\r\n\
    content-length: 30\r\nconnection: close\r\n\r\ntoo many connections are open\n";

async fn serve_connection(socket: MaybeTlsStream, connection: &Arc<ClientConnection>) {
    let _ = socket.set_nodelay();
    let counters = &connection.front.gateway.counters.connections;
    counters.fetch_add(1, Ordering::Relaxed);
    speak(socket, connection, service::handle).await;
    if let Some(pending) = connection.upgraded() {
        // Boxed, so that other connections do not carry the room for it.
        Box::pin(socket::serve(connection, *pending)).await;
    }
    counters.fetch_sub(1, Ordering::Relaxed);
}

/// The answer type of this front.
pub(crate) type FrontAnswer = http::Response<routed::FrontBody>;

/// A body that is there as a whole.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> routed::FrontBody {
    routed::FrontBody::whole(bytes.into())
}
