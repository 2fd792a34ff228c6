//! Serves HTTP on one connection, over any stream and with any handler.

use super::client_connection::{ClientConnection, WatchedSocket};
use super::{FrontAnswer, MAX_HEAD};
use crate::places::unknown_caller;
use http::{Request, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use signalbox_engine::{Fault, FaultKind, Limit};
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use tokio::io::{AsyncRead, AsyncWrite};

/// Serves requests until the connection ends or is cut. When the front stops, it ends after the current answer.
pub async fn serve_http<S, H, F>(socket: S, connection: &Arc<ClientConnection>, handle: H)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    H: Fn(Arc<ClientConnection>, Request<Incoming>) -> F,
    F: Future<Output = Result<FrontAnswer, Infallible>>,
{
    let service = hyper::service::service_fn(|request| handle(Arc::clone(connection), request));
    let mut builder = http1::Builder::new();
    // The connection has a time limit as a whole, which costs nothing per request.
    builder.header_read_timeout(None).max_buf_size(MAX_HEAD);
    let socket = WatchedSocket { socket, connection: Arc::clone(connection) };
    let serving = builder.serve_connection(TokioIo::new(socket), service).with_upgrades();
    let mut serving = std::pin::pin!(serving);
    let mut stopping = false;
    let ended = poll_fn(|cx| {
        connection.register_waker(cx.waker());
        if connection.is_cut() {
            return Poll::Ready(Ok(()));
        }
        if !stopping && (connection.is_stopped() || connection.is_evicted()) {
            stopping = true;
            serving.as_mut().graceful_shutdown();
        }
        serving.as_mut().poll(cx)
    })
    .await;
    if let Err(error) = ended {
        if error.is_parse_too_large() {
            connection.front.gateway.counters.refused(Limit::HeadSize);
        }
        if error.is_parse() || error.is_parse_too_large() {
            let (status, text) = match error.is_parse_too_large() {
                true => (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the head of the request is too large"),
                false => (StatusCode::BAD_REQUEST, "the head of the request is not HTTP/1.1"),
            };
            // Nothing in it proves its sender, whoever sent the requests before.
            let caller = unknown_caller(connection.address, connection.front.spec.transport);
            let fault = Fault::new(FaultKind::InvalidRequest, text);
            connection.front.gateway.refused(&caller, Some(status.as_u16()), &fault, None);
        }
        tracing::trace!(%error, "connection ended");
    }
}
