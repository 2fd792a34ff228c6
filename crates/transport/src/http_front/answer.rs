//! From what a session sends on a stream to an HTTP answer.

use super::accepts::Accepts;
use super::body::FrontBody;
use super::line::{Held, Line};
use super::sse_body::{Resumable, SseBody};
use super::{Answer, whole};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{Out, StreamReader};
use signalbox_wire::{Era, RawId};
use std::sync::Arc;

/// `Mcp-Session-Id`.
pub static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
/// `MCP-Protocol-Version`.
pub static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Waits for the first message and answers in the form that fits: one JSON body where the answer comes first and the
/// client takes JSON, a stream of events otherwise, which is `resumable` or not. `headers` are those of the request, whose
/// room is used again.
pub async fn of_stream(
    line: &Arc<Line>,
    reader: StreamReader,
    accepts: Accepts,
    resumable: impl Fn() -> Option<Resumable>,
    mut headers: HeaderMap,
) -> Answer {
    headers.clear();
    if accepts.rather_sse
        && let Some(resumable) = resumable()
    {
        return events(line, SseBody::new(reader, None, Some(resumable)));
    }
    let first = if accepts.sse {
        // The fast answer is waited for, so that plain calls need no stream; a slow one gets signs of life.
        match line.soon(|cx| reader.outbox().poll_next(cx)).await {
            Some(first) => first,
            None => return events(line, SseBody::new(reader, None, resumable())),
        }
    } else {
        last_of(&reader).await
    };
    match first {
        Some(out) if out.last && ((accepts.json && !accepts.rather_sse) || out.status != 200) => json(out, headers),
        Some(out) => events(line, SseBody::new(reader, Some(out), resumable())),
        None if accepts.sse => events(line, SseBody::new(reader, None, None)),
        None => plain(StatusCode::ACCEPTED),
    }
}

/// A client that takes only JSON gets the answer alone.
async fn last_of(reader: &StreamReader) -> Option<Out> {
    while let Some(out) = reader.next().await {
        if out.last {
            return Some(out);
        }
    }
    None
}

/// hyper reads the next request into the room of these headers.
fn json(out: Out, headers: HeaderMap) -> Answer {
    let mut answer = Response::new(whole(out.bytes));
    *answer.headers_mut() = headers;
    *answer.status_mut() = StatusCode::from_u16(out.status).unwrap_or(StatusCode::OK);
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

/// A stream of events.
pub fn events(line: &Arc<Line>, body: SseBody) -> Answer {
    let mut answer = Response::new(FrontBody::Events(Box::new((body, Held::new(line)))));
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, EVENTS);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-transform"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    answer
}

/// A status without a body.
pub fn plain(status: StatusCode) -> Answer {
    let mut answer = Response::new(whole(Bytes::new()));
    *answer.status_mut() = status;
    answer
}

/// A status with a JSON-RPC error.
pub fn refusal(status: StatusCode, id: Option<&RawId>, era: Era, fault: &Fault) -> Answer {
    let out = Out { bytes: fault.reply(id, era), last: true, status: status.as_u16(), part: false };
    json(out, HeaderMap::new())
}

/// A status with a sentence, as a JSON-RPC error that belongs to no request.
pub fn sentence(status: StatusCode, kind: FaultKind, text: &str) -> Answer {
    refusal(status, None, Era::Legacy, &Fault::new(kind, text))
}
