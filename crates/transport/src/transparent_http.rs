//! A transparent proxy in front of one MCP endpoint that speaks HTTP.
//!
//! Requests and answers pass with their status, headers and bodies, event by event. Only `Host` and hop-by-hop headers
//! are changed. Everything that passes is also put into a [`Feed`] and analysed elsewhere. Heads are recorded with
//! their credentials redacted.

mod forwarded_body;
mod service;
#[cfg(test)]
mod tests;
mod upstream;

use crate::admission::Admission;
use crate::http1::{HttpTarget, TargetError};
use crate::tap::{Feed, HttpEvent};
use crate::tls::BackTlsSpec;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use upstream::Upstream;

/// Maximum number of client connections.
pub const MAX_CONNECTIONS: usize = 1000;
/// Maximum time to receive a request head.
pub const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for answers to finish once the proxy stops.
pub const STOP_AFTER: Duration = Duration::from_secs(1);

/// A proxy to one endpoint. Clones share its state.
#[derive(Clone)]
pub struct Proxy(Arc<ProxyState>);

struct ProxyState {
    upstream: Arc<Upstream>,
    admission: Arc<Admission>,
    feed: Option<Feed<HttpEvent>>,
    calls: AtomicU64,
}

impl Proxy {
    /// Creates a proxy to this address that reports to the feed. Sends nothing yet.
    ///
    /// # Errors
    /// Returns an error if the address is unusable.
    pub fn new(url: &str, tls: BackTlsSpec, feed: Option<Feed<HttpEvent>>) -> Result<Self, TargetError> {
        let name: Arc<str> = "server".into();
        let target = HttpTarget::parse(url, "http")?.with_tls(&name, tls)?;
        let admission = Admission::new(MAX_CONNECTIONS, &[], &[]);
        let upstream = Arc::new(Upstream::new(target));
        Ok(Self(Arc::new(ProxyState { upstream, admission, feed, calls: AtomicU64::new(1) })))
    }

    /// Returns the path that clients must use: that of the endpoint.
    #[must_use]
    pub fn path(&self) -> &str {
        self.0.upstream.target().uri.path()
    }

    /// Serves until `stop` is set. Then answers have a moment to finish.
    pub async fn serve(&self, listener: TcpListener, mut stop: watch::Receiver<bool>) {
        let mut connections = JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                () = stopped(&mut stop) => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
            };
            match accepted {
                Ok((socket, _)) => match self.0.admission.enter() {
                    Some(place) => {
                        let (proxy, stop) = (self.clone(), stop.clone());
                        connections.spawn(async move {
                            proxy.connection(socket, stop).await;
                            drop(place);
                        });
                    }
                    None => tracing::warn!(most = MAX_CONNECTIONS, "a connection is refused: too many are open"),
                },
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            }
        }
        drop(listener);
        let ending = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(STOP_AFTER, ending).await;
    }

    async fn connection(&self, socket: TcpStream, mut stop: watch::Receiver<bool>) {
        let _ = socket.set_nodelay(true);
        let proxy = self.clone();
        let service = hyper::service::service_fn(move |request| service::pass(proxy.clone(), request));
        let mut builder = http1::Builder::new();
        // Add no header, and keep the case of header names.
        builder.auto_date_header(false).preserve_header_case(true).timer(TokioTimer::new());
        builder.header_read_timeout(HEAD_TIMEOUT);
        let mut serving = std::pin::pin!(builder.serve_connection(TokioIo::new(socket), service));
        let ended = tokio::select! {
            ended = &mut serving => ended,
            () = stopped(&mut stop) => {
                serving.as_mut().graceful_shutdown();
                serving.await
            }
        };
        if let Err(error) = ended {
            tracing::trace!(%error, "connection ended");
        }
    }
}

/// Waits until `stop` is set or its sender is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Proxy").field("to", &self.0.upstream.target().to_string()).finish_non_exhaustive()
    }
}
