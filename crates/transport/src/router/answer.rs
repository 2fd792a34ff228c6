//! The answer of a handler: a status, headers, and a complete or streamed body.

use super::recorded::PendingRecords;
use crate::http_front::KEEP_ALIVE;
use bytes::{Bytes, BytesMut};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use signalbox_engine::audit::IntentWrite;
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
/// Approximate maximum size of events written at once.
const CHUNK: usize = 64 * 1024;

/// Answer of a route.
#[derive(Debug)]
pub struct RoutedAnswer {
    pub status: StatusCode,
    /// Headers of the answer, including `Content-Type`.
    pub headers: HeaderMap,
    /// Body, complete or streamed.
    pub content: AnswerBody,
    /// Audit records that the answer waits for.
    pub records: PendingRecords,
}

/// Body of an answer.
#[derive(Debug)]
pub enum AnswerBody {
    Whole(Bytes),
    Stream(StreamBody),
}

impl RoutedAnswer {
    /// Creates an answer with a complete body of this type.
    pub fn whole(status: StatusCode, kind: &'static str, content: impl Into<Bytes>) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        Self { status, headers, content: AnswerBody::Whole(content.into()), records: PendingRecords::default() }
    }

    /// Creates an answer with a complete JSON body.
    pub fn json(status: StatusCode, text: impl Into<Bytes>) -> Self {
        Self::whole(status, JSON, text)
    }

    /// Creates an answer whose stream ends by itself. A stopping gateway waits for it for a moment.
    pub fn stream(kind: &'static str, chunks: impl Chunks + 'static) -> Self {
        Self::streamed(kind, StreamBody { chunks: Box::new(chunks), endless: false })
    }

    /// Creates an answer whose stream continues until the client leaves or the gateway stops.
    pub fn live(kind: &'static str, chunks: impl Chunks + 'static) -> Self {
        let mut answer = Self::streamed(kind, StreamBody { chunks: Box::new(chunks), endless: true });
        answer.headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
        answer.headers.insert(BUFFERING, HeaderValue::from_static("no"));
        answer
    }

    /// Creates an answer with server-sent events that continue until the client leaves or the gateway stops. An idle
    /// stream sends comments.
    pub fn events(events: impl Events + 'static) -> Self {
        Self::live(EVENTS, EventEncoder { events, ended: false, keep_alive: Box::pin(tokio::time::sleep(KEEP_ALIVE)) })
    }

    /// Lets the answer wait until this audit record is written.
    #[must_use]
    pub fn once_recorded(mut self, write: Option<IntentWrite>) -> Self {
        self.records.add(write);
        self
    }

    fn streamed(kind: &'static str, stream: StreamBody) -> Self {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        Self {
            status: StatusCode::OK,
            headers,
            content: AnswerBody::Stream(stream),
            records: PendingRecords::default(),
        }
    }
}

/// The rest of a body cannot be produced. The connection is closed, so that the client does not take the part for the
/// whole.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Broken(pub String);

/// Source of a streamed body. It is dropped when the client has left.
pub trait Chunks: Send {
    /// Polls the next bytes; `None` at the end.
    fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>>;
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct AnswerEvent {
    pub id: Option<String>,
    pub name: Option<String>,
    pub data: Bytes,
}

/// Source of server-sent events. It is dropped when the client has left.
pub trait Events: Send {
    /// Polls the next event; `None` at the end.
    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<AnswerEvent>>;
}

/// A streamed body, polled chunk by chunk.
pub struct StreamBody {
    chunks: Box<dyn Chunks>,
    /// Set if the stream ends only when the gateway stops or the client leaves.
    pub endless: bool,
}

impl StreamBody {
    /// Polls the next bytes. A panic in the source ends this stream only.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        catch_unwind(AssertUnwindSafe(|| self.chunks.poll_chunk(cx))).unwrap_or_else(|_| {
            tracing::error!("a panic while the body of an answer was produced");
            Poll::Ready(Some(Err(Broken("a fault in the gateway".to_owned()))))
        })
    }
}

impl fmt::Debug for StreamBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Streamed").field("endless", &self.endless).finish_non_exhaustive()
    }
}

/// Encodes events as bytes.
struct EventEncoder<E> {
    events: E,
    ended: bool,
    /// Timer for the next keep-alive comment.
    keep_alive: Pin<Box<Sleep>>,
}

impl<E: Events> Chunks for EventEncoder<E> {
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
            ready!(self.keep_alive.as_mut().poll(cx));
            text.extend_from_slice(b": nothing new\n\n");
        }
        self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
        Poll::Ready(Some(Ok(text.freeze())))
    }
}
