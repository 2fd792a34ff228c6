//! From what a session sends on a stream to an HTTP answer.

use super::accepts::Accepts;
use super::body::FrontBody;
use super::sse_body::{Resumable, SseBody};
use super::{Answer, COMMIT_AFTER, whole};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response, StatusCode};
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{Out, StreamReader};
use signalbox_wire::{Era, RawId};

/// `Mcp-Session-Id`.
pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");

/// Waits for the first message and answers in the form that fits: one JSON body where the answer comes first and the
/// client takes JSON, a stream of events otherwise.
pub async fn of_stream(reader: StreamReader, accepts: Accepts, resumable: Option<Resumable>) -> Answer {
    if accepts.rather_sse && resumable.is_some() {
        return events(SseBody::new(reader, None, resumable));
    }
    let first = if accepts.sse {
        // The fast answer is waited for, so that plain calls need no stream; a slow one gets signs of life.
        match tokio::time::timeout(COMMIT_AFTER, reader.next()).await {
            Ok(first) => first,
            Err(_) => return events(SseBody::new(reader, None, resumable)),
        }
    } else {
        last_of(&reader).await
    };
    match first {
        Some(out) if out.last && accepts.json && !accepts.rather_sse => json(out),
        Some(out) if out.last && out.status != 200 => json(out),
        Some(out) => events(SseBody::new(reader, Some(out), resumable)),
        None if accepts.sse => events(SseBody::new(reader, None, None)),
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

fn json(out: Out) -> Answer {
    let mut answer = Response::new(whole(out.bytes));
    *answer.status_mut() = StatusCode::from_u16(out.status).unwrap_or(StatusCode::OK);
    answer.headers_mut().insert(CONTENT_TYPE, JSON);
    answer
}

/// A stream of events.
pub fn events(body: SseBody) -> Answer {
    let mut answer = Response::new(FrontBody::Events(Box::new(body)));
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
    json(Out { bytes: fault.reply(id, era), last: true, status: status.as_u16(), part: false })
}

/// A status with a sentence, as a JSON-RPC error that belongs to no request.
pub fn sentence(status: StatusCode, kind: FaultKind, text: &str) -> Answer {
    refusal(status, None, Era::Legacy, &Fault::new(kind, text))
}
