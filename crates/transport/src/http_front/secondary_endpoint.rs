//! A second MCP endpoint of the front, which represents a server of its own. Requests are read and answered as on the
//! main endpoint. The [`SecondaryEndpoint`] decides which callers are admitted, which principal a request belongs to,
//! and which ids sessions have.

use super::FrontAnswer;
use super::accepts::Accepts;
use super::answer::{RefusalRecord, SESSION_ID, refusal, sentence};
use super::client_connection::ClientConnection;
use super::heads::Heads;
use super::routed::FrontBody;
use super::service::{METHODS, delete, not_allowed, speaks_modern};
use super::{get, post, whole};
use crate::read_body::read_body;
use crate::router::{AnswerBody, RoutedAnswer};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use signalbox_engine::caller::Identity;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Caller, Fault, FaultKind, Principal};
use signalbox_runtime::BoxFuture;
use signalbox_wire::{Envelope, Era, HeaderValues, RawId, Revision, json};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Maximum number of bytes read of a refused request to find its id.
const REFUSED_BODY: usize = 64 * 1024;
/// Maximum wait for these bytes.
const REFUSED_BODY_WAIT: Duration = Duration::from_secs(1);

/// Decisions of a second endpoint. A refusal is a complete answer.
pub trait SecondaryEndpoint: Send + Sync + fmt::Debug {
    /// Returns the path of the endpoint.
    fn path(&self) -> &str;

    /// Returns the transport name recorded for callers of this endpoint.
    fn transport(&self) -> &'static str;

    /// Returns `true` if `path` belongs to this entry.
    fn is_own(&self, path: &str) -> bool;

    /// Adds the headers that every answer of this entry carries, including its processing time.
    fn mark(&self, headers: &mut HeaderMap, took: Duration);

    /// Returns `true` if a page of the origin in these headers may use this path even though other paths of the
    /// listener refuse it.
    fn welcomes(&self, path: &str, headers: &HeaderMap) -> bool;

    /// Returns `true` if callers need not authenticate.
    fn is_open(&self) -> bool;

    /// Counts a request against the caller's rate limit.
    ///
    /// # Errors
    /// Returns the time to wait if the caller has exceeded its rate.
    fn admit(&self, caller: &Caller) -> Result<(), Duration>;

    /// Returns the answer to a request that exceeded the rate limit.
    fn limited(&self, id: Option<&RawId>, wait: Duration) -> RoutedAnswer;

    /// Opens a session and its principal for an `initialize` with this id.
    fn open(&self, caller: Caller, id: Option<RawId>) -> BoxFuture<Result<SecondarySession, RoutedAnswer>>;

    /// Returns the principal that requests of the session belong to, or `None` if there is no such session or it has
    /// expired. The error is an answer for when that cannot be determined now.
    fn principal_of(&self, caller: Caller, session: String) -> BoxFuture<Result<Option<Principal>, RoutedAnswer>>;

    /// Returns the principal that a modern request names, and the request without the code that names it.
    fn named(&self, caller: Caller, message: Envelope) -> BoxFuture<Result<SecondaryRequest, RoutedAnswer>>;

    /// Returns a request of this caller in a session without its session codes, which are secrets of the client.
    fn seen(&self, caller: &Caller, message: Envelope) -> Envelope;

    /// Returns `true` if clients of this revision may send batches.
    fn takes_batches(&self, revision: Revision) -> bool;

    /// Returns `true` if this batch contains a message that must be sent alone.
    fn stands_alone(&self, messages: &[u8]) -> bool;

    /// Returns the answer for a session that does not exist (any more).
    fn gone(&self, id: Option<&RawId>, session: &str) -> RoutedAnswer;

    /// Records that the client ended its session.
    fn left(&self, session: &str);

    /// Returns the answer to a GET that does not ask for a stream.
    fn health(&self) -> RoutedAnswer;
}

/// A session that a [`SecondaryEndpoint`] opened.
#[derive(Clone, Debug)]
pub struct SecondarySession {
    /// Id of the session.
    pub session: String,
    /// Principal on whose behalf the session acts.
    pub principal: Principal,
}

/// A modern request with the principal it names.
#[derive(Debug)]
pub struct SecondaryRequest {
    /// Principal on whose behalf the request runs.
    pub principal: Principal,
    /// Request without the field that names the principal.
    pub message: Envelope,
}

/// A request that arrived at a [`SecondaryEndpoint`].
#[derive(Clone, Debug)]
pub struct EntryRequest {
    /// Endpoint that the request arrived at.
    pub entry: Arc<dyn SecondaryEndpoint>,
    /// Principal that the request belongs to, once it is known.
    pub principal: Option<Principal>,
    /// Id of the session that the request opens.
    pub external: Arc<str>,
}

impl EntryRequest {
    /// Returns the caller that opens a session and the principal on whose behalf it acts.
    pub fn of(entry_request: Option<&Self>, caller: Caller) -> (Caller, Principal) {
        let Some(entry_request) = entry_request else {
            let principal = caller.principal().clone();
            return (caller, principal);
        };
        let caller = entry_request.caller(&caller);
        let principal = entry_request.principal.clone().unwrap_or_else(|| caller.principal().clone());
        (caller, principal)
    }

    fn caller(&self, caller: &Caller) -> Caller {
        Caller::new(Identity { transport: self.entry.transport(), ..caller.identity().clone() })
    }
}

impl ClientConnection {
    /// Returns the entry request in progress, if the current request arrived at a [`SecondaryEndpoint`].
    pub fn entry_request(&self) -> Option<EntryRequest> {
        let has_entry_request = self.has_entry_request.load(Ordering::Relaxed);
        if has_entry_request { self.entry_request.lock().unpoisoned().clone() } else { None }
    }

    /// Sets the entry request in progress; `None` for the main endpoint.
    pub fn set_entry_request(&self, entry_request: Option<EntryRequest>) {
        self.has_entry_request.store(entry_request.is_some(), Ordering::Relaxed);
        *self.entry_request.lock().unpoisoned() = entry_request;
    }
}

/// Answers a request that arrived at this entry.
pub async fn handle(
    connection: &Arc<ClientConnection>,
    entry: &Arc<dyn SecondaryEndpoint>,
    request: Request<Incoming>,
) -> FrontAnswer {
    let began = Instant::now();
    let mut answer = dispatch(connection, Arc::clone(entry), request).await;
    entry.mark(answer.headers_mut(), began.elapsed());
    answer
}

async fn dispatch(
    connection: &Arc<ClientConnection>,
    entry: Arc<dyn SecondaryEndpoint>,
    request: Request<Incoming>,
) -> FrontAnswer {
    let headers = request.headers();
    // Messages are judged one by one; a GET has none.
    if *request.method() == Method::GET
        && let Some(fault) = connection.front.router.refusal_of(&connection.caller())
    {
        return refusal(StatusCode::FORBIDDEN, None, Era::Legacy, &fault);
    }
    if *request.method() == Method::GET && !wants_stream(headers) {
        return answer_of(entry.health());
    }
    if let Err(wait) = entry.admit(&connection.caller()) {
        let id = id_in(connection, request).await;
        return answer_of(entry.limited(id.as_ref(), wait));
    }
    connection.set_entry_request(Some(EntryRequest {
        entry: Arc::clone(&entry),
        principal: None,
        external: Arc::from(""),
    }));
    match *request.method() {
        Method::POST if !post::is_json(headers) => {
            // C-17: the entry's clients expect these words as plain text, not a JSON-RPC error.
            let mut answer = sentence(StatusCode::NOT_FOUND, FaultKind::InvalidRequest, "Not Found");
            *answer.body_mut() = whole(Bytes::from_static(b"Not Found"));
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
            answer
        }
        Method::POST => Box::pin(post::handle(connection, request)).await,
        Method::GET | Method::DELETE if speaks_modern(headers) => not_allowed(METHODS),
        Method::GET | Method::DELETE => {
            if let Err(answer) = settle_session(connection, headers, None).await {
                return *answer;
            }
            if *request.method() == Method::GET {
                return get::handle(connection, headers);
            }
            let answer = delete(connection, headers);
            if answer.status().is_success()
                && let Some(session) = session_in(headers)
            {
                entry.left(&session);
            }
            answer
        }
        _ => not_allowed(METHODS),
    }
}

/// Returns the id in a body that is otherwise not read. Does not wait for a large or slow body.
async fn id_in(connection: &ClientConnection, request: Request<Incoming>) -> Option<RawId> {
    if *request.method() != Method::POST || !post::is_json(request.headers()) {
        return None;
    }
    let share = || Some(connection.share());
    let bytes = read_body(request.into_body(), REFUSED_BODY, REFUSED_BODY_WAIT, share).await.ok()?;
    Envelope::parse(bytes).ok()?.id()
}

/// Returns `true` if a GET asks for a stream; any other GET is a health check.
fn wants_stream(headers: &HeaderMap) -> bool {
    headers.contains_key(ACCEPT) && Accepts::read(headers).sse && !accepts_anything(headers)
}

fn accepts_anything(headers: &HeaderMap) -> bool {
    let mut all = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    !all.any(|value| value.to_ascii_lowercase().contains("text/event-stream"))
}

fn session_in(headers: &HeaderMap) -> Option<String> {
    let values: HeaderValues<'_> = headers.get_all(&SESSION_ID).iter().map(HeaderValue::as_bytes).collect();
    match values {
        HeaderValues::One(id) => std::str::from_utf8(id).ok().map(str::to_owned),
        _ => None,
    }
}

/// Finds the principal that a message is for. Returns the message without its session codes.
///
/// # Errors
/// Returns the answer to send instead.
pub async fn settle(
    connection: &ClientConnection,
    entry_request: EntryRequest,
    heads: &Heads<'_>,
    message: Envelope,
) -> Result<Envelope, Box<FrontAnswer>> {
    let (caller, _) = EntryRequest::of(Some(&entry_request), connection.caller());
    let refused = |answer| Box::new(answer_of(answer));
    if post::era_of(heads, &message) == Era::Modern {
        let SecondaryRequest { principal, message } =
            entry_request.entry.named(caller, message).await.map_err(refused)?;
        connection.set_entry_request(Some(EntryRequest { principal: Some(principal), ..entry_request }));
        return Ok(message);
    }
    if post::opens_session(&message) {
        let SecondarySession { session, principal } =
            entry_request.entry.open(caller, message.id()).await.map_err(refused)?;
        connection.set_entry_request(Some(EntryRequest {
            principal: Some(principal),
            external: session.into(),
            ..entry_request.clone()
        }));
        return Ok(entry_request.entry.seen(&connection.caller(), message));
    }
    let id = match heads.session {
        HeaderValues::One(id) => std::str::from_utf8(id).ok().map(str::to_owned),
        _ => None,
    };
    find_principal(connection, entry_request.clone(), caller, id, message.id().as_ref()).await?;
    Ok(entry_request.entry.seen(&connection.caller(), message))
}

/// Finds the principal that a batch is for.
///
/// # Errors
/// Returns the answer to send instead.
pub async fn settle_batch(
    connection: &ClientConnection,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<(), Box<FrontAnswer>> {
    let Some(entry_request) = connection.entry_request() else { return Ok(()) };
    if entry_request.entry.stands_alone(bytes) {
        let text = "Invalid request: this call cannot be part of a batch";
        return Err(Box::new(sentence(StatusCode::BAD_REQUEST, FaultKind::InvalidRequest, text)));
    }
    settle_session(connection, headers, None).await
}

async fn settle_session(
    connection: &ClientConnection,
    headers: &HeaderMap,
    id: Option<&RawId>,
) -> Result<(), Box<FrontAnswer>> {
    let Some(entry_request) = connection.entry_request() else { return Ok(()) };
    let (caller, _) = EntryRequest::of(Some(&entry_request), connection.caller());
    find_principal(connection, entry_request, caller, session_in(headers), id).await
}

/// Finds the principal of this session. Leaves a request without a session id to the lookup, which refuses it.
async fn find_principal(
    connection: &ClientConnection,
    entry_request: EntryRequest,
    caller: Caller,
    session: Option<String>,
    id: Option<&RawId>,
) -> Result<(), Box<FrontAnswer>> {
    let Some(session) = session else { return Ok(()) };
    let found = entry_request.entry.principal_of(caller, session.clone()).await;
    match found.map_err(|answer| Box::new(answer_of(answer)))? {
        Some(principal) => {
            connection.set_entry_request(Some(EntryRequest { principal: Some(principal), ..entry_request }));
            Ok(())
        }
        None => {
            if let Some(over) = connection.front.gateway.sessions.get(&session)
                && over.caller.identity().transport == entry_request.entry.transport()
                && over.caller.principal() == connection.caller().principal()
            {
                over.close();
            }
            Err(Box::new(answer_of(entry_request.entry.gone(id, &session))))
        }
    }
}

/// Converts a complete answer of an entry.
pub fn answer_of(answer: RoutedAnswer) -> FrontAnswer {
    let body = match answer.content {
        AnswerBody::Whole(bytes) => whole(bytes),
        AnswerBody::Stream(_) => whole(Bytes::new()),
    };
    let refused = refusal_in(answer.status, &body);
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    if let Some(refused) = refused {
        response.extensions_mut().insert(refused);
    }
    response
}

/// Extracts the refusal to record from an answer, with the text that the client receives.
fn refusal_in(status: StatusCode, body: &FrontBody) -> Option<RefusalRecord> {
    let FrontBody::Whole(Some(reply)) = body else { return None };
    let text = json::path(reply, &["error", "message"]).and_then(|span| json::string(span.of(reply)))?;
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => FaultKind::RateLimited,
        StatusCode::NOT_FOUND => FaultKind::SessionClosed,
        _ => FaultKind::InvalidRequest,
    };
    Some(RefusalRecord { fault: Fault::new(kind, text.into_owned()), reply: reply.clone() })
}
