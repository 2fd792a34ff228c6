//! Which part of the front a request is for.

use super::answer::{PROTOCOL_VERSION, Refused, SESSION_ID, plain, refusal, sentence};
use super::client_connection::ClientConnection;
use super::routed::{self, FrontBody};
use super::sse_body::Resumable;
use super::{FrontAnswer, FrontShared, cors, get, post, sse, upgrade};
use crate::router::Door;
use http::header::ALLOW;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use signalbox_engine::FaultKind;
use signalbox_engine::front::Mode;
use signalbox_runtime::Session;
use signalbox_wire::{Era, HeaderValues, Revision};
use std::convert::Infallible;
use std::sync::Arc;

/// Answers one request.
pub async fn handle(connection: Arc<ClientConnection>, request: Request<Incoming>) -> Result<FrontAnswer, Infallible> {
    connection.begin();
    let origin = cors::origin(request.headers());
    let mut answer = answer(&connection, request, origin.is_some()).await;
    if let Some(origin) = origin.filter(|_| answer.status() != StatusCode::FORBIDDEN) {
        cors::admit(&mut answer, origin);
    }
    if answer.status().is_client_error() || answer.status().is_server_error() {
        tell_refusal(&connection, &mut answer);
    }
    note(&connection, &answer);
    Ok(answer)
}

/// Answers one request on the control socket, whose file only its owner can open: no page gets there, whatever it calls the
/// host.
pub async fn handle_control(
    connection: Arc<ClientConnection>,
    request: Request<Incoming>,
) -> Result<FrontAnswer, Infallible> {
    connection.begin();
    let answer = match connection.authenticate(request.headers()) {
        Ok(()) => routed::answer(&connection, Door::Control, request).await,
        Err(fault) => refusal(StatusCode::UNAUTHORIZED, None, Era::Legacy, &fault),
    };
    note(&connection, &answer);
    Ok(answer)
}

/// Notes that the connection is no longer busy, where the answer is there as a whole.
fn note(connection: &ClientConnection, answer: &FrontAnswer) {
    match answer.body() {
        // The connection goes on as something else, which looks after itself.
        FrontBody::Whole(_) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {}
        FrontBody::Whole(_) => connection.end(),
        // The body itself tells when it has ended.
        FrontBody::Events(_) | FrontBody::Protobuf(_) | FrontBody::Routed(_) => {}
    }
}

async fn answer(connection: &Arc<ClientConnection>, request: Request<Incoming>, has_origin: bool) -> FrontAnswer {
    let front = &connection.front;
    if !front.spec.admission.admits(request.headers(), has_origin) {
        let text = "this Host or Origin is not allowed; see `allowed_hosts` and `allowed_origins`";
        return sentence(StatusCode::FORBIDDEN, FaultKind::InvalidRequest, text);
    }
    // A browser asks without credentials.
    if let Some(answer) = cors::preflight(&request) {
        return answer;
    }
    if let Err(fault) = connection.authenticate(request.headers()) {
        return refusal(StatusCode::UNAUTHORIZED, None, Era::Legacy, &fault);
    }
    if request.uri().path() == front.spec.path {
        return match *request.method() {
            // Boxed, since every future around it would be built and moved with the room for it.
            Method::POST => Box::pin(post::handle(connection, request)).await,
            Method::GET if upgrade::is_asked_for(request.headers()) => upgrade::handle(connection, request),
            Method::GET => get::handle(connection, request.headers()),
            Method::DELETE => delete(connection, request.headers()),
            _ => not_allowed(METHODS),
        };
    }
    match request.uri().path() {
        sse::STREAM_PATH => sse::open(connection, &request),
        sse::POST_PATH => Box::pin(sse::post(connection, request)).await,
        _ => Box::pin(routed::answer(connection, Door::Listener, request)).await,
    }
}

/// Tells of a request that was refused before it reached a session.
fn tell_refusal(connection: &ClientConnection, answer: &mut FrontAnswer) {
    if let Some(refused) = answer.extensions_mut().remove::<Refused>() {
        let status = Some(answer.status().as_u16());
        connection.front.gateway.refused(&connection.caller(), status, &refused.fault, Some(&refused.reply));
    }
}

/// What the MCP endpoint takes.
pub const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");

/// Another method than those that are allowed here.
pub fn not_allowed(methods: HeaderValue) -> FrontAnswer {
    let mut answer = sentence(StatusCode::METHOD_NOT_ALLOWED, FaultKind::InvalidRequest, "method not allowed");
    answer.headers_mut().insert(ALLOW, methods);
    answer
}

fn delete(connection: &ClientConnection, headers: &HeaderMap) -> FrontAnswer {
    if speaks_modern(headers) {
        return not_allowed(METHODS);
    }
    match session_of(connection, headers) {
        Ok(session) => {
            session.close();
            plain(StatusCode::OK)
        }
        Err(answer) => *answer,
    }
}

/// The session that the headers name.
///
/// # Errors
/// The answer to give instead.
pub fn session_of(connection: &ClientConnection, headers: &HeaderMap) -> Result<Arc<Session>, Box<FrontAnswer>> {
    session_named(connection, headers.get_all(&SESSION_ID).iter().map(HeaderValue::as_bytes).collect())
}

/// The session of this id.
///
/// # Errors
/// The answer to give instead.
pub fn session_named(connection: &ClientConnection, id: HeaderValues<'_>) -> Result<Arc<Session>, Box<FrontAnswer>> {
    let refuse = |status, text: &str| Err(Box::new(sentence(status, FaultKind::SessionClosed, text)));
    let HeaderValues::One(id) = id else {
        return refuse(StatusCode::BAD_REQUEST, "one Mcp-Session-Id header is required");
    };
    let session = std::str::from_utf8(id).ok().and_then(|id| connection.front.gateway.sessions.get(id));
    match session {
        // Another caller's session does not exist for this one.
        Some(session) if session.principal == *connection.caller().principal() && session.mode() == Mode::Session => {
            Ok(session)
        }
        _ => refuse(StatusCode::NOT_FOUND, "there is no such session; it may have expired: initialize again"),
    }
}

/// How the events of a session's streams can be fetched again, where its revision knows that.
pub fn resumable(front: &Arc<FrontShared>, session: &Session) -> Option<Resumable> {
    let revision = session.client().map(|client| client.revision)?;
    (revision >= Revision::V2025_03_26).then(|| Resumable {
        session: session.external.clone(),
        store: Arc::clone(&front.resume),
        prime: revision.priming_event(),
    })
}

/// The revision that the version header names, if that is one.
pub fn spoken(headers: &HeaderMap) -> Option<Revision> {
    headers.get(&PROTOCOL_VERSION).and_then(revision_in)
}

/// The revision that a version header names, if that is one.
pub fn revision_in(value: &HeaderValue) -> Option<Revision> {
    Revision::ALL.into_iter().find(|revision| revision.as_str().as_bytes() == value.as_bytes())
}

/// True where the version header is one of the new era.
pub fn speaks_modern(headers: &HeaderMap) -> bool {
    spoken(headers).is_some_and(|revision| revision.era() == Era::Modern)
}
