//! What both HTTP transports stand on: connections, bodies, and streams of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::call::Out;
use crate::wire_log::Tap;

/// The largest body.
const MAX_BODY: usize = 16 * 1024 * 1024;

/// An answer.
pub type WebAnswer = Response<BoxBody<Bytes, Infallible>>;

/// Serves connections with this function until the future is dropped.
pub async fn serve<F>(listener: TcpListener, answer: impl Fn(Request<Incoming>) -> F + Clone + Send + Sync + 'static)
where
    F: Future<Output = WebAnswer> + Send + 'static,
{
    // Dropped with this future, and every connection with it.
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        // An answer goes out as several small writes; the wait to join them would only slow tests.
        let _ = stream.set_nodelay(true);
        while connections.try_join_next().is_some() {}
        let answer = answer.clone();
        connections.spawn(async move {
            let serve = service_fn(|request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            // A client that hangs up is no concern of the server.
            let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), serve).await;
        });
    }
}

/// Reads a body as JSON, which is a message or a batch of them.
///
/// # Errors
/// When it is none.
pub async fn json(body: Incoming, tap: &Tap) -> anyhow::Result<Value> {
    let whole = Limited::new(body, MAX_BODY).collect().await.map_err(|error| anyhow::anyhow!(error))?;
    let whole = whole.to_bytes();
    let text = std::str::from_utf8(&whole)?;
    let message = serde_json::from_str(text)?;
    tap.received(text);
    Ok(message)
}

/// An answer of plain text.
pub fn plain(status: u16, text: &'static str) -> WebAnswer {
    whole(status, "text/plain", Bytes::from_static(text.as_bytes()))
}

/// An answer of one message.
pub fn message(status: u16, message: &Value, tap: &Tap) -> WebAnswer {
    let text = message.to_string();
    tap.sent(&text);
    whole(status, "application/json", Bytes::from(text))
}

fn whole(status: u16, kind: &'static str, body: Bytes) -> WebAnswer {
    let mut response = Response::new(Full::new(body).boxed());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// What a stream of events begins with.
#[derive(Debug)]
pub enum First {
    /// Nothing in particular.
    Nothing,
    /// Lines that are no message.
    Lines(String),
    /// A message.
    Message(Value),
}

/// An answer of events, until there are no more.
pub fn events(
    first: First,
    queue: mpsc::Receiver<Out>,
    tap: Tap,
    ended: impl FnOnce() + Send + Sync + 'static,
) -> WebAnswer {
    let body = Events { first, queue, tap, ended: Some(Box::new(ended)) };
    let mut response = Response::new(BoxBody::new(body));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

/// A header as text.
pub fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Whether a header names all of these.
pub fn names(headers: &HeaderMap, name: &str, all: &[&str]) -> bool {
    let value = header(headers, name).unwrap_or_default();
    all.iter().all(|one| value.contains(one))
}

/// A stream of events as a body.
struct Events {
    first: First,
    queue: mpsc::Receiver<Out>,
    tap: Tap,
    ended: Option<Box<dyn FnOnce() + Send + Sync>>,
}

impl Events {
    /// A message as an event.
    fn event(&self, message: &Value) -> String {
        let text = message.to_string();
        self.tap.sent(&text);
        format!("event: message\ndata: {text}\n\n")
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let frame = |text: String| Poll::Ready(Some(Ok(Frame::data(Bytes::from(text)))));
        match std::mem::replace(&mut self.first, First::Nothing) {
            First::Nothing => {}
            First::Lines(lines) => return frame(lines),
            First::Message(message) => return frame(self.event(&message)),
        }
        match self.queue.poll_recv(context) {
            Poll::Ready(Some(out)) => frame(self.event(&out.message)),
            Poll::Ready(None) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        if let Some(ended) = self.ended.take() {
            ended();
        }
    }
}
