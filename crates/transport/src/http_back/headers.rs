//! The requests that are sent to a backend, with the headers of each revision.

use super::Request;
use super::backend::Backend;
use bytes::Bytes;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::method::Method;
use http_body_util::Full;
use signalbox_engine::back::Outbound;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::header as rules;
use signalbox_wire::{Era, Revision, method};
use std::borrow::Cow;

/// Names the session.
pub(crate) static SESSION_ID: HeaderName = HeaderName::from_static(rules::SESSION_ID);
/// Says how long an idle connection is kept.
pub(crate) static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
static PROTOCOL_VERSION: HeaderName = HeaderName::from_static(rules::PROTOCOL_VERSION);
static METHOD: HeaderName = HeaderName::from_static(rules::METHOD);
static NAME: HeaderName = HeaderName::from_static(rules::NAME);
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Headers of the protocol, which only the gateway sets.
pub(crate) static OURS: [&HeaderName; 5] = [&SESSION_ID, &PROTOCOL_VERSION, &METHOD, &NAME, &LAST_EVENT_ID];

/// The type of a message.
pub(crate) static JSON: HeaderValue = HeaderValue::from_static("application/json");
static EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
static BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Room for the headers of a request in either era, and for those of its response, which hyper reads into the same map.
const ROOM: usize = 12;

/// Longest event id that is sent back, in bytes.
const MAX_EVENT_ID: usize = 4096;

fn version(revision: Revision) -> &'static HeaderValue {
    static R2: HeaderValue = HeaderValue::from_static(Revision::V2025_03_26.as_str());
    static R3: HeaderValue = HeaderValue::from_static(Revision::V2025_06_18.as_str());
    static R4: HeaderValue = HeaderValue::from_static(Revision::V2025_11_25.as_str());
    static R5: HeaderValue = HeaderValue::from_static(Revision::V2026_07_28.as_str());
    static R1: HeaderValue = HeaderValue::from_static(Revision::V2024_11_05.as_str());
    match revision {
        Revision::V2024_11_05 => &R1,
        Revision::V2025_03_26 => &R2,
        Revision::V2025_06_18 => &R3,
        Revision::V2025_11_25 => &R4,
        Revision::V2026_07_28 => &R5,
    }
}

/// Whether the message belongs to the era without sessions.
pub(crate) fn is_modern(message: &Outbound) -> bool {
    message.revision.map(Revision::era) == Some(Era::Modern)
}

/// The POST that carries a message. `room` is an empty map, best one that was used before.
pub(crate) fn post(
    backend: &Backend,
    message: &Outbound,
    session: Option<&HeaderValue>,
    room: HeaderMap,
) -> Result<Request, Fault> {
    let mut request = bare(backend, Method::POST, message.bytes.clone(), room);
    let headers = request.headers_mut();
    headers.insert(header::CONTENT_TYPE, JSON.clone());
    headers.insert(header::ACCEPT, BOTH.clone());
    if message.method != method::INITIALIZE {
        add_session(headers, session, message.revision);
    }
    if message.revision.is_some_and(Revision::routing_headers) {
        add_routing(headers, message).map_err(|what| {
            let text = format!("cannot be sent header {what}: its value does not fit into one");
            backend.fault(FaultKind::Internal, text)
        })?;
    }
    Ok(request)
}

/// The GET that opens a stream, or takes one up after the event with this id; none where no header can hold the id.
pub(crate) fn get(
    backend: &Backend,
    session: Option<&HeaderValue>,
    revision: Option<Revision>,
    last_event: Option<&str>,
) -> Option<Request> {
    let mut request = bare(backend, Method::GET, Bytes::new(), HeaderMap::new());
    let headers = request.headers_mut();
    headers.insert(header::ACCEPT, EVENTS.clone());
    add_session(headers, session, revision);
    if let Some(id) = last_event {
        let id = Some(id).filter(|id| id.len() <= MAX_EVENT_ID)?;
        headers.insert(&LAST_EVENT_ID, HeaderValue::from_str(id).ok()?);
    }
    Some(request)
}

/// The DELETE that ends a session.
pub(crate) fn delete(backend: &Backend, session: &HeaderValue, revision: Option<Revision>) -> Request {
    let mut request = bare(backend, Method::DELETE, Bytes::new(), HeaderMap::new());
    add_session(request.headers_mut(), Some(session), revision);
    request
}

/// A request without anything but where it goes and what is configured.
pub(crate) fn bare(backend: &Backend, method: Method, body: Bytes, mut headers: HeaderMap) -> Request {
    let mut request = Request::new(Full::new(body));
    *request.method_mut() = method;
    *request.uri_mut() = backend.target.uri.clone();
    if headers.capacity() == 0 {
        headers.reserve(ROOM + backend.headers.len());
    }
    headers.insert(header::HOST, backend.target.authority.clone());
    for (name, value) in &backend.headers {
        // `Host` may be configured, and must not be there twice.
        if name == header::HOST {
            headers.insert(name, value.clone());
        } else {
            headers.append(name, value.clone());
        }
    }
    *request.headers_mut() = headers;
    request
}

pub(crate) fn add_session(headers: &mut HeaderMap, session: Option<&HeaderValue>, revision: Option<Revision>) {
    if let Some(session) = session {
        headers.insert(&SESSION_ID, session.clone());
    }
    if let Some(revision) = revision.filter(|revision| revision.protocol_header()) {
        headers.insert(&PROTOCOL_VERSION, version(revision).clone());
    }
}

/// The headers that repeat parts of the body; the name of the one that cannot be written.
fn add_routing<'a>(headers: &mut HeaderMap, message: &'a Outbound) -> Result<(), &'a str> {
    let method = match &message.method {
        Cow::Borrowed(name) => HeaderValue::from_maybe_shared(Bytes::from_static(name.as_bytes())),
        Cow::Owned(name) => HeaderValue::from_str(name),
    };
    headers.insert(&METHOD, method.map_err(|_| rules::METHOD)?);
    if let Some(name) = &message.name
        && rules::name_member(&message.method).is_some()
    {
        let value = HeaderValue::from_str(&rules::encode_value(name)).map_err(|_| rules::NAME)?;
        headers.insert(&NAME, value);
    }
    for (name, value) in &message.params {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| name.as_str())?;
        let value = HeaderValue::from_str(value).map_err(|_| name.as_str())?;
        headers.insert(header, value);
    }
    Ok(())
}
