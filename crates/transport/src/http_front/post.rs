//! A POST: one message or batch of a client, and the response to it.

use super::accepts::Accepts;
use super::answer::{self, PROTOCOL_VERSION, SESSION_ID, plain, refusal, sentence};
use super::client_connection::ClientConnection;
use super::heads::Heads;
use super::secondary_endpoint::{self, EntryRequest};
use super::service::{resumable, revision_in, session_named, session_of, speaks_modern};
use super::sse_body::Resumable;
use super::{FrontAnswer, FrontState, protobuf_post};
use crate::batch;
use crate::large_proof::{self, LARGE};
use crate::protobuf;
use crate::read_body::{BodyError, read_body};
use crate::signer_proof::SignerProof;
use crate::unknown_caller;
use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use hyper::body::Incoming;
use signalbox_engine::caller::Principal;
use signalbox_engine::front::Mode;
use signalbox_engine::{Caller, Carrier, Fault, FaultKind, Limit, dialect};
use signalbox_runtime::counters::Counters;
use signalbox_runtime::{Gateway, Session, StreamReader};
use signalbox_wire::batch::is_array;
use signalbox_wire::header::{self, HeaderValues};
use signalbox_wire::{Envelope, Era, Kind, Refusal, Revision, header_params, meta, method};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Answers a POST. Paths that are not a call in a session are boxed, so that calls do not reserve space for them.
pub async fn handle(connection: &Arc<ClientConnection>, request: Request<Incoming>) -> FrontAnswer {
    let front = &connection.front;
    let (head, body) = request.into_parts();
    let headers = head.headers;
    let heads = Heads::read(&headers);
    if !is_json_type(heads.content_type) {
        if protobuf::is_named(heads.content_type) {
            return Box::pin(protobuf_post::handle(connection, headers, body)).await;
        }
        let text = "the body must be `Content-Type: application/json`";
        return sentence(StatusCode::UNSUPPORTED_MEDIA_TYPE, FaultKind::InvalidRequest, text);
    }
    let accepts = heads.accepts();
    if accepts.nothing() {
        let text = "the client must accept application/json or text/event-stream";
        return sentence(StatusCode::NOT_ACCEPTABLE, FaultKind::InvalidRequest, text);
    }
    let most = front.gateway.settings().limits.message;
    let limit = unknown_caller::limit(&front.gateway, || connection.caller(), most, false);
    let bytes = match read_body(body, limit, front.spec.body_timeout, || Some(connection.share())).await {
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
        if let Err(answer) = Box::pin(secondary_endpoint::settle_batch(connection, &headers, &bytes)).await {
            return *answer;
        }
        return Box::pin(handle_batch(connection, headers, &bytes, accepts)).await;
    }
    let message = match read_message(front, bytes) {
        Ok(message) => message,
        Err(answer) => return *answer,
    };
    let message = match connection.entry_request() {
        None => message,
        Some(entry_request) => {
            match Box::pin(secondary_endpoint::settle(connection, entry_request, &heads, message)).await {
                Ok(message) => message,
                Err(answer) => return *answer,
            }
        }
    };
    match era_of(&heads, &message) {
        Era::Modern => match open_modern(connection, &heads, &message, prove_modern(connection, &message).await) {
            Ok(opened) => {
                let carrier = trace_of(front, &headers);
                opened.session.receive_with(&opened.reader, message, opened.proof.carried(carrier));
                answer::of_stream(connection, opened.reader, accepts, || None, headers).await
            }
            Err(answer) => *answer,
        },
        Era::Legacy if connection.entry_request().is_none() && speaks_dialect(front, &heads, &message) => {
            Box::pin(dialect(connection, headers, message, accepts)).await
        }
        Era::Legacy if opens_session(&message) => Box::pin(initialize(connection, &headers, message, accepts)).await,
        Era::Legacy => match find_session(connection, &heads) {
            Ok(session) => legacy(connection, session, headers, message, accepts).await,
            Err(answer) => *answer,
        },
    }
}

/// Returns `true` for an `initialize` request. Without an id it is an ordinary notification and opens nothing.
pub(super) fn opens_session(message: &Envelope) -> bool {
    message.kind() == Kind::Request && message.method() == Some(method::INITIALIZE)
}

pub(super) fn is_json(headers: &HeaderMap) -> bool {
    is_json_type(headers.get(CONTENT_TYPE))
}

pub(super) fn is_json_type(kind: Option<&HeaderValue>) -> bool {
    if kind.is_some_and(|kind| kind.as_bytes() == b"application/json") {
        return true;
    }
    let kind = kind.and_then(|value| value.to_str().ok()).unwrap_or_default();
    kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

pub(super) fn unreadable_body(front: &FrontState, error: BodyError) -> FrontAnswer {
    if let Some(limit) = error.limit() {
        front.gateway.counters.refused(limit);
    }
    let kind = match error {
        BodyError::NoRoom(_) => FaultKind::Overloaded,
        _ => FaultKind::InvalidRequest,
    };
    let mut answer = sentence(error.status(), kind, &error.to_string());
    // The rest of the body stays unread, so the connection cannot be reused.
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Scans and parses a message. A failure is answered with the matching JSON-RPC error.
pub(super) fn read_message(front: &FrontState, bytes: Bytes) -> Result<Envelope, Box<FrontAnswer>> {
    let settings = front.gateway.settings();
    let refuse = |code: i64, text: String, id: Option<&signalbox_wire::RawId>| {
        front.gateway.counters.malformed.fetch_add(1, Ordering::Relaxed);
        let kind = if code == -32700 { FaultKind::Parse } else { FaultKind::InvalidRequest };
        let text = if code == -32700 { format!("Parse error: {text}") } else { text };
        Box::new(refusal(StatusCode::BAD_REQUEST, id, Era::Legacy, &Fault::new(kind, text)))
    };
    let read = match settings.strict {
        true => Envelope::read(bytes, &settings.limits),
        false => Envelope::parse(bytes).map_err(Refusal::from),
    };
    read.map_err(|refusal| match refusal {
        Refusal::Scan(error) => refuse(error.code(), error.to_string(), None),
        Refusal::Message(rejected) => refuse(rejected.code(), rejected.error.to_string(), rejected.id.as_ref()),
    })
}

/// Returns the era of a message. It is modern if the version header or the message's metadata names a modern revision,
/// and legacy otherwise: `initialize`, and messages of a session.
pub(super) fn era_of(heads: &Heads<'_>, message: &Envelope) -> Era {
    match heads.spoken.map(Revision::era) {
        Some(Era::Modern) => return Era::Modern,
        Some(Era::Legacy) if heads.session != HeaderValues::Missing => return Era::Legacy,
        _ => {}
    }
    match message.param_meta(meta::PROTOCOL_VERSION) {
        Some(_) => Era::Modern,
        None => Era::Legacy,
    }
}

/// Returns `true` for a request of the governed dialect, which names neither a session nor a revision.
fn speaks_dialect(front: &FrontState, heads: &Heads<'_>, message: &Envelope) -> bool {
    heads.session == HeaderValues::Missing
        && heads.version.is_none()
        && dialect::is_spoken(message)
        && front.gateway.speaks_dialect()
}

/// Answers a request of the governed dialect, which has no session: its caller alone identifies it.
async fn dialect(
    connection: &Arc<ClientConnection>,
    headers: HeaderMap,
    message: Envelope,
    accepts: Accepts,
) -> FrontAnswer {
    let front = &connection.front;
    let caller = connection.caller();
    let proof = match large_proof::is_needed(&message) {
        true => large_proof::prove(&front.gateway, &caller, &message).await,
        false => SignerProof(front.gateway.confirm(&caller, &message)),
    };
    let opened = front.gateway.open_session(proof.caller().unwrap_or(caller), Mode::Stateless, "", "http");
    let session = match opened {
        Ok(session) => session,
        Err(fault) => return refusal(StatusCode::SERVICE_UNAVAILABLE, message.id().as_ref(), Era::Legacy, &fault),
    };
    session.speak_dialect();
    let Some(reader) = session.open_stream() else { return plain(StatusCode::SERVICE_UNAVAILABLE) };
    let expects_answer = message.kind() == Kind::Request;
    session.receive_with(&reader, message, proof.carried(trace_of(front, &headers)));
    if !expects_answer {
        return plain(StatusCode::ACCEPTED);
    }
    answer::of_stream(connection, reader, accepts, || None, headers).await
}

async fn initialize(
    connection: &Arc<ClientConnection>,
    headers: &HeaderMap,
    message: Envelope,
    accepts: Accepts,
) -> FrontAnswer {
    let front = &connection.front;
    let id = message.id();
    let external = match connection.entry_request() {
        Some(entry_request) => Ok(entry_request.external.to_string()),
        None => Gateway::new_session_id(),
    };
    let opened = external.and_then(|external| {
        let (caller, principal) = EntryRequest::of(connection.entry_request().as_ref(), connection.caller());
        front.gateway.open_session_for(caller, principal, Mode::Session, &external, "http")
    });
    let session = match opened {
        Ok(session) => session,
        Err(fault) => return refusal(StatusCode::SERVICE_UNAVAILABLE, id.as_ref(), Era::Legacy, &fault),
    };
    let Some(reader) = session.open_stream() else { return plain(StatusCode::SERVICE_UNAVAILABLE) };
    let proof = large_proof::prove(&front.gateway, &session.caller, &message).await;
    session.receive_with(&reader, message, proof.carried(trace_of(front, headers)));
    if session.client().is_none() {
        // The handshake failed, so the client never learns of this session.
        session.close();
    }
    let mut answer = answer::of_stream(connection, reader, accepts, || None, HeaderMap::new()).await;
    if session.client().is_some()
        && let Ok(value) = HeaderValue::from_str(&session.external)
    {
        answer.headers_mut().insert(&SESSION_ID, value);
    }
    answer
}

/// Refuses a protocol version that was never published.
pub fn unknown_version(version: &HeaderValue) -> FrontAnswer {
    let text = format!("protocol version {version:?} is not supported");
    sentence(StatusCode::BAD_REQUEST, FaultKind::InvalidRequest, &text)
}

pub(super) fn find_session(connection: &ClientConnection, heads: &Heads<'_>) -> Result<Arc<Session>, Box<FrontAnswer>> {
    match heads.version.filter(|_| heads.spoken.is_none()) {
        Some(version) => Err(Box::new(unknown_version(version))),
        None => session_named(connection, heads.session),
    }
}

/// Returns the sender of the connection's current request.
fn sender(connection: &ClientConnection) -> Caller {
    EntryRequest::of(connection.entry_request().as_ref(), connection.caller()).0
}

/// Opens the stream for the reply to a message or batch, and returns with it what the client may still be sent on it: a
/// session with too many event streams receives its answers, but no messages before them.
fn open_reply_stream(
    front: &FrontState,
    session: &Arc<Session>,
    accepts: Accepts,
    expects_answer: bool,
) -> Result<(StreamReader, Accepts), Fault> {
    let full = expects_answer && session.at_stream_limit();
    let accepts = if full { Accepts { sse: false, rather_sse: false, ..accepts } } else { accepts };
    let opened = if accepts.sse { session.open_stream() } else { session.open_answer_stream() };
    match opened.filter(|_| !accepts.nothing()) {
        Some(reader) => Ok((reader, accepts)),
        None => {
            front.gateway.counters.refused(Limit::Streams);
            Err(Fault::new(FaultKind::Overloaded, "too many streams are open in this session"))
        }
    }
}

async fn legacy(
    connection: &Arc<ClientConnection>,
    session: Arc<Session>,
    headers: HeaderMap,
    message: Envelope,
    accepts: Accepts,
) -> FrontAnswer {
    let front = &connection.front;
    let expects_answer = message.kind() == Kind::Request;
    let (reader, accepts) = match open_reply_stream(front, &session, accepts, expects_answer) {
        Ok(opened) => opened,
        Err(fault) => return refusal(StatusCode::TOO_MANY_REQUESTS, message.id().as_ref(), Era::Legacy, &fault),
    };
    let id = message.id();
    let distinct = session.distinct_caller(|| sender(connection));
    let carrier = Carrier { connection_caller: distinct.as_ref(), ..trace_of(front, &headers) };
    if message.bytes().len() < LARGE {
        session.receive_with(&reader, message, carrier);
    } else {
        let sender = distinct.as_ref().unwrap_or(&session.caller);
        let proof = large_proof::prove(&front.gateway, sender, &message).await;
        session.receive_with(&reader, message, proof.carried(carrier));
    }
    if !expects_answer {
        return plain(StatusCode::ACCEPTED);
    }
    let of_call = |resumable| Resumable { call: id.clone(), ..resumable };
    let resumable = || resumable(connection, &session).filter(|_| accepts.sse).map(of_call);
    answer::of_stream(connection, reader, accepts, resumable, headers).await
}

/// Verifies the proof in a large modern request off the workers. That of a small one is verified later.
async fn prove_modern(connection: &ClientConnection, message: &Envelope) -> SignerProof {
    if message.bytes().len() < LARGE {
        return SignerProof(Ok(None));
    }
    let (caller, _) = EntryRequest::of(connection.entry_request().as_ref(), connection.caller());
    large_proof::prove(&connection.front.gateway, &caller, message).await
}

/// A session for one modern request, the stream of its answer, and the proof in the request.
pub(super) struct OpenedModern {
    pub session: Arc<Session>,
    pub reader: StreamReader,
    pub proof: SignerProof,
}

/// Opens the session for one modern request; it belongs to the signer of the request. `proof` is the result of an
/// earlier verification, if there was one.
pub(super) fn open_modern(
    connection: &ClientConnection,
    heads: &Heads<'_>,
    message: &Envelope,
    proof: SignerProof,
) -> Result<OpenedModern, Box<FrontAnswer>> {
    let front = &connection.front;
    let refuse = |status, fault: &Fault| Box::new(refusal(status, message.id().as_ref(), Era::Modern, fault));
    if matches!(message.kind(), Kind::Response | Kind::Error) {
        let text = "a client of this revision sends no responses";
        return Err(Box::new(sentence(StatusCode::BAD_REQUEST, FaultKind::InvalidRequest, text)));
    }
    check_headers(heads, message).map_err(|fault| refuse(StatusCode::BAD_REQUEST, &fault))?;
    let entry_request = connection.entry_request();
    let (caller, _) = EntryRequest::of(entry_request.as_ref(), connection.caller());
    let proof = if proof.is_unverified() { SignerProof(front.gateway.confirm(&caller, message)) } else { proof };
    let (caller, principal) = EntryRequest::of(entry_request.as_ref(), proof.caller().unwrap_or(caller));
    check_param_headers(front, heads, message, &caller, &principal)
        .map_err(|fault| refuse(StatusCode::BAD_REQUEST, &fault))?;
    let session = front
        .gateway
        .open_session_for(caller, principal, Mode::Stateless, "", "http")
        .map_err(|fault| refuse(StatusCode::SERVICE_UNAVAILABLE, &fault))?;
    match session.open_stream() {
        Some(reader) if message.kind() == Kind::Notification => {
            session.receive_with(&reader, message.clone(), proof.carried(Carrier::default()));
            Err(Box::new(plain(StatusCode::ACCEPTED)))
        }
        Some(reader) => Ok(OpenedModern { session, reader, proof }),
        None => Err(Box::new(plain(StatusCode::SERVICE_UNAVAILABLE))),
    }
}

/// Returns the trace context in the headers, if the gateway traces. Several `traceparent` headers count as none.
pub(super) fn trace_of<'a>(front: &FrontState, headers: &'a HeaderMap) -> Carrier<'a> {
    if !front.gateway.traces() {
        return Carrier::default();
    }
    let text = |name| match headers.get_all(name).iter().map(HeaderValue::as_bytes).collect() {
        HeaderValues::One(raw) => std::str::from_utf8(raw).ok(),
        _ => None,
    };
    Carrier { parent: text(meta::TRACEPARENT), state: text(meta::TRACESTATE), ..Carrier::default() }
}

/// Checks that the modern headers match the body. A body without a version is reported by the engine.
fn check_headers(heads: &Heads<'_>, message: &Envelope) -> Result<(), Fault> {
    let undescribed = || message.param_meta(meta::PROTOCOL_VERSION).is_none() && heads.speaks_modern();
    // A request without a version fails the check below, so test for a missing version only then.
    if message.kind() != Kind::Request && undescribed() {
        return Ok(());
    }
    if let Err(error) = header::check(|name| heads.look_up(name), message) {
        return if undescribed() { Ok(()) } else { Err(mismatch(&error)) };
    }
    Ok(())
}

/// Checks the headers into which a tool mirrors arguments against these arguments. A tool that is hidden from the
/// caller passes: the engine reports it as unknown.
fn check_param_headers(
    front: &FrontState,
    heads: &Heads<'_>,
    message: &Envelope,
    caller: &Caller,
    principal: &Principal,
) -> Result<(), Fault> {
    if message.method() != Some(method::TOOLS_CALL) {
        return Ok(());
    }
    // `check_headers` has verified that the header matches the body.
    let name = match heads.look_up(header::NAME) {
        HeaderValues::One(raw) => header::decode_value(raw).ok(),
        _ => header::required_name(method::TOOLS_CALL, message.params().unwrap_or_default()),
    };
    let catalog = front.gateway.catalog.snapshot();
    let Some(name) = name else { return Ok(()) };
    let Some(marked) = catalog.param_headers(&name) else { return Ok(()) };
    let arguments = message.param("arguments").map_or(&b"{}"[..], |span| span.of(message.bytes()));
    match header_params::check_params(marked, arguments, |name| heads.look_up(name)) {
        Err(error) if front.gateway.reveals_tool(caller, principal, &name) => Err(mismatch(&error)),
        _ => Ok(()),
    }
}

fn mismatch(error: &header::HeaderError) -> Fault {
    Fault::new(FaultKind::HeaderMismatch, error.to_string())
}

/// Answers a POST with a batch. Without a session no revision was negotiated, so batches are refused.
pub(super) async fn handle_batch(
    connection: &Arc<ClientConnection>,
    headers: HeaderMap,
    bytes: &Bytes,
    accepts: Accepts,
) -> FrontAnswer {
    let front = &connection.front;
    let refuse = |fault: &Fault| {
        Counters::add(&front.gateway.counters.malformed);
        refusal(StatusCode::BAD_REQUEST, None, Era::Legacy, fault)
    };
    if speaks_modern(&headers) || !headers.contains_key(&SESSION_ID) {
        return refuse(&batch::refusal_of_batch(bytes));
    }
    let version = headers.get(&PROTOCOL_VERSION);
    if let Some(version) = version.filter(|version| revision_in(version).is_none()) {
        return unknown_version(version);
    }
    let session = match session_of(connection, &headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    let takes_batches = |revision: Revision| match connection.entry_request() {
        Some(entry_request) => entry_request.entry.takes_batches(revision),
        None => revision.batches(),
    };
    let batch = match batch::read_with_caller(&front.gateway, &session, takes_batches, || sender(connection), bytes) {
        Ok(batch) => batch,
        Err(fault) => return refuse(&fault),
    };
    let expects_answers = batch.answers() > 0;
    let (reader, accepts) = match open_reply_stream(front, &session, accepts, expects_answers) {
        Ok(opened) => opened,
        Err(fault) => return refusal(StatusCode::TOO_MANY_REQUESTS, None, Era::Legacy, &fault),
    };
    session.receive_batch(&reader, batch);
    if !expects_answers {
        return plain(StatusCode::ACCEPTED);
    }
    let resumable = || resumable(connection, &session).filter(|_| accepts.sse);
    answer::of_batch(connection, reader, accepts, resumable, headers).await
}
