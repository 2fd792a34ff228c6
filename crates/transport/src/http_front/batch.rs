//! A POST that holds an array of messages (2025-03-26), and the answers to it.

use super::Answer;
use super::accepts::Accepts;
use super::answer::{self, PROTOCOL_VERSION, SESSION_ID, plain, refusal};
use super::client_connection::ClientConnection;
use super::post::unknown_version;
use super::service::{resumable, revision_in, session_of, speaks_modern};
use crate::batch;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use signalbox_engine::{Fault, FaultKind, Limit};
use signalbox_runtime::counters::Counters;
use signalbox_wire::Era;
use std::sync::Arc;

/// Answers the POST. Without a session there is no revision that was agreed on, and so no batch.
pub async fn handle(connection: &Arc<ClientConnection>, headers: HeaderMap, bytes: &Bytes, accepts: Accepts) -> Answer {
    let front = &connection.front;
    let refuse = |fault: &Fault| {
        Counters::add(&front.gateway.counters.malformed);
        refusal(StatusCode::BAD_REQUEST, None, Era::Legacy, fault)
    };
    if speaks_modern(&headers) || !headers.contains_key(&SESSION_ID) {
        return refuse(&batch::unwelcome(bytes));
    }
    let version = headers.get(&PROTOCOL_VERSION);
    if let Some(version) = version.filter(|version| revision_in(version).is_none()) {
        return unknown_version(version);
    }
    let session = match session_of(connection, &headers) {
        Ok(session) => session,
        Err(answer) => return *answer,
    };
    let batch = match batch::read(&front.gateway, &session, bytes) {
        Ok(batch) => batch,
        Err(fault) => return refuse(&fault),
    };
    let expects_answers = batch.answers() > 0;
    // A session with too many event streams still gets its answers, but nothing that comes before them.
    let full = expects_answers && session.at_stream_limit();
    let accepts = if full { Accepts { sse: false, rather_sse: false, ..accepts } } else { accepts };
    let opened = if accepts.sse { session.open_stream() } else { session.open_answer_stream() };
    let Some(reader) = opened.filter(|_| !accepts.nothing()) else {
        front.gateway.counters.refused(Limit::Streams);
        let fault = Fault::new(FaultKind::Overloaded, "too many streams are open in this session");
        return refusal(StatusCode::TOO_MANY_REQUESTS, None, Era::Legacy, &fault);
    };
    session.receive_batch(&reader, batch);
    if !expects_answers {
        return plain(StatusCode::ACCEPTED);
    }
    let resumable = || resumable(front, &session).filter(|_| accepts.sse);
    answer::of_batch(connection, reader, accepts, resumable, headers).await
}
