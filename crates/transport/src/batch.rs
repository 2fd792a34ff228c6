//! Batches of messages (2025-03-26), for every front.

use crate::large_proof::{self, LARGE};
use crate::stdio_front::intake::{self, Addressee, Unreadable};
use bytes::Bytes;
use signalbox_engine::{Caller, Carrier, Fault, FaultKind};
use signalbox_runtime::counters::Counters;
use signalbox_runtime::{Batch, Gateway, Session, StreamReader};
use signalbox_wire::batch::{is_array, split};
use signalbox_wire::{Envelope, Kind, Limits, RawId, Revision, codes, json, meta, method, scan};
use std::collections::HashSet;
use std::sync::Arc;

/// Parses one message or a batch from a pipe and passes it to the session.
///
/// # Errors
/// Returns the refusal of the bytes as a whole and its addressee.
pub(crate) async fn receive(
    gateway: &Arc<Gateway>,
    session: &Arc<Session>,
    stream: &StreamReader,
    bytes: Bytes,
) -> Result<(), Unreadable> {
    if is_array(&bytes) {
        let batch = read(gateway, session, Revision::batches, &bytes);
        let batch = batch.map_err(|fault| Unreadable { fault, answer: Addressee::UnknownRequest })?;
        session.receive_batch(stream, batch);
    } else {
        let message = intake::read(bytes, &gateway.settings())?;
        if large_proof::is_needed(&message) {
            let proof = large_proof::prove(gateway, &session.caller, &message).await;
            session.receive_with(stream, message, proof.carried(Carrier::default()));
        } else {
            session.receive(stream, message);
        }
    }
    Ok(())
}

/// Parses a batch that came with its own credential. The session must have a revision for which `takes_batches` is
/// true.
///
/// # Errors
/// Returns the reason why the batch is refused as a whole.
pub(crate) fn read_with_caller(
    gateway: &Gateway,
    session: &Session,
    takes_batches: impl FnOnce(Revision) -> bool,
    caller: impl FnOnce() -> Caller,
    bytes: &Bytes,
) -> Result<Batch, Fault> {
    Ok(read(gateway, session, takes_batches, bytes)?.with_caller(session.distinct_caller(caller)))
}

/// Parses a batch, if the session's revision allows it. Each bad element gets its own error response.
///
/// # Errors
/// Returns the reason why the batch is refused as a whole.
fn read(
    gateway: &Gateway,
    session: &Session,
    takes_batches: impl FnOnce(Revision) -> bool,
    bytes: &Bytes,
) -> Result<Batch, Fault> {
    if !session.client().is_some_and(|client| takes_batches(client.revision)) {
        return Err(refusal_of_batch(bytes));
    }
    let settings = gateway.settings();
    let elements = split(bytes, settings.limits.batch).map_err(|rejected| {
        let kind = match rejected.code() {
            codes::PARSE_ERROR => FaultKind::Parse,
            _ => FaultKind::InvalidRequest,
        };
        let prefix = if kind == FaultKind::Parse { "Parse error" } else { "Invalid request" };
        Fault::new(kind, format!("{prefix}: {rejected}"))
    })?;
    let (mut messages, mut refusals) = (Vec::with_capacity(elements.len()), Vec::new());
    let mut ids = HashSet::new();
    for element in elements {
        let message = intake::read(element, &settings);
        if message.as_ref().is_ok_and(|message| message.method() == Some(method::INITIALIZE)) {
            let text = "Invalid request: initialize must not be part of a batch";
            return Err(Fault::new(FaultKind::InvalidRequest, text));
        }
        match message.and_then(|message| check_element(message, &mut ids)) {
            Ok(message) => messages.push(message),
            // A batch that is not JSON has no elements.
            Err(unreadable) if unreadable.fault.kind == FaultKind::Parse => return Err(unreadable.fault),
            Err(unreadable) => {
                Counters::add(&gateway.counters.malformed);
                refusals.extend(unreadable.into_refusal());
            }
        }
    }
    Ok(Batch::new(messages, refusals))
}

/// Returns the reason for refusing a batch where none is allowed. Invalid JSON is reported first.
pub(crate) fn refusal_of_batch(bytes: &[u8]) -> Fault {
    if let Err(error) = scan(bytes, &Limits::default())
        && error.code() == codes::PARSE_ERROR
    {
        return Fault::new(FaultKind::Parse, format!("Parse error: {error}"));
    }
    let text = "Invalid request: a batch is served only in a session that has agreed on revision 2025-03-26; send one message at a time";
    Fault::new(FaultKind::InvalidRequest, text)
}

/// Checks the rules that apply to a message only because it is part of a batch.
fn check_element(message: Envelope, ids: &mut HashSet<RawId>) -> Result<Envelope, Unreadable> {
    if large_proof::is_needed(&message) {
        let text = format!("a signed message of a batch has less than {LARGE} bytes; send this one by itself");
        let fault = Fault::new(FaultKind::Signature("too_large_for_a_batch"), text);
        return Err(Unreadable { fault, answer: message.id().map_or(Addressee::None, Addressee::Request) });
    }
    let (Kind::Request, Some(id)) = (message.kind(), message.id()) else { return Ok(message) };
    let params = message.params().unwrap_or_default();
    let fault = if json::path(params, &["_meta", meta::PROTOCOL_VERSION]).is_some() {
        let text = "Invalid request: a request of revision 2026-07-28 cannot be part of a batch";
        Fault::new(FaultKind::InvalidRequest, text)
    } else if !ids.insert(id.clone()) {
        Fault::new(FaultKind::DuplicateId, format!("an earlier request of the batch has the id {id} too"))
    } else {
        return Ok(message);
    };
    Err(Unreadable { fault, answer: Addressee::Request(id) })
}
