//! One HTTP/1.1 connection, driven by whoever uses it.

use super::Request;
use super::headers::KEEP_ALIVE;
use super::target::Target;
use crate::tls::{BackTlsError, Stream};
use bytes::Bytes;
use http::{HeaderMap, Response};
use http_body_util::Full;
use hyper::body::{Body as _, Frame, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::net::TcpStream;

/// Largest response head, in bytes.
const MAX_HEAD: usize = 64 * 1024;

/// Largest map of headers that is kept with an idle connection.
const MAX_ROOM: usize = 64;

/// How much earlier than the server an idle connection is given up, so that no call meets the closing.
const KEEP_ALIVE_MARGIN: Duration = Duration::from_secs(1);

/// Why a connection could not be opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectError {
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("no connection within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("{0}")]
    Http(#[from] hyper::Error),
    #[error("{0}")]
    Tls(#[from] BackTlsError),
    #[error("no TLS handshake within {} s", .0.as_secs_f32())]
    TlsTimedOut(Duration),
}

/// A connection. Dropping it closes the socket.
pub(crate) struct Conn {
    sender: SendRequest<Full<Bytes>>,
    /// None once the connection has ended. It must be dropped then: a request that is still queued in it hears of the
    /// end by that.
    driver: Option<Connection<TokioIo<Stream>, Full<Bytes>>>,
    /// How long the server keeps it idle, where it says so.
    keep: Option<Duration>,
    /// An empty map that was used before.
    room: HeaderMap,
}

impl Conn {
    /// Connects. No byte is sent yet.
    pub(crate) async fn open(target: &Target, timeout: Duration) -> Result<Box<Self>, ConnectError> {
        let connect = TcpStream::connect((&*target.host, target.port));
        let stream = tokio::time::timeout(timeout, connect).await.map_err(|_| ConnectError::TimedOut(timeout))??;
        stream.set_nodelay(true)?;
        let securing = tokio::time::timeout(timeout, target.secured(stream));
        let stream = securing.await.map_err(|_| ConnectError::TlsTimedOut(timeout))??;
        let (sender, driver) = Builder::new().max_header_size(MAX_HEAD).handshake(TokioIo::new(stream)).await?;
        Ok(Box::new(Self { sender, driver: Some(driver), keep: None, room: HeaderMap::new() }))
    }

    /// Gives the connection a request. Nothing is written before [`Conn::answer`] is awaited.
    ///
    /// What waits for the response is boxed, since it has room for the whole request and would be moved with every task.
    pub(crate) fn begin(&mut self, request: Request) -> Sending {
        Box::pin(self.sender.try_send_request(request))
    }

    /// Writes the request and waits for the head of its response.
    ///
    /// # Errors
    /// Holds the request if the connection ended before any of it was written.
    pub(crate) async fn answer(&mut self, sending: &mut Sending) -> Result<Response<Incoming>, TrySendError<Request>> {
        let response = poll_fn(|cx| {
            drive(&mut self.driver, cx);
            sending.as_mut().poll(cx)
        })
        .await?;
        if let Some(value) = response.headers().get(&KEEP_ALIVE) {
            self.keep = value.to_str().ok().and_then(keep_alive);
        }
        Ok(response)
    }

    /// The next frame of a response's body.
    pub(crate) async fn frame(&mut self, body: &mut Incoming) -> Option<Result<Frame<Bytes>, hyper::Error>> {
        poll_fn(|cx| {
            // What came with the head is there already; only then is the socket asked.
            let early = Pin::new(&mut *body).poll_frame(cx);
            if early.is_ready() {
                return early;
            }
            drive(&mut self.driver, cx);
            Pin::new(&mut *body).poll_frame(cx)
        })
        .await
    }

    /// A map for the headers of the next request.
    pub(crate) fn room(&mut self) -> HeaderMap {
        std::mem::take(&mut self.room)
    }

    /// Takes the headers of a response back, so that the next request needs no new map.
    pub(crate) fn reuse(&mut self, mut headers: HeaderMap) {
        if headers.capacity() <= MAX_ROOM {
            headers.clear();
            self.room = headers;
        }
    }

    /// Whether another request can be sent now. Notices if the server has closed the connection meanwhile.
    ///
    /// Nobody is woken by what happens after: an idle connection must not keep the task of its last call in memory, and
    /// one that is about to send would otherwise wake its own task.
    pub(crate) fn is_usable(&mut self) -> bool {
        drive(&mut self.driver, &mut Context::from_waker(Waker::noop()));
        self.driver.is_some() && self.sender.is_ready()
    }

    /// How long it may be idle, if `most` is allowed.
    pub(crate) fn idle_time(&self, most: Duration) -> Duration {
        match self.keep {
            Some(keep) => most.min(keep.saturating_sub(KEEP_ALIVE_MARGIN).max(keep / 2)),
            None => most,
        }
    }
}

/// A request that a connection was given.
pub(crate) type Sending = Pin<Box<dyn Future<Output = Result<Response<Incoming>, TrySendError<Request>>> + Send>>;

type Driver = Option<Connection<TokioIo<Stream>, Full<Bytes>>>;

/// Lets the connection read and write what it can. Its errors reach whoever waits for a response or a body.
fn drive(driver: &mut Driver, cx: &mut Context<'_>) {
    let ended = match driver {
        Some(running) => Pin::new(running).poll(cx).is_ready(),
        None => false,
    };
    if ended {
        *driver = None;
    }
}

/// The time in a value like `timeout=5, max=100`.
fn keep_alive(value: &str) -> Option<Duration> {
    let seconds = value.split(',').find_map(|part| {
        let (name, seconds) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("timeout").then(|| seconds.trim().parse().ok()).flatten()
    })?;
    Some(Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keep_alive_time_is_read() {
        let check = |value, seconds: Option<u64>| {
            assert_eq!(keep_alive(value), seconds.map(Duration::from_secs));
        };
        check("timeout=5", Some(5));
        check("max=3, Timeout = 7", Some(7));
        check("max=3", None);
        check("timeout=x", None);
    }
}
