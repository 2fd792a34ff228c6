//! What is not MCP: a request goes to the router, and what that gives back goes to the client.

use super::body::FrontBody;
use super::client_connection::{ClientConnection, Held};
use super::{Answer, whole};
use crate::router::{Broken, Content, Door, Problem, Streamed};
use bytes::Bytes;
use http::{Method, Request, Response};
use hyper::body::Incoming;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Answers a request that came in by this door.
pub async fn answer(connection: &Arc<ClientConnection>, door: Door, request: Request<Incoming>) -> Answer {
    let front = &connection.front;
    let only_head = request.method() == Method::HEAD;
    let answered = front.router.answer(door, request, connection.caller(), front.spec.body_timeout).await;
    if let Err(Problem::Body(error)) = &answered
        && let Some(limit) = error.limit()
    {
        front.gateway.counters.refused(limit);
    }
    let routed = answered.unwrap_or_else(|problem| problem.answer());
    let body = match routed.content {
        // Its length is told with the head.
        Content::Whole(bytes) => whole(bytes),
        Content::Stream(_) if only_head => whole(Bytes::new()),
        Content::Stream(stream) => FrontBody::Routed(Box::new(Stream { stream, held: Held::new(connection) })),
    };
    let mut answer = Response::new(body);
    *answer.status_mut() = routed.status;
    *answer.headers_mut() = routed.headers;
    answer
}

/// A body that comes bit by bit, on a connection that is busy with it.
pub struct Stream {
    stream: Streamed,
    held: Held,
}

impl Stream {
    /// The next bytes. What would go on for ever ends when the front stops, which wakes its connections.
    pub fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        if self.stream.endless && self.held.is_stopped() {
            return Poll::Ready(None);
        }
        self.stream.poll_chunk(cx)
    }
}
