//! A second MCP endpoint of the front, which stands for a server of its own. What a request is, how it is read
//! and how it is answered is as everywhere; the [`Entry`] says who may come, whose room a request is for, and
//! what sessions are called.

use super::FrontAnswer;
use super::accepts::Accepts;
use super::answer::{Refused, SESSION_ID, sentence};
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

/// Most bytes of a refused request that are read for its id.
const REFUSED_BODY: usize = 64 * 1024;
/// Longest wait for them.
const REFUSED_BODY_WAIT: Duration = Duration::from_secs(1);

/// What an entry decides. A refusal is an answer.
pub trait Entry: Send + Sync + fmt::Debug {
    /// The path.
    fn path(&self) -> &str;

    /// The word for how callers come who come this way.
    fn transport(&self) -> &'static str;

    /// True for a path of this entry, or of what belongs to it.
    fn is_own(&self, path: &str) -> bool;

    /// Says in the head of an answer what this entry says in all of them, among it how long it took.
    fn mark(&self, headers: &mut HeaderMap, took: Duration);

    /// True if a page of the origin in these headers may use this path, though it may use no other of the listener.
    fn welcomes(&self, path: &str, headers: &HeaderMap) -> bool;

    /// True if callers need no proof of who they are.
    fn is_open(&self) -> bool;

    /// Counts a request of this caller.
    ///
    /// # Errors
    /// Time that the caller has to wait, if it has asked too often.
    fn admit(&self, caller: &Caller) -> Result<(), Duration>;

    /// The answer to the request of this id, whose caller has to wait.
    fn limited(&self, id: Option<&RawId>, wait: Duration) -> RoutedAnswer;

    /// A new session with its room, for the `initialize` of this id.
    fn open(&self, caller: Caller, id: Option<RawId>) -> BoxFuture<Result<OpenedRoom, RoutedAnswer>>;

    /// The room of the session of this id. `None` if there is none, or its time is over; an answer if that cannot
    /// be found out now.
    fn room(&self, caller: Caller, session: String) -> BoxFuture<Result<Option<Principal>, RoutedAnswer>>;

    /// The room that a request of the new era names, and the request as everybody else may see it.
    fn named(&self, caller: Caller, message: Envelope) -> BoxFuture<Result<Named, RoutedAnswer>>;

    /// A request in a session, as everybody else may see it.
    fn seen(&self, message: Envelope) -> Envelope;

    /// True if clients of this revision may send several messages at once.
    fn takes_batches(&self, revision: Revision) -> bool;

    /// True if these messages, of which there are several at once, hold one that has to come alone.
    fn stands_alone(&self, messages: &[u8]) -> bool;

    /// What is answered where a session is not there (any more).
    fn gone(&self, id: Option<&RawId>, session: &str) -> RoutedAnswer;

    /// The client has ended its session.
    fn left(&self, session: &str);

    /// The answer to a GET that does not ask for a stream.
    fn health(&self) -> RoutedAnswer;
}

/// A session that was made.
#[derive(Clone, Debug)]
pub struct OpenedRoom {
    /// Its id.
    pub session: String,
    /// On whose behalf it acts.
    pub principal: Principal,
}

/// A request of the new era that says which room it is for.
#[derive(Debug)]
pub struct Named {
    /// On whose behalf it is carried out.
    pub principal: Principal,
    /// The request without what names the room.
    pub message: Envelope,
}

/// A request that came by an entry.
#[derive(Clone, Debug)]
pub struct Visit {
    /// Which.
    pub entry: Arc<dyn Entry>,
    /// The room that it is for, once that is known.
    pub principal: Option<Principal>,
    /// The id of the session that it opens.
    pub external: Arc<str>,
}

impl Visit {
    /// Who opens a session, and on whose behalf.
    pub fn of(visit: Option<&Self>, caller: Caller) -> (Caller, Principal) {
        let Some(visit) = visit else {
            let principal = caller.principal().clone();
            return (caller, principal);
        };
        let caller = visit.caller(&caller);
        let principal = visit.principal.clone().unwrap_or_else(|| caller.principal().clone());
        (caller, principal)
    }

    fn caller(&self, caller: &Caller) -> Caller {
        Caller::new(Identity { transport: self.entry.transport(), ..caller.identity().clone() })
    }
}

impl ClientConnection {
    /// Whose room the request is for, where it is for another entry than the usual one.
    pub fn visit(&self) -> Option<Visit> {
        let visiting = self.visiting.load(Ordering::Relaxed);
        if visiting { self.visit.lock().unpoisoned().clone() } else { None }
    }

    /// The request is for this room of another entry, or for the usual one.
    pub fn set_visit(&self, visit: Option<Visit>) {
        self.visiting.store(visit.is_some(), Ordering::Relaxed);
        *self.visit.lock().unpoisoned() = visit;
    }
}

/// Answers a request that came by this entry.
pub async fn handle(
    connection: &Arc<ClientConnection>,
    entry: &Arc<dyn Entry>,
    request: Request<Incoming>,
) -> FrontAnswer {
    let began = Instant::now();
    let mut answer = answered(connection, Arc::clone(entry), request).await;
    entry.mark(answer.headers_mut(), began.elapsed());
    answer
}

async fn answered(
    connection: &Arc<ClientConnection>,
    entry: Arc<dyn Entry>,
    request: Request<Incoming>,
) -> FrontAnswer {
    let headers = request.headers();
    if *request.method() == Method::GET && !wants_stream(headers) {
        return answer_of(entry.health());
    }
    if let Err(wait) = entry.admit(&connection.caller()) {
        let id = id_in(connection, request).await;
        return answer_of(entry.limited(id.as_ref(), wait));
    }
    connection.set_visit(Some(Visit { entry: Arc::clone(&entry), principal: None, external: Arc::from("") }));
    match *request.method() {
        Method::POST if !post::is_json(headers) => {
            // C-17: the words alone, as the document has them.
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

/// The id of the request in a body that is otherwise not read. A large or slow one is not waited for.
async fn id_in(connection: &ClientConnection, request: Request<Incoming>) -> Option<RawId> {
    if *request.method() != Method::POST || !post::is_json(request.headers()) {
        return None;
    }
    let share = || Some(connection.share());
    let bytes = read_body(request.into_body(), REFUSED_BODY, REFUSED_BODY_WAIT, share).await.ok()?;
    Envelope::parse(bytes).ok()?.id()
}

/// Any other GET asks how the server is.
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

/// Finds the room that a message is for. Gives the message back as everybody else may see it.
///
/// # Errors
/// The answer to give instead.
pub async fn settle(
    connection: &ClientConnection,
    visit: Visit,
    heads: &Heads<'_>,
    message: Envelope,
) -> Result<Envelope, Box<FrontAnswer>> {
    let (caller, _) = Visit::of(Some(&visit), connection.caller());
    let refused = |answer| Box::new(answer_of(answer));
    if post::era_of(heads, &message) == Era::Modern {
        let Named { principal, message } = visit.entry.named(caller, message).await.map_err(refused)?;
        connection.set_visit(Some(Visit { principal: Some(principal), ..visit }));
        return Ok(message);
    }
    if post::opens_session(&message) {
        let OpenedRoom { session, principal } = visit.entry.open(caller, message.id()).await.map_err(refused)?;
        connection.set_visit(Some(Visit { principal: Some(principal), external: session.into(), ..visit.clone() }));
        return Ok(visit.entry.seen(message));
    }
    let id = match heads.session {
        HeaderValues::One(id) => std::str::from_utf8(id).ok().map(str::to_owned),
        _ => None,
    };
    find_room(connection, visit.clone(), caller, id, message.id().as_ref()).await?;
    Ok(visit.entry.seen(message))
}

/// Finds the room that an array of messages is for.
///
/// # Errors
/// The answer to give instead.
pub async fn settle_batch(
    connection: &ClientConnection,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<(), Box<FrontAnswer>> {
    let Some(visit) = connection.visit() else { return Ok(()) };
    if visit.entry.stands_alone(bytes) {
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
    let Some(visit) = connection.visit() else { return Ok(()) };
    let (caller, _) = Visit::of(Some(&visit), connection.caller());
    find_room(connection, visit, caller, session_in(headers), id).await
}

/// The room of the session that the headers name. Without one, whoever looks for the session says so.
async fn find_room(
    connection: &ClientConnection,
    visit: Visit,
    caller: Caller,
    session: Option<String>,
    id: Option<&RawId>,
) -> Result<(), Box<FrontAnswer>> {
    let Some(session) = session else { return Ok(()) };
    let room = visit.entry.room(caller, session.clone()).await;
    match room.map_err(|answer| Box::new(answer_of(answer)))? {
        Some(principal) => {
            connection.set_visit(Some(Visit { principal: Some(principal), ..visit }));
            Ok(())
        }
        None => {
            if let Some(over) = connection.front.gateway.sessions.get(&session)
                && over.caller.identity().transport == visit.entry.transport()
                && over.caller.principal() == connection.caller().principal()
            {
                over.close();
            }
            Err(Box::new(answer_of(visit.entry.gone(id, &session))))
        }
    }
}

/// An answer of an entry, which is there as a whole.
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

/// What is told of an answer that refuses, with the words that its client gets.
fn refusal_in(status: StatusCode, body: &FrontBody) -> Option<Refused> {
    let FrontBody::Whole(Some(reply)) = body else { return None };
    let text = json::path(reply, &["error", "message"]).and_then(|span| json::string(span.of(reply)))?;
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => FaultKind::RateLimited,
        StatusCode::NOT_FOUND => FaultKind::SessionClosed,
        _ => FaultKind::InvalidRequest,
    };
    Some(Refused { fault: Fault::new(kind, text.into_owned()), reply: reply.clone() })
}
