//! Connections to the server behind the proxy.

use super::forwarded_body::ForwardedBody;
use crate::http_back::{CONNECT_TIMEOUT, IDLE_TIMEOUT, MAX_IDLE};
use crate::http1::HttpTarget;
use crate::tls::BackTlsError;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use signalbox_engine::lock::LockResultExt;
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;
use tokio::net::TcpStream;

/// Sender of requests on one connection.
pub(super) type Sender = SendRequest<ForwardedBody>;

/// Reason why the server gave no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamError {
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("no connection within {} s", CONNECT_TIMEOUT.as_secs())]
    TimedOut,
    #[error("{0}")]
    Tls(#[from] BackTlsError),
    #[error("{0}")]
    Http(#[from] hyper::Error),
}

/// Address of the server, and its idle connections.
pub(super) struct Upstream {
    target: HttpTarget,
    idle: Mutex<Vec<(Sender, Instant)>>,
}

impl Upstream {
    pub(super) fn new(target: HttpTarget) -> Self {
        Self { target, idle: Mutex::default() }
    }

    pub(super) fn target(&self) -> &HttpTarget {
        &self.target
    }

    /// Sends a request and waits for the head of its answer. An idle connection that turns out to be closed before
    /// anything was written is replaced; no request is ever sent twice.
    pub(super) async fn send(
        &self,
        mut request: Request<ForwardedBody>,
    ) -> Result<(Response<Incoming>, Sender), UpstreamError> {
        while let Some(mut sender) = self.take_idle() {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok((response, sender)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => request = unsent,
                    None => return Err(error.into_error().into()),
                },
            }
        }
        let mut sender = match self.open().await {
            Ok(sender) => sender,
            Err(error) => {
                // The body has no receiver, but the tape should contain the request.
                request.into_body().read_out().await;
                return Err(error);
            }
        };
        let response = sender.send_request(request).await?;
        Ok((response, sender))
    }

    /// Keeps a connection whose last answer has ended.
    pub(super) fn keep(&self, sender: Sender) {
        let mut idle = self.lock();
        if idle.len() < MAX_IDLE && !sender.is_closed() {
            idle.push((sender, Instant::now() + IDLE_TIMEOUT));
        }
    }

    fn take_idle(&self) -> Option<Sender> {
        let now = Instant::now();
        let mut idle = self.lock();
        idle.retain(|(sender, until)| *until > now && !sender.is_closed());
        let ready = idle.iter().rposition(|(sender, _)| sender.is_ready())?;
        Some(idle.swap_remove(ready).0)
    }

    async fn open(&self) -> Result<Sender, UpstreamError> {
        let opening = async {
            let socket = TcpStream::connect((&*self.target.host, self.target.port)).await?;
            socket.set_nodelay(true)?;
            let stream = self.target.secure(socket).await?;
            Ok::<_, UpstreamError>(Builder::new().preserve_header_case(true).handshake(TokioIo::new(stream)).await?)
        };
        let opened = tokio::time::timeout(CONNECT_TIMEOUT, opening).await;
        let (sender, connection) = opened.map_err(|_| UpstreamError::TimedOut)??;
        tokio::spawn(connection);
        Ok(sender)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Sender, Instant)>> {
        self.idle.lock().unpoisoned()
    }
}
