//! The trace that an exchange belongs to, and how it is carried on to the backend.
//!
//! Tracing is a subscriber to facts ([`crate::FactSink::begin`]). It makes the ids, because randomness comes from
//! outside, and gets them back with the end of the exchange. Without such a subscriber no trace is made.

use crate::caller::Caller;
use crate::exchange::{Call, Exchange};
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, RawId, Revision, Span, TraceParent, json, meta};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Maximum length of a recorded error code; no 64-bit number is longer.
const MAX_CODE: usize = 20;

/// What arrived with a message: its sender, and the headers that name its trace.
#[derive(Copy, Clone, Default, Debug)]
pub struct Carrier<'a> {
    /// The HTTP header `traceparent`.
    pub parent: Option<&'a str>,
    /// The HTTP header `tracestate`.
    pub state: Option<&'a str>,
    /// The client's session id, if it has one.
    pub session: Option<&'a str>,
    /// The sender, if it is not the opener of the session.
    pub caller: Option<&'a Caller>,
}

/// Starts the trace of a request, if it is traced.
pub type Begin<'a> = dyn Fn(&Envelope) -> Option<Box<Trace>> + 'a;

/// The trace of one exchange.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The span of the exchange itself.
    pub span: TraceParent,
    /// The span that caused it.
    pub parent: Option<[u8; 8]>,
    /// The client's session id, in a form that opens no session.
    pub session: Option<Box<str>>,
    /// The context sent to the backend.
    pub told: Arc<TraceSent>,
    /// How it ended, once it has.
    pub ended: Option<Ended>,
}

/// What is known only at the end of an exchange.
#[derive(Clone, Debug)]
pub struct Ended {
    /// The id as the client wrote it.
    pub request: RawId,
    /// The revision of the client.
    pub revision: Option<Revision>,
    /// The code of a JSON-RPC error, as the client gets it.
    pub code: Option<Box<str>>,
}

/// The trace context for the backend, and when it was sent.
#[derive(Debug)]
pub struct TraceSent {
    /// The span of the call at the backend.
    pub call: TraceParent,
    /// The `tracestate` to send.
    pub state: TraceState,
    /// When and how the call left, once it has.
    pub sent: OnceLock<Sent>,
}

/// The `tracestate` that goes with a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceState {
    /// As the client wrote it in `_meta`.
    Kept,
    /// This one.
    Set(Box<str>),
    /// Removed, because it belongs to a `traceparent` that is not passed on.
    Removed,
}

/// A call that has left for a backend.
#[derive(Clone, Debug)]
pub struct Sent {
    /// When.
    pub at: Instant,
    /// Its id on that connection.
    pub id: u64,
    /// The revision of the backend.
    pub revision: Revision,
    /// The name or URI under which the backend knows the subject.
    pub name: Option<Box<str>>,
}

/// The `traceparent` that a message has in `_meta`.
#[must_use]
pub fn in_meta(message: &Envelope) -> Option<String> {
    let params = message.params()?;
    let span = json::path(params, &[meta::META, meta::TRACEPARENT])?;
    json::string(span.of(params)).map(std::borrow::Cow::into_owned)
}

/// Completes the trace of an exchange that ended.
pub(crate) fn finished(
    exchange: &Exchange,
    session: Option<&Arc<ClientProfile>>,
    answer: Option<&Bytes>,
) -> Option<Box<Trace>> {
    let trace = exchange.trace.as_ref()?;
    let client = exchange.client.as_ref().or(session);
    let code = answer.and_then(|bytes| {
        let code = json::path(bytes, &["error", "code"])?.of(bytes);
        std::str::from_utf8(code).ok().filter(|code| code.len() <= MAX_CODE).map(Box::from)
    });
    let revision = client.map(|client| client.revision);
    let ended = Ended { request: exchange.client_id.detached(), revision, code };
    Some(Box::new(Trace { ended: Some(ended), ..Trace::clone(trace) }))
}

impl TraceSent {
    /// Its members of `_meta`, as raw JSON.
    pub(crate) fn members(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut members = vec![(meta::TRACEPARENT, json::quote(&self.call.to_string()).into_bytes())];
        if let TraceState::Set(state) = &self.state {
            members.push((meta::TRACESTATE, json::quote(state).into_bytes()));
        }
        members
    }

    /// Writes it into a call. The rest of the message stays as it is.
    pub(crate) fn write(&self, envelope: &Envelope, edits: &mut Edits) {
        let base = envelope.bytes();
        let members = self.members();
        let Some(params) = envelope.params_span() else {
            let whole = format!("{{\"{}\":{}}}", meta::META, object(&members));
            return edits.set_member(base, envelope.object_span(), "params", whole.as_bytes());
        };
        let Some(own) = json::member(params.of(base), meta::META).map(|own| own.shift(params.start)) else {
            return edits.set_member(base, params, meta::META, object(&members).as_bytes());
        };
        for (key, value) in &members {
            edits.set_member(base, own, key, value);
        }
        self.take_away(base, own, edits);
    }

    /// Removes a `tracestate` from `_meta` that is not passed on.
    pub(crate) fn take_away(&self, base: &[u8], own: Span, edits: &mut Edits) {
        if self.state == TraceState::Removed {
            edits.remove_member(base, own, meta::TRACESTATE);
        }
    }

    /// Notes that the call was sent. Later rounds change nothing: the span covers all of them.
    pub(crate) fn left(&self, call: &Call, id: u64, revision: Revision, at: Instant) {
        let _ = self.sent.set(Sent { at, id, revision, name: call.name.clone() });
    }
}

fn object(members: &[(&str, Vec<u8>)]) -> String {
    let texts: Vec<String> =
        members.iter().map(|(key, value)| format!("\"{key}\":{}", String::from_utf8_lossy(value))).collect();
    format!("{{{}}}", texts.join(","))
}

#[cfg(test)]
mod tests;
