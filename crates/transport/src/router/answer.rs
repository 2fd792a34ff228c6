//! What a handler gives: a status, headers, and a body that is there or comes bit by bit.

use crate::http_front::KEEP_ALIVE;
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use signalbox_wire::sse;
use std::fmt;
use std::future::Future as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::time::{Instant, Sleep};

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// About how many bytes of events are written at a time.
const CHUNK: usize = 64 * 1024;

/// An answer.
#[derive(Debug)]
pub struct RoutedAnswer {
    /// The status.
    pub status: StatusCode,
    /// The headers, with the type of the content.
    pub headers: HeaderMap,
    /// The body.
    pub content: AnswerBody,
}

/// The body of an answer.
#[derive(Debug)]
pub enum AnswerBody {
    /// It is there.
    Whole(Bytes),
    /// It comes bit by bit.
    Stream(Streamed),
}

impl RoutedAnswer {
    /// Content of this type, at once.
    pub fn whole(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        Self { status, headers, content: AnswerBody::Whole(content.into()) }
    }

    /// JSON, at once.
    pub fn json(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self::whole(status, JSON, text)
    }

    /// Content of this type that comes to an end by itself, for which a gateway that stops waits a little.
    pub fn stream(kind: &'static str, chunks: impl Chunks + 'static) -> Self {
        Self::streamed(kind, Streamed { chunks: Box::new(chunks), endless: false })
    }

    /// Content of this type that goes on until the client leaves or the gateway stops.
    pub fn live(kind: &'static str, chunks: impl Chunks + 'static) -> Self {
        let mut answer = Self::streamed(kind, Streamed { chunks: Box::new(chunks), endless: true });
        answer.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        answer.headers.insert(BUFFERING, HeaderValue::from_static("no"));
        answer
    }

    /// Server-sent events that go on until the client leaves or the gateway stops, with a comment when nothing happens for long.
    pub fn events(events: impl Events + 'static) -> Self {
        Self::live(EVENTS, Told { events, ended: false, pulse: Box::pin(tokio::time::sleep(KEEP_ALIVE)) })
    }

    fn streamed(kind: &'static str, stream: Streamed) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        Self { status: StatusCode::OK, headers, content: AnswerBody::Stream(stream) }
    }
}

/// The rest of an answer will not come. The connection is closed, so that nobody takes what came for the whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

/// Bytes that come bit by bit. Dropped when the client has gone.
pub trait Chunks: Send {
    /// The next bytes; none at the end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>>;
}

/// A server-sent event.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AnswerEvent {
    /// Its id.
    pub id: Option<String>,
    /// Its kind.
    pub name: Option<String>,
    /// Its data.
    pub data: Bytes,
}

/// Events that come as they happen. Dropped when the client has gone.
pub trait Events: Send {
    /// The next event; none at the end.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<AnswerEvent>>;
}

/// A body that comes bit by bit.
pub struct Streamed {
    chunks: Box<dyn Chunks>,
    /// True where it ends when the gateway stops.
    pub endless: bool,
}

impl Streamed {
    /// The next bytes. A panic ends the stream, and nothing else.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        catch_unwind(AssertUnwindSafe(|| self.chunks.poll_chunk(cx))).unwrap_or_else(|_| {
            tracing::error!("a panic while the body of an answer was produced");
            Poll::Ready(Some(Err(Broken("a fault in the gateway".to_owned()))))
        })
    }
}

impl fmt::Debug for Streamed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed").field("endless", &self.endless).finish_non_exhaustive()
    }
}

/// Events as bytes.
struct Told<E> {
    events: E,
    ended: bool,
    /// When something is to be said though nothing happens.
    pulse: Pin<Box<Sleep>>,
}

impl<E: Events> Chunks for Told<E> {
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let mut text = BytesMut::new();
        while text.len() < CHUNK && !self.ended {
            match self.events.poll_event(cx) {
                Poll::Ready(Some(AnswerEvent { id, name, data })) => {
                    sse::encode_event(&mut text, id.as_deref(), name.as_deref(), None, &data);
                }
                Poll::Ready(None) => self.ended = true,
                Poll::Pending => break,
            }
        }
        if text.is_empty() {
            if self.ended {
                return Poll::Ready(None);
            }
            ready!(self.pulse.as_mut().poll(cx));
            text.extend_from_slice(b": nothing new\n\n");
        }
        self.pulse.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(Ok(text.freeze())))
    }
}
