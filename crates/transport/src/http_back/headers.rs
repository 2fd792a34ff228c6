//! Builds the requests to a backend, with the headers of each revision.

use super::backend::Backend;
use crate::http1::{HttpRequest, HttpTarget, RequestDraft};
use bytes::Bytes;
use http::Uri;
use http::header::{self, HeaderName, HeaderValue};
use http::method::Method;
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::AuthHeader;
use signalbox_wire::header as rules;
use signalbox_wire::{Era, Revision, method};
use std::borrow::Cow;

/// Header with the session id.
pub(crate) static SESSION_ID: HeaderName = HeaderName::from_static(rules::SESSION_ID);
static PROTOCOL_VERSION: HeaderName = HeaderName::from_static(rules::PROTOCOL_VERSION);
static METHOD: HeaderName = HeaderName::from_static(rules::METHOD);
static NAME: HeaderName = HeaderName::from_static(rules::NAME);
static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Headers of the protocol, which only the gateway sets.
pub(crate) static OURS: [&HeaderName; 5] = [&SESSION_ID, &PROTOCOL_VERSION, &METHOD, &NAME, &LAST_EVENT_ID];

/// Content type of a message.
pub(crate) static JSON: HeaderValue = HeaderValue::from_static("application/json");
static EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
static BOTH: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Maximum length of an event id that is sent back, in bytes.
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

/// Returns `true` if the message belongs to the era without sessions.
pub(crate) fn is_modern(message: &ToBackend) -> bool {
    message.revision().map(Revision::era) == Some(Era::Modern)
}

/// Builds the common start of all POSTs to a backend.
pub(crate) fn post_start(target: &HttpTarget, configured: &[(HeaderName, HeaderValue)]) -> RequestDraft {
    let mut draft = start(target, configured, &Method::POST, &target.uri);
    draft.add(&header::CONTENT_TYPE, &JSON);
    draft.add(&header::ACCEPT, &BOTH);
    draft
}

/// Builds the POST for a message. `room` is a buffer, preferably one that was used before.
pub(crate) fn post(
    backend: &Backend,
    message: &ToBackend,
    session: Option<&HeaderValue>,
    credential: Option<&AuthHeader>,
    room: Vec<u8>,
) -> Result<HttpRequest, Fault> {
    let mut draft = RequestDraft::like(&backend.post_start, room);
    add_credential(&mut draft, credential);
    if message.method() != method::INITIALIZE {
        add_session(&mut draft, session, message.revision());
    }
    if message.revision().is_some_and(Revision::routing_headers) {
        add_routing(&mut draft, message).map_err(|what| {
            let text = format!("cannot be sent header {what}: its value does not fit into one");
            backend.fault(FaultKind::Internal, text)
        })?;
    }
    Ok(draft.with_body(message.bytes().clone()))
}

/// Builds the GET that opens a stream, or resumes one after the event with this id. Returns `None` if the id is not a
/// valid header value.
pub(crate) fn get(
    backend: &Backend,
    session: Option<&HeaderValue>,
    credential: Option<&AuthHeader>,
    revision: Option<Revision>,
    last_event: Option<&str>,
) -> Option<HttpRequest> {
    let mut draft = bare(backend, credential, &Method::GET, &backend.target.uri);
    draft.add(&header::ACCEPT, &EVENTS);
    add_session(&mut draft, session, revision);
    if let Some(id) = last_event {
        let id = Some(id).filter(|id| id.len() <= MAX_EVENT_ID)?;
        draft.add(&LAST_EVENT_ID, &HeaderValue::from_str(id).ok()?);
    }
    Some(draft.without_body())
}

/// Builds the DELETE that ends a session.
pub(crate) fn delete(
    backend: &Backend,
    session: &HeaderValue,
    credential: Option<&AuthHeader>,
    revision: Option<Revision>,
) -> HttpRequest {
    let mut draft = bare(backend, credential, &Method::DELETE, &backend.target.uri);
    add_session(&mut draft, Some(session), revision);
    draft.without_body()
}

/// Builds a request with only its target, the configured headers and the credential.
pub(crate) fn bare(backend: &Backend, credential: Option<&AuthHeader>, method: &Method, line: &Uri) -> RequestDraft {
    let mut draft = start(&backend.target, &backend.headers, method, line);
    add_credential(&mut draft, credential);
    draft
}

fn add_credential(draft: &mut RequestDraft, credential: Option<&AuthHeader>) {
    if let Some(credential) = credential {
        draft.add(&credential.name, &credential.value);
    }
}

/// Starts a request. `Host` may be configured and must not occur twice: the last one counts.
fn start(target: &HttpTarget, configured: &[(HeaderName, HeaderValue)], method: &Method, line: &Uri) -> RequestDraft {
    let host = configured.iter().rev().find(|(name, _)| name == header::HOST).map(|(_, value)| value);
    let mut draft = RequestDraft::new(method, line, host.unwrap_or(&target.authority));
    for (name, value) in configured.iter().filter(|(name, _)| name != header::HOST) {
        draft.add(name, value);
    }
    draft
}

pub(crate) fn add_session(draft: &mut RequestDraft, session: Option<&HeaderValue>, revision: Option<Revision>) {
    if let Some(session) = session {
        draft.add(&SESSION_ID, session);
    }
    if let Some(revision) = revision.filter(|revision| revision.protocol_header()) {
        draft.add(&PROTOCOL_VERSION, version(revision));
    }
}

/// Adds the headers that repeat parts of the body. Returns the name of the header whose value is invalid.
fn add_routing<'a>(draft: &mut RequestDraft, message: &'a ToBackend) -> Result<(), &'a str> {
    let method = match &message.method() {
        Cow::Borrowed(name) => HeaderValue::from_maybe_shared(Bytes::from_static(name.as_bytes())),
        Cow::Owned(name) => HeaderValue::from_str(name),
    };
    draft.add(&METHOD, &method.map_err(|_| rules::METHOD)?);
    if let Some(name) = &message.name()
        && rules::name_member(message.method()).is_some()
    {
        let value = HeaderValue::from_str(&rules::encode_value(name)).map_err(|_| rules::NAME)?;
        draft.add(&NAME, &value);
    }
    for (index, (name, value)) in message.params().iter().enumerate() {
        let header = HeaderName::from_bytes(name.as_bytes()).map_err(|_| name.as_str())?;
        let value = HeaderValue::from_str(value).map_err(|_| name.as_str())?;
        // Of several with the same name, the last one counts.
        let later = message.params().iter().skip(index + 1).any(|(other, _)| other.eq_ignore_ascii_case(name));
        if !later {
            draft.add(&header, &value);
        }
    }
    Ok(())
}
