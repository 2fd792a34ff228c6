//! Passes requests that are not MCP to the router, and its answers to the client.

use super::client_connection::{BusyConnection, ClientConnection};
use super::place::displaced_fault;
use super::protobuf_post::ProtobufBody;
use super::sse_body::SseBody;
use super::{FrontAnswer, whole};
use crate::router::{AnswerBody, Broken, Listener, RouteFault, StreamBody};
use bytes::Bytes;
use http::{Method, Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Answers a request that arrived at this listener.
pub async fn answer(connection: &Arc<ClientConnection>, listener: Listener, request: Request<Incoming>) -> FrontAnswer {
    let front = &connection.front;
    let only_head = request.method() == Method::HEAD;
    let answered = front.router.answer(listener, request, connection.caller(), front.spec.body_timeout).await;
    if let Err(RouteFault::Body(error)) = &answered
        && let Some(limit) = error.limit()
    {
        front.gateway.counters.refused(limit);
    }
    let routed = answered.unwrap_or_else(|problem| problem.answer());
    let body = match routed.content {
        // The head already announces the length.
        AnswerBody::Whole(bytes) => whole(bytes),
        AnswerBody::Stream(_) if only_head => whole(Bytes::new()),
        AnswerBody::Stream(stream) => {
            FrontBody::Routed(Box::new(RoutedStream { stream, held: BusyConnection::new(connection) }))
        }
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = routed.status;
    *answer.headers_mut() = routed.headers;
    answer
}

/// A streamed body, on a connection that is busy with it.
pub struct RoutedStream {
    stream: StreamBody,
    held: BusyConnection,
}

impl RoutedStream {
    /// Polls the next bytes. An endless stream ends when the front stops or the connection loses its place; both wake
    /// the connection.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if self.held.is_displaced() && !self.stream.endless {
            return Poll::Ready(Some(Err(Broken(displaced_fault().message))));
        }
        if self.stream.endless && (self.held.is_stopped() || self.held.is_displaced()) {
            return Poll::Ready(None);
        }
        self.stream.poll_chunk(cx)
    }
}

/// Body of a response: complete, or a stream.
pub enum FrontBody {
    /// A complete body; `None` if it is empty or was written.
    Whole(Option<Bytes>),
    /// Events until the stream ends.
    Events(Box<(SseBody, BusyConnection)>),
    /// Protobuf messages until the stream ends.
    Protobuf(Box<(ProtobufBody, BusyConnection)>),
    /// A stream of the router.
    Routed(Box<RoutedStream>),
}

impl FrontBody {
    /// Creates a complete body.
    pub fn whole(bytes: Bytes) -> Self {
        Self::Whole(if bytes.is_empty() { None } else { Some(bytes) })
    }
}

impl Body for FrontBody {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => {
                let (body, held) = &mut **events;
                if held.is_displaced() && !body.end_early(&displaced_fault()) {
                    return Poll::Ready(None);
                }
                body.poll_chunk(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Protobuf(stream) => {
                let (body, held) = &mut **stream;
                if held.is_displaced() && !body.end_early(&displaced_fault()) {
                    return Poll::Ready(None);
                }
                body.poll_chunk(cx).map(|chunk| chunk.map(|bytes| Ok(Frame::data(bytes))))
            }
            Self::Routed(stream) => stream.poll_chunk(cx).map(|chunk| chunk.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_none(),
            Self::Events(_) | Self::Protobuf(_) | Self::Routed(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Events(_) | Self::Protobuf(_) | Self::Routed(_) => SizeHint::default(),
        }
    }
}
