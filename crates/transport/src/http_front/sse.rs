//! HTTP+SSE of 2024-11-05: a GET opens a session and carries all messages of the server, each POST carries one message
//! of the client. The session lives as long as its stream and otherwise behaves like a pipe.

use super::accepts::Accepts;
use super::answer::{self, refusal, sentence};
use super::client_connection::ClientConnection;
use super::post::{is_json, read_message, unreadable_body};
use super::service::not_allowed;
use super::sse_body::SseBody;
use super::{FrontAnswer, whole};
use crate::batch;
use crate::large_proof;
use crate::read_body::read_body;
use crate::unknown_caller;
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use signalbox_engine::front::Mode;
use signalbox_engine::{Carrier, Fault, FaultKind, Limit};
use signalbox_runtime::counters::Counters;
use signalbox_runtime::session::ReceiveError;
use signalbox_runtime::{Gateway, Session};
use signalbox_wire::batch::is_array;
use signalbox_wire::{Envelope, Era, Revision};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Path where a client opens its stream.
pub const STREAM_PATH: &str = "/sse";
/// Path that the client posts to.
pub const POST_PATH: &str = "/messages";
/// Query parameter with the session id.
const SESSION_ID: &str = "sessionId";

/// Error text for a client that does not read.
const BEHIND: &str = "the client does not read its event stream: too many messages already wait in it";
/// Maximum time that a request waits for its client to read earlier messages.
const BEHIND_WAIT: Duration = Duration::from_secs(5);
/// Interval at which that is checked.
const LOOK: Duration = Duration::from_millis(20);

/// Opens a session and its stream.
pub fn open<B>(connection: &Arc<ClientConnection>, request: &Request<B>) -> FrontAnswer {
    let front = &connection.front;
    if request.method() != Method::GET {
        return not_allowed(HeaderValue::from_static("GET"));
    }
    if !Accepts::read(request.headers()).sse {
        let text = "a GET here needs `Accept: text/event-stream`";
        return sentence(StatusCode::NOT_ACCEPTABLE, FaultKind::InvalidRequest, text);
    }
    let opened = Gateway::new_session_id()
        .and_then(|id| front.gateway.open_session(connection.caller_by("sse"), Mode::Pipe, &id, "sse"));
    let session = match opened {
        Ok(session) => session,
        Err(fault) => return refusal(StatusCode::SERVICE_UNAVAILABLE, None, Era::Legacy, &fault),
    };
    let Some(reader) = session.open_general() else {
        session.close();
        let fault = Fault::new(FaultKind::Overloaded, "the session has no room for a stream");
        return refusal(StatusCode::SERVICE_UNAVAILABLE, None, Era::Legacy, &fault);
    };
    let post_to = format!("{POST_PATH}?{SESSION_ID}={}", session.external);
    answer::events(connection, SseBody::whole_session(session, reader, &post_to))
}

/// Accepts one message. All replies go to the session's stream.
pub async fn post(connection: &Arc<ClientConnection>, request: Request<Incoming>) -> FrontAnswer {
    let front = &connection.front;
    let (head, body) = request.into_parts();
    if head.method != Method::POST {
        return not_allowed(HeaderValue::from_static("POST"));
    }
    if !is_json(&head.headers) {
        let text = "the body must be `Content-Type: application/json`";
        return sentence(StatusCode::UNSUPPORTED_MEDIA_TYPE, FaultKind::InvalidRequest, text);
    }
    let session = match session_of(connection, head.uri.query()) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    let most = front.gateway.settings().limits.message;
    let limit = unknown_caller::limit(&front.gateway, || connection.caller(), most, false);
    let bytes = match read_body(body, limit, front.spec.body_timeout, || Some(Arc::clone(session.share()))).await {
        Ok(bytes) => bytes,
        Err(error) => {
            let error = unknown_caller::explain(&front.gateway, || connection.caller(), error, most);
            return unreadable_body(front, error);
        }
    };
    if let Some(room) = front.gateway.room(bytes.len()) {
        room.await;
    }
    if is_array(&bytes) {
        return take_batch(connection, &session, &bytes);
    }
    match read_message(front, bytes) {
        Ok(message) => take(connection, &session, message).await,
        Err(answer) => *answer,
    }
}

/// Passes a message to the session. While the client does not read, requests that would be answered are refused.
async fn take(connection: &ClientConnection, session: &Arc<Session>, message: Envelope) -> FrontAnswer {
    let front = &connection.front;
    let distinct = session.distinct_caller(|| connection.caller());
    let carrier = Carrier { connection_caller: distinct.as_ref(), ..Carrier::default() };
    let proof = large_proof::prove(&front.gateway, distinct.as_ref().unwrap_or(&session.caller), &message).await;
    let deadline = Instant::now() + BEHIND_WAIT;
    loop {
        match session.receive_on_general(&message, proof.carried(carrier)) {
            Ok(()) => return accepted(),
            Err(ReceiveError::Gone) => return unknown_session(),
            Err(ReceiveError::Behind) if Instant::now() < deadline => tokio::time::sleep(LOOK).await,
            Err(ReceiveError::Behind) => {
                front.gateway.counters.refused(Limit::Behind);
                let fault = Fault::new(FaultKind::Overloaded, BEHIND);
                return refusal(StatusCode::TOO_MANY_REQUESTS, message.id().as_ref(), Era::Legacy, &fault);
            }
        }
    }
}

/// Passes a batch to a session whose revision allows one (2025-03-26).
fn take_batch(connection: &ClientConnection, session: &Arc<Session>, bytes: &Bytes) -> FrontAnswer {
    let front = &connection.front;
    let refuse = |status, fault: &Fault| refusal(status, None, Era::Legacy, fault);
    let taken = match batch::read_with_caller(&front.gateway, session, Revision::batches, || connection.caller(), bytes)
    {
        Ok(batch) => session.receive_batch_on_general(batch),
        Err(fault) => {
            Counters::add(&front.gateway.counters.malformed);
            return refuse(StatusCode::BAD_REQUEST, &fault);
        }
    };
    match taken {
        Ok(()) => accepted(),
        Err(ReceiveError::Gone) => unknown_session(),
        Err(ReceiveError::Behind) => {
            front.gateway.counters.refused(Limit::Behind);
            refuse(StatusCode::TOO_MANY_REQUESTS, &Fault::new(FaultKind::Overloaded, BEHIND))
        }
    }
}

fn accepted() -> FrontAnswer {
    let mut answer = Response::new(whole("Accepted"));
    *answer.status_mut() = StatusCode::ACCEPTED;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    answer
}

/// Returns the session that the query names.
fn session_of(connection: &ClientConnection, query: Option<&str>) -> Result<Arc<Session>, Box<FrontAnswer>> {
    let pairs = query.unwrap_or_default().split('&');
    let mut ids = pairs.filter_map(|pair| pair.split_once('=')).filter(|(name, _)| *name == SESSION_ID);
    let (Some((_, id)), None) = (ids.next(), ids.next()) else {
        let text = "one `sessionId` is required in the query, as the `endpoint` event gave it";
        return Err(Box::new(sentence(StatusCode::BAD_REQUEST, FaultKind::SessionClosed, text)));
    };
    match connection.front.gateway.sessions.get(id) {
        // A session of another caller, or one without a stream of this kind, is reported as unknown.
        Some(session) if session.principal == *connection.caller().principal() && session.mode() == Mode::Pipe => {
            Ok(session)
        }
        _ => Err(Box::new(unknown_session())),
    }
}

fn unknown_session() -> FrontAnswer {
    let text = "there is no such session: it ended with its event stream";
    sentence(StatusCode::NOT_FOUND, FaultKind::SessionClosed, text)
}
