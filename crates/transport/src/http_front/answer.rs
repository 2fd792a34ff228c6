//! From what a session sends on a stream to an HTTP answer.

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
use signalbox_runtime::{Out, StreamReader};
use signalbox_wire::{Envelope, Era, Kind, RawId};
use std::sync::Arc;
use std::task::{Context, Poll};

/// `Mcp-Session-Id`.
pub static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `MCP-Protocol-Version`.
pub static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
/// When a client that was refused for want of room may try again, in seconds.
const SOON: HeaderValue = HeaderValue::from_static("1");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Waits for the first message and answers in the form that fits: one JSON body where the answer comes first and the
/// client takes JSON, a stream of events otherwise, which is `resumable` or not. `headers` are those of the request, whose
/// room is used again.
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
        // The fast answer is waited for, so that plain calls need no stream; a slow one gets signs of life.
        match connection.soon(|cx| reader.outbox().poll_next(cx)).await {
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

/// A client that takes only JSON gets the answer alone.
async fn last_of(reader: &StreamReader) -> Option<Out> {
    while let Some(out) = reader.next().await {
        if out.last {
            return Some(out);
        }
        reader.count_dropped("json_only");
    }
    None
}

/// The same for the answers to a batch: one JSON array where nothing else comes before the last of them, and the client
/// takes JSON.
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
    let mut came = Vec::new();
    let whole = if accepts.sse {
        connection.soon(|cx| answers(&reader, &mut came, cx)).await.unwrap_or(false)
    } else {
        // A client that takes only JSON gets the answers alone.
        while let Some(out) = reader.next().await {
            let last = out.last;
            came.extend(Some(out).filter(is_answer));
            if last {
                break;
            }
        }
        true
    };
    if !whole {
        return events(connection, SseBody::new(reader, came, resumable()));
    }
    if came.is_empty() {
        return plain(StatusCode::ACCEPTED);
    }
    json(Out::joined(came), headers)
}

/// Takes answers until the last is there, or something else comes, which is taken too. True where all of them came alone.
fn answers(reader: &StreamReader, came: &mut Vec<Out>, cx: &mut Context<'_>) -> Poll<bool> {
    loop {
        match reader.outbox().poll_next(cx) {
            Poll::Pending => return Poll::Pending,
            Poll::Ready(None) => return Poll::Ready(true),
            Poll::Ready(Some(out)) => {
                let (last, answer) = (out.last, is_answer(&out));
                came.push(out);
                if last || !answer {
                    return Poll::Ready(last);
                }
            }
        }
    }
}

fn is_answer(out: &Out) -> bool {
    let message = Envelope::parse(out.bytes().clone());
    message.is_ok_and(|message| matches!(message.kind(), Kind::Response | Kind::Error))
}

/// hyper reads the next request into the room of these headers.
fn json(out: Out, headers: HeaderMap) -> FrontAnswer {
    let status = StatusCode::from_u16(out.status).unwrap_or(StatusCode::OK);
    let mut answer = Response::new(whole(out.into_bytes()));
    *answer.headers_mut() = headers;
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

/// A stream of events.
pub fn events(connection: &Arc<ClientConnection>, body: SseBody) -> FrontAnswer {
    let mut answer = Response::new(FrontBody::Events(Box::new((body, BusyConnection::new(connection)))));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// A status without a body.
pub fn plain(status: StatusCode) -> FrontAnswer {
    let mut answer = Response::new(whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// Stays with an answer that refuses, until it is told of.
#[derive(Clone, Debug)]
pub struct Refused {
    /// Why.
    pub fault: Fault,
    /// The JSON-RPC error that says so.
    pub reply: Bytes,
}

/// A status with a JSON-RPC error.
pub fn refusal(status: StatusCode, id: Option<&RawId>, era: Era, fault: &Fault) -> FrontAnswer {
    let message = ToClient::refusal(id, era, fault, status.as_u16());
    let refused = Refused { fault: fault.clone(), reply: message.bytes().clone() };
    let mut answer = json(Out::new(message), HeaderMap::new());
    answer.extensions_mut().insert(refused);
    if matches!(status, StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS) {
        answer.headers_mut().insert(RETRY_AFTER, SOON);
    }
    answer
}

/// A status with a sentence, as a JSON-RPC error that belongs to no request.
pub fn sentence(status: StatusCode, kind: FaultKind, text: &str) -> FrontAnswer {
    refusal(status, None, Era::Legacy, &Fault::new(kind, text))
}
