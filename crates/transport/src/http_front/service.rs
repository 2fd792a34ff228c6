//! Routes a request to the part of the front that answers it.

use super::answer::{PROTOCOL_VERSION, RefusalRecord, SESSION_ID, plain, refusal, sentence};
use super::client_connection::ClientConnection;
use super::routed::{self, FrontBody};
use super::secondary_endpoint::{self, EntryRequest, SecondaryEndpoint};
use super::sse_body::Resumable;
use super::{FrontAnswer, FrontState, cors, get, place, post, sse, upgrade};
use crate::router::Listener;
use http::header::{ALLOW, HOST, WWW_AUTHENTICATE};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode};
use hyper::body::Incoming;
use signalbox_engine::front::Mode;
use signalbox_engine::resource_address::RequestAddress;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::Session;
use signalbox_wire::{Era, HeaderValues, Revision, json};
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

/// Answers a request on the TCP listener.
pub async fn handle(connection: Arc<ClientConnection>, request: Request<Incoming>) -> Result<FrontAnswer, Infallible> {
    connection.begin();
    let origin = cors::origin(request.headers());
    let address = connection.front.spec.challenge.is_some().then(|| RequestedAddress::of(&request));
    let mut answer = match unless_displaced(&connection, answer(&connection, request, origin.is_some())).await {
        Some(answer) => answer,
        None => place::displaced_answer(),
    };
    if let Some(origin) = origin.filter(|_| answer.status() != StatusCode::FORBIDDEN) {
        cors::admit(&mut answer, origin);
    }
    if matches!(answer.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        challenge(&connection, address.as_ref(), &mut answer);
    }
    if answer.status().is_client_error() || answer.status().is_server_error() {
        record_refusal(&connection, &mut answer);
    }
    mark_idle(&connection, &answer);
    Ok(answer)
}

/// Waits for an answer. Returns `None` if the connection loses its place first.
async fn unless_displaced<T>(connection: &ClientConnection, answering: impl Future<Output = T>) -> Option<T> {
    let mut answering = std::pin::pin!(answering);
    poll_fn(|cx| match answering.as_mut().poll(cx) {
        Poll::Ready(answer) => Poll::Ready(Some(answer)),
        Poll::Pending if connection.is_displaced() => Poll::Ready(None),
        Poll::Pending => Poll::Pending,
    })
    .await
}

/// Answers a request on the control socket. Only its owner can open the file, so no browser page reaches it and `Host`
/// is not checked.
pub async fn handle_control(
    connection: Arc<ClientConnection>,
    request: Request<Incoming>,
) -> Result<FrontAnswer, Infallible> {
    connection.begin();
    let answer = match connection.authenticate(request.headers()) {
        Ok(()) => routed::answer(&connection, Listener::Control, request).await,
        Err(fault) => refusal(StatusCode::UNAUTHORIZED, None, Era::Legacy, &fault),
    };
    mark_idle(&connection, &answer);
    Ok(answer)
}

/// Marks the connection as idle if the answer is complete.
fn mark_idle(connection: &ClientConnection, answer: &FrontAnswer) {
    match answer.body() {
        // The upgraded protocol has its own time limits.
        FrontBody::Whole(_) if answer.status() == StatusCode::SWITCHING_PROTOCOLS => {}
        FrontBody::Whole(_) => connection.end(),
        // These bodies mark the end themselves.
        FrontBody::Events(_) | FrontBody::Protobuf(_) | FrontBody::Routed(_) => {}
    }
}

async fn answer(connection: &Arc<ClientConnection>, request: Request<Incoming>, has_origin: bool) -> FrontAnswer {
    let front = &connection.front;
    let entry = front.spec.entry.as_ref();
    let welcome = |entry: &Arc<dyn SecondaryEndpoint>| entry.welcomes(request.uri().path(), request.headers());
    if !front.spec.admission.admits(request.headers(), has_origin && !entry.is_some_and(welcome)) {
        let text = "this Host or Origin is not allowed; see `allowed_hosts` and `allowed_origins`";
        return sentence(StatusCode::FORBIDDEN, FaultKind::InvalidRequest, text);
    }
    // A browser sends preflight requests without credentials.
    let of_entry = entry.is_some_and(|entry| entry.is_own(request.uri().path()));
    if let Some(answer) = cors::preflight(&request, of_entry) {
        return answer;
    }
    let path = request.uri().path();
    match front.spec.path_secret.as_ref().and_then(|secret| secret.opens(path, request.headers())) {
        Some(true) => return Box::pin(routed::answer(connection, Listener::Tcp, request)).await,
        Some(false) => {
            let fault = Fault::new(FaultKind::Unauthenticated, "this path wants a bearer token of its own");
            return refusal(StatusCode::UNAUTHORIZED, None, Era::Legacy, &fault);
        }
        None => {}
    }
    let identified = identify_caller(connection, &request);
    if connection.is_provisional() && !connection.settle() && !may_wait(front, &request, &identified) {
        return Box::pin(place::refuse(connection, request.into_body())).await;
    }
    if let Err(fault) = &identified
        && path == front.spec.path
        && may_prove_later(&request, fault)
    {
        return upgrade::handle(connection, request, false);
    }
    if let Err(fault) = admit_caller(connection, &request, identified) {
        return refusal(StatusCode::UNAUTHORIZED, None, Era::Legacy, &fault);
    }
    if path == front.spec.path {
        return match *request.method() {
            // Boxed, because every future around it would be built and moved with space for it.
            Method::POST => Box::pin(post::handle(connection, request)).await,
            Method::GET if upgrade::is_asked_for(request.headers()) => {
                let known = !connection.must_still_prove();
                upgrade::handle(connection, request, known)
            }
            Method::GET => get::handle(connection, request.headers()),
            Method::DELETE => delete(connection, request.headers()),
            _ => not_allowed(METHODS),
        };
    }
    if let Some(entry) = entry.filter(|entry| entry.path() == path) {
        let answer = Box::pin(secondary_endpoint::handle(connection, entry, request)).await;
        connection.set_entry_request(None);
        return answer;
    }
    match path {
        sse::STREAM_PATH => sse::open(connection, &request),
        sse::POST_PATH => Box::pin(sse::post(connection, request)).await,
        _ => Box::pin(routed::answer(connection, Listener::Tcp, request)).await,
    }
}

/// Authenticates the sender of a request. A token in the query would end up in logs, so it is refused.
fn identify_caller(connection: &ClientConnection, request: &Request<Incoming>) -> Result<(), Fault> {
    let in_query = |query: &str| query.split('&').any(|pair| pair.split('=').next() == Some("access_token"));
    if request.uri().query().is_some_and(in_query) {
        let fault =
            Fault::new(FaultKind::Unauthenticated, "a token belongs in the Authorization header, not in the query");
        return Err(fault.with_str("error", "invalid_request"));
    }
    connection.authenticate(request.headers())
}

/// Checks that a caller may use this path with the credential that it shows, or without one. Paths of the entry refuse
/// a wrong credential even where they need none: guesses must be recorded, and a mistyped key must not pass unnoticed.
fn admit_caller(
    connection: &ClientConnection,
    request: &Request<Incoming>,
    identified: Result<(), Fault>,
) -> Result<(), Fault> {
    let (front, path) = (&connection.front, request.uri().path());
    let entry = front.spec.entry.as_ref().filter(|entry| entry.is_own(path));
    let shows = ClientConnection::shows_credential(request.headers());
    match identified {
        Err(fault) if entry.is_some() && (shows || !fault.data.is_empty()) => Err(fault),
        Err(fault) => {
            let is_open = entry.is_some_and(|entry| entry.path() == path && entry.is_open())
                || front.router.is_open(Listener::Tcp, request.method(), path);
            if is_open { Ok(()) } else { Err(fault) }
        }
        // A signature in the message would say nothing about the credential in the header.
        Ok(()) if entry.is_some() && shows && connection.must_still_prove() => {
            let fault = Fault::new(FaultKind::Unauthenticated, "no such credential is accepted here");
            Err(fault.with_str("error", "invalid_token"))
        }
        Ok(()) => Ok(()),
    }
}

/// Returns `true` if a connection in the reserve may make this request: a probe, or a WebSocket whose first message
/// authenticates the caller.
fn may_wait(front: &FrontState, request: &Request<Incoming>, identified: &Result<(), Fault>) -> bool {
    let path = request.uri().path();
    let proves_later =
        path == front.spec.path && identified.as_ref().is_err_and(|fault| may_prove_later(request, fault));
    proves_later || front.router.is_probe(Listener::Tcp, request.method(), path)
}

/// Returns `true` if the client asks for a WebSocket and was refused only because it sent no credential: its first
/// message may carry one. A wrong credential ends the attempt.
fn may_prove_later(request: &Request<Incoming>, fault: &Fault) -> bool {
    let no_credential = fault.kind == FaultKind::Unauthenticated
        && fault.data.is_empty()
        && !ClientConnection::shows_credential(request.headers());
    no_credential && *request.method() == Method::GET && upgrade::is_asked_for(request.headers())
}

/// Address of a request, kept for a challenge.
struct RequestedAddress {
    host: Option<HeaderValue>,
    uri: http::Uri,
}

impl RequestedAddress {
    fn of(request: &Request<Incoming>) -> Self {
        Self { host: request.headers().get(HOST).cloned(), uri: request.uri().clone() }
    }

    fn borrow(&self) -> RequestAddress<'_> {
        let path = match self.uri.path() {
            sse::POST_PATH => sse::STREAM_PATH,
            path => path,
        };
        RequestAddress { host: self.host.as_ref().and_then(|host| host.to_str().ok()), path }
    }
}

/// Adds the `WWW-Authenticate` header to the answer of a client that lacks a valid credential.
fn challenge(connection: &ClientConnection, address: Option<&RequestedAddress>, answer: &mut FrontAnswer) {
    // Refusals by an interceptor or by the second stage of authentication are recognised by their error data only.
    let FrontBody::Whole(Some(body)) = answer.body() else { return };
    let text = |path: &[&str]| {
        let found = json::path(body, path).and_then(|span| json::string(span.of(body)));
        found.map(std::borrow::Cow::into_owned)
    };
    // The governed dialect has its own error codes and puts further fields under `details`.
    let word = text(&["error", "data", "reason"]).or_else(|| text(&["error", "data", "error_code"]));
    let said = |name: &str| text(&["error", "data", name]).or_else(|| text(&["error", "data", "details", name]));
    let (error, scopes) = match word.as_deref() {
        Some("unauthenticated" | "authentication_failed") => (said("error"), String::new()),
        Some("insufficient_scope" | "permission_denied") => {
            (Some("insufficient_scope".to_owned()), said("scope").unwrap_or_default())
        }
        _ => return,
    };
    let scopes: Vec<&str> = scopes.split_ascii_whitespace().collect();
    let message = text(&["error", "message"]).unwrap_or_default();
    let value = match connection.front.spec.challenge.as_ref().zip(address) {
        Some((challenge, address)) => challenge.header(address.borrow(), error.as_deref(), &message, &scopes),
        None => "Bearer".to_owned(),
    };
    if let Ok(value) = HeaderValue::try_from(value) {
        answer.headers_mut().insert(WWW_AUTHENTICATE, value);
    }
}

/// Records a request that was refused before it reached a session.
fn record_refusal(connection: &ClientConnection, answer: &mut FrontAnswer) {
    if let Some(refused) = answer.extensions_mut().remove::<RefusalRecord>() {
        let status = Some(answer.status().as_u16());
        connection.front.gateway.refused(&connection.caller(), status, &refused.fault, Some(&refused.reply));
    }
}

const NO_SESSION: &str = "there is no such session; it may have expired: initialize again";

/// Methods of the MCP endpoint.
pub const METHODS: HeaderValue = HeaderValue::from_static("POST, GET, DELETE");

/// Answers a request whose method is not in `methods`.
pub fn not_allowed(methods: HeaderValue) -> FrontAnswer {
    let mut answer = sentence(StatusCode::METHOD_NOT_ALLOWED, FaultKind::InvalidRequest, "method not allowed");
    answer.headers_mut().insert(ALLOW, methods);
    answer
}

pub(super) fn delete(connection: &ClientConnection, headers: &HeaderMap) -> FrontAnswer {
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

/// Returns the session that the headers name.
///
/// # Errors
/// Returns the answer to send instead.
pub fn session_of(connection: &ClientConnection, headers: &HeaderMap) -> Result<Arc<Session>, Box<FrontAnswer>> {
    session_named(connection, headers.get_all(&SESSION_ID).iter().map(HeaderValue::as_bytes).collect())
}

/// Returns the session with this id.
///
/// # Errors
/// Returns the answer to send instead.
pub fn session_named(connection: &ClientConnection, id: HeaderValues<'_>) -> Result<Arc<Session>, Box<FrontAnswer>> {
    let refuse = |status, text: &str| Err(Box::new(sentence(status, FaultKind::SessionClosed, text)));
    let HeaderValues::One(id) = id else {
        return refuse(StatusCode::BAD_REQUEST, "one Mcp-Session-Id header is required");
    };
    let Ok(id) = std::str::from_utf8(id) else { return refuse(StatusCode::NOT_FOUND, NO_SESSION) };
    let gateway = &connection.front.gateway;
    let entry_request = connection.entry_request();
    let (caller, principal) = EntryRequest::of(entry_request.as_ref(), connection.caller());
    let session = match gateway.sessions.get(id) {
        Some(session) => Some(session),
        None => match gateway.resume_session(id, caller, principal.clone()) {
            Ok(session) => session,
            Err(fault) => return Err(Box::new(sentence(StatusCode::SERVICE_UNAVAILABLE, fault.kind, &fault.message))),
        },
    };
    match session {
        // A session of another caller is reported as unknown.
        Some(session) if session.principal == principal && session.mode() == Mode::Session => Ok(session),
        _ => match entry_request {
            Some(entry_request) => Err(Box::new(secondary_endpoint::answer_of(entry_request.entry.gone(None, id)))),
            None => refuse(StatusCode::NOT_FOUND, NO_SESSION),
        },
    }
}

/// Returns how events of the session's streams can be replayed, if its revision supports that.
pub fn resumable(connection: &ClientConnection, session: &Session) -> Option<Resumable> {
    let revision = session.client().map(|client| client.revision)?;
    (revision >= Revision::V2025_03_26).then(|| Resumable {
        session: session.external.clone(),
        store: Arc::clone(&connection.front.resume),
        prime: revision.priming_event(),
        call: None,
        caller: connection.caller(),
    })
}

/// Returns the known revision in the version header.
pub fn spoken(headers: &HeaderMap) -> Option<Revision> {
    headers.get(&PROTOCOL_VERSION).and_then(revision_in)
}

/// Parses a known revision.
pub fn revision_in(value: &HeaderValue) -> Option<Revision> {
    Revision::ALL.into_iter().find(|revision| revision.as_str().as_bytes() == value.as_bytes())
}

/// Returns `true` if the version header names a modern revision.
pub fn speaks_modern(headers: &HeaderMap) -> bool {
    spoken(headers).is_some_and(|revision| revision.era() == Era::Modern)
}
