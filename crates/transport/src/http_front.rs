//! The HTTP front: Streamable HTTP of 2025-03-26 to 2026-07-28 on one path, and a few plain routes beside it.

mod accepts;
mod answer;
mod body;
mod guard;
mod post;
mod read_body;
mod resume;
mod service;
mod sse_body;

use crate::workers::Workers;
use bytes::Bytes;
use guard::Guard;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use resume::ResumeStore;
use signalbox_engine::Principal;
use signalbox_runtime::Gateway;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

/// How long an answer may take before the stream is opened as SSE, so that the client sees signs of life.
pub const COMMIT_AFTER: Duration = Duration::from_secs(5);
/// How often a silent SSE stream carries a comment.
pub const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// How often streams that nobody came back for are given up.
const SWEEP: Duration = Duration::from_secs(15);

/// How the front is set up.
#[derive(Clone, Debug)]
pub struct FrontSpec {
    /// The path of the MCP endpoint.
    pub path: String,
    /// Most connections at a time.
    pub max_connections: usize,
    /// How long a client may take for its headers.
    pub header_timeout: Duration,
    /// How long a client may take for its body.
    pub body_timeout: Duration,
    /// Origins that are welcome besides those of this machine.
    pub allowed_origins: Vec<String>,
    /// Host names that are welcome besides those of this machine.
    pub allowed_hosts: Vec<String>,
    /// Who a caller is while nobody has to say so.
    pub principal: Principal,
}

impl Default for FrontSpec {
    fn default() -> Self {
        Self {
            path: "/mcp".to_owned(),
            max_connections: 10_000,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(30),
            allowed_origins: Vec::new(),
            allowed_hosts: Vec::new(),
            principal: Principal::anonymous(),
        }
    }
}

/// The answer of a plain route.
#[derive(Clone, Debug)]
pub struct ExtraAnswer {
    /// HTTP status.
    pub status: u16,
    /// Content type.
    pub content_type: &'static str,
    /// Body.
    pub body: String,
}

/// Plain routes beside the MCP endpoint.
pub type ExtraRoutes = Arc<dyn Fn(&http::Method, &str) -> Option<ExtraAnswer> + Send + Sync>;

/// What every connection needs.
pub(crate) struct Front {
    pub gateway: Arc<Gateway>,
    pub spec: Arc<FrontSpec>,
    pub guard: Guard,
    pub extra: ExtraRoutes,
    pub resume: Arc<ResumeStore>,
}

/// Serves, each connection on the worker whose turn it is, until told to stop; then no connection is accepted and open ones end after the answer they are busy with.
pub async fn serve(
    listener: TcpListener,
    gateway: Arc<Gateway>,
    spec: Arc<FrontSpec>,
    extra: ExtraRoutes,
    workers: &Workers,
    mut stop: watch::Receiver<bool>,
) {
    let guard = Guard::new(&spec.allowed_origins, &spec.allowed_hosts);
    let front = Arc::new(Front { gateway, guard, extra, resume: Arc::default(), spec });
    let room = Arc::new(Semaphore::new(front.spec.max_connections));
    let mut connections = tokio::task::JoinSet::new();
    let mut sweep = tokio::time::interval(SWEEP);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stopped(&mut stop) => break,
            _ = sweep.tick() => {
                front.resume.sweep(|session| front.gateway.sessions.get(session).is_some());
                continue;
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => continue,
        };
        let socket = match accepted {
            Ok((socket, _)) => socket,
            Err(error) => {
                // Out of descriptors, most likely: wait for some to come free instead of spinning.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let Ok(permit) = Arc::clone(&room).try_acquire_owned() else {
            front.gateway.counters.connections_refused.fetch_add(1, Ordering::Relaxed);
            connections.spawn(turn_away(socket));
            continue;
        };
        // The socket belongs to the runtime that accepted it until it is handed to a worker's.
        let Ok(socket) = socket.into_std() else { continue };
        let (front, stop) = (Arc::clone(&front), stop.clone());
        let serving = async move {
            if let Ok(socket) = TcpStream::from_std(socket) {
                connection(socket, front, stop).await;
            }
            drop(permit);
        };
        connections.spawn_on(serving, workers.turn());
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Waits until the front is told to stop, or nobody is left to tell it.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Tells a client that there is no room, without reading anything from it.
async fn turn_away(mut socket: TcpStream) {
    use tokio::io::AsyncWriteExt as _;
    let answer =
        b"HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let _ = tokio::time::timeout(Duration::from_secs(1), socket.write_all(answer)).await;
}

async fn connection(socket: TcpStream, front: Arc<Front>, mut stop: watch::Receiver<bool>) {
    let _ = socket.set_nodelay(true);
    let counters = &front.gateway.counters.connections;
    counters.fetch_add(1, Ordering::Relaxed);
    let service = {
        let front = Arc::clone(&front);
        hyper::service::service_fn(move |request| service::handle(Arc::clone(&front), request))
    };
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(front.spec.header_timeout).max_buf_size(256 * 1024);
    let serving = builder.serve_connection(TokioIo::new(socket), service);
    let mut serving = std::pin::pin!(serving);
    let ended = tokio::select! {
        ended = serving.as_mut() => ended,
        () = stopped(&mut stop) => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    if let Err(error) = ended {
        tracing::trace!(%error, "connection ended");
    }
    counters.fetch_sub(1, Ordering::Relaxed);
}

/// The answer type of this front.
pub(crate) type Answer = http::Response<body::FrontBody>;

/// A body that is there as a whole.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> body::FrontBody {
    body::FrontBody::whole(bytes.into())
}
