//! Converts what a session sends on a stream into an HTTP response.

use super::accepts::Accepts;
use super::client_connection::{BusyConnection, ClientConnection};
use super::routed::FrontBody;
use super::sse_body::{Resumable, SseBody};
use super::{FrontAnswer, whole};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use signalbox_engine::front::ToClient;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{OutgoingMessage, StreamReader};
use signalbox_wire::{Envelope, Era, Kind, RawId};
use std::sync::Arc;
use std::task::{Context, Poll};

pub static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// Value of `Retry-After`, in seconds, for refusals due to overload.
const SOON: HeaderValue = HeaderValue::from_static("1");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Waits for the first message and picks the format: one JSON body if the answer comes first and the client accepts
/// JSON, otherwise a stream of events that is `resumable` or not. The allocation of the request's `headers` is reused.
pub async fn of_stream(
    connection: &Arc<ClientConnection>,
    reader: StreamReader,
    accepts: Accepts,
    resumable: impl Fn() -> Option<Resumable>,
    mut headers: HeaderMap,
) -> FrontAnswer {
    headers.clear();
    if accepts.rather_sse
        && let Some(resumable) = resumable()
    {
        return events(connection, SseBody::new(reader, [], Some(resumable)));
    }
    let first = if accepts.sse {
        // A fast answer is awaited, so that plain calls need no stream. A slow one becomes a stream with signs of life.
        match connection.wait_briefly(|cx| reader.outbox().poll_next(cx)).await {
            Some(first) => first,
            None => return events(connection, SseBody::new(reader, [], resumable())),
        }
    } else {
        last_of(&reader).await
    };
    match first {
        Some(out) if out.last && ((accepts.json && !accepts.rather_sse) || out.status != 200) => json(out, headers),
        Some(out) => events(connection, SseBody::new(reader, [out], resumable())),
        None if accepts.sse => events(connection, SseBody::new(reader, [], None)),
        None => plain(StatusCode::ACCEPTED),
    }
}

/// Returns the answer alone, for a client that accepts only JSON.
async fn last_of(reader: &StreamReader) -> Option<OutgoingMessage> {
    while let Some(out) = reader.next().await {
        if out.last {
            return Some(out);
        }
        reader.count_dropped("json_only");
    }
    None
}

/// Like [`of_stream`] for the answers to a batch: one JSON array if only answers arrive and the client accepts JSON.
pub async fn of_batch(
    connection: &Arc<ClientConnection>,
    reader: StreamReader,
    accepts: Accepts,
    resumable: impl Fn() -> Option<Resumable>,
    mut headers: HeaderMap,
) -> FrontAnswer {
    headers.clear();
    if accepts.rather_sse || !accepts.json {
        return events(connection, SseBody::new(reader, [], resumable()));
    }
    let mut messages = Vec::new();
    let whole = if accepts.sse {
        connection.wait_briefly(|cx| answers(&reader, &mut messages, cx)).await.unwrap_or(false)
    } else {
        // A client that accepts only JSON gets the answers alone.
        while let Some(out) = reader.next().await {
            let last = out.last;
            messages.extend(Some(out).filter(is_answer));
            if last {
                break;
            }
        }
        true
    };
    if !whole {
        return events(connection, SseBody::new(reader, messages, resumable()));
    }
    if messages.is_empty() {
        return plain(StatusCode::ACCEPTED);
    }
    json(OutgoingMessage::joined(messages), headers)
}

/// Collects messages until the last answer or the first other message, which is included. Yields `true` if only answers
/// arrived.
fn answers(reader: &StreamReader, messages: &mut Vec<OutgoingMessage>, cx: &mut Context<'_>) -> Poll<bool> {
    loop {
        match reader.outbox().poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(true),
            Poll::Ready(Some(out)) => {
                let (last, answer) = (out.last, is_answer(&out));
                messages.push(out);
                if last || !answer {
                    return Poll::Ready(last);
                }
            }
        }
    }
}

fn is_answer(out: &OutgoingMessage) -> bool {
    let message = Envelope::parse(out.bytes().clone());
    message.is_ok_and(|message| matches!(message.kind(), Kind::Response | Kind::Error))
}

/// Builds a JSON response. hyper reuses the allocation of `headers` for the next request.
fn json(out: OutgoingMessage, headers: HeaderMap) -> FrontAnswer {
    let status = StatusCode::from_u16(out.status).unwrap_or(StatusCode::OK);
    let mut answer = Response::new(whole(out.into_bytes()));
    *answer.headers_mut() = headers;
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

/// Builds an event stream response.
pub fn events(connection: &Arc<ClientConnection>, body: SseBody) -> FrontAnswer {
    let mut answer = Response::new(FrontBody::Events(Box::new((body, BusyConnection::new(connection)))));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// Builds a response without a body.
pub fn plain(status: StatusCode) -> FrontAnswer {
    let mut answer = Response::new(whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// Response extension that carries a refusal until it is recorded.
#[derive(Clone, Debug)]
pub struct RefusalRecord {
    /// Reason for the refusal.
    pub fault: Fault,
    /// JSON-RPC error sent to the client.
    pub reply: Bytes,
}

/// Builds a response with a JSON-RPC error.
pub fn refusal(status: StatusCode, id: Option<&RawId>, era: Era, fault: &Fault) -> FrontAnswer {
    let message = ToClient::refusal(id, era, fault, status.as_u16());
    let refused = RefusalRecord { fault: fault.clone(), reply: message.bytes().clone() };
    let mut answer = json(OutgoingMessage::new(message), HeaderMap::new());
    answer.extensions_mut().insert(refused);
    if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        answer.headers_mut().insert(RETRY_AFTER, SOON);
    }
    answer
}

/// Builds a response with a JSON-RPC error that belongs to no request.
pub fn sentence(status: StatusCode, kind: FaultKind, text: &str) -> FrontAnswer {
    refusal(status, None, Era::Legacy, &Fault::new(kind, text))
}
