//! A GET: the general stream of a session, or the rest of a stream that was lost.

use super::accepts::Accepts;
use super::answer::{self, sentence};
use super::client_connection::ClientConnection;
use super::service::{METHODS, not_allowed, resumable, session_of, speaks_modern};
use super::sse_body::{Resumable, SseBody};
use super::track::EventId;
use super::{FrontAnswer, FrontState};
use http::{HeaderMap, StatusCode};
use signalbox_engine::{Fault, FaultKind, Limit};
use signalbox_runtime::Session;
use signalbox_wire::RawId;
use std::sync::Arc;

/// Answers a GET. Without `Last-Event-ID` it opens a new general stream.
pub fn handle(connection: &Arc<ClientConnection>, headers: &HeaderMap) -> FrontAnswer {
    if speaks_modern(headers) {
        return not_allowed(METHODS);
    }
    if !Accepts::read(headers).sse || headers.get(http::header::ACCEPT).is_none() {
        let text = "a GET here needs `Accept: text/event-stream`";
        return sentence(StatusCode::NOT_ACCEPTABLE, FaultKind::InvalidRequest, text);
    }
    let session = match session_of(connection, headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    let resumable = resumable(connection, &session);
    let goes_on = session.is_used_by(&connection.caller());
    match (headers.get("last-event-id"), resumable) {
        (Some(id), Some(resumable)) => {
            let id = id.to_str().unwrap_or_default();
            resume(connection, &session, id, goes_on, resumable)
        }
        (_, resumable) => begin(connection, &session, resumable),
    }
}

fn begin(connection: &Arc<ClientConnection>, session: &Arc<Session>, resumable: Option<Resumable>) -> FrontAnswer {
    if !session.lets_hear(&connection.caller()) {
        let text = "the session has a credential with other rights, which decide what this stream would get; begin a \
                    session of your own";
        return sentence(StatusCode::FORBIDDEN, FaultKind::Denied, text);
    }
    let reader = if session.at_stream_limit() { None } else { session.open_general() };
    match reader {
        Some(reader) => answer::events(connection, SseBody::general(reader, resumable)),
        None => {
            connection.front.gateway.counters.refused(Limit::Streams);
            sentence(StatusCode::TOO_MANY_REQUESTS, FaultKind::Overloaded, "too many streams are open")
        }
    }
}

/// Resumes a stream after the last event that the client received. Refuses if events are missing, because a silent gap
/// would be worse; the stream is then forgotten, so that the next attempt begins a new general stream. A general stream
/// is not resumed for a different exchanged token.
fn resume(
    connection: &Arc<ClientConnection>,
    session: &Arc<Session>,
    text: &str,
    goes_on: bool,
    resumable: Resumable,
) -> FrontAnswer {
    let front = &connection.front;
    let Some(id) = EventId::parse(text) else {
        return refuse_resume(front, "unknown_event_id", "Last-Event-ID is not an event id of this session");
    };
    let track = front.resume.find(&session.external, id.stream).filter(|track| track.general == id.general);
    let track = track.filter(|track| goes_on || !track.general);
    let is_own = track.as_ref().is_none_or(|track| track.is_for(&resumable.caller));
    match track.filter(|_| is_own) {
        Some(track) => match SseBody::resumed(Arc::clone(&track), id.number, resumable) {
            Ok(body) => answer::events(connection, body),
            Err(super::track::NoReplay::Future) => refuse_resume(
                front,
                "unknown_event_id",
                "there is no event of that id on the stream that Last-Event-ID names",
            ),
            Err(super::track::NoReplay::Gap) => {
                front.resume.forget(&session.external, &track);
                let text = "events after the one that Last-Event-ID names are no longer kept: some were lost; go on \
                            without Last-Event-ID";
                refuse_resume(front, "replay_gap", text)
            }
        },
        // No event of it is kept, but events from now on need a stream.
        None if id.general => begin(connection, session, Some(resumable)),
        None if !is_own => {
            let text =
                "the stream that Last-Event-ID names was opened with a credential that is good for something else";
            refuse_resume(front, "replay_gone", text)
        }
        None if session.is_before_restart(id.stream) && id.call.is_some() => {
            report_interrupted(connection, session, id.call)
        }
        None => {
            let text = "the stream that Last-Event-ID names is no longer kept, and its answer is lost";
            refuse_resume(front, "replay_gone", text)
        }
    }
}

/// Reports a call that was in flight when the previous process ended: reopens its stream and sends the error there.
fn report_interrupted(connection: &Arc<ClientConnection>, session: &Arc<Session>, call: Option<RawId>) -> FrontAnswer {
    let reader = if session.at_stream_limit() { None } else { session.open_stream() };
    let Some(reader) = reader else {
        connection.front.gateway.counters.refused(Limit::Streams);
        return sentence(StatusCode::TOO_MANY_REQUESTS, FaultKind::Overloaded, "too many streams are open");
    };
    let text = "the gateway was restarted while this call was in flight; whether it was carried out is not known";
    session.refuse(&reader, call, Fault::new(FaultKind::BackendDown, text));
    answer::events(connection, SseBody::new(reader, [], None))
}

/// Refuses to resume a stream. The status is not 404, which would tell the client that its session has ended.
fn refuse_resume(front: &FrontState, reason: &'static str, text: &str) -> FrontAnswer {
    front.gateway.counters.dropped(reason);
    sentence(StatusCode::GONE, FaultKind::InvalidRequest, text)
}
