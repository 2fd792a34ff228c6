//! The trace of an exchange, and its propagation to the backend.
//!
//! Tracing is a subscriber to facts ([`crate::FactSink::begin`]). It creates the ids, because randomness comes from
//! outside, and gets them back with the end of the exchange. Without such a subscriber no trace is created.

use crate::caller::Caller;
use crate::exchange::{Call, Exchange};
use crate::fault::Fault;
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, RawId, Revision, Span, TraceParent, json, meta};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Maximum length of a recorded error code; no 64-bit number is longer.
const MAX_CODE: usize = 20;

/// Transport data of a message: its sender, and the headers that name its trace.
#[derive(Copy, Clone, Default, Debug)]
pub struct Carrier<'a> {
    /// Value of the HTTP header `traceparent`.
    pub parent: Option<&'a str>,
    /// Value of the HTTP header `tracestate`.
    pub state: Option<&'a str>,
    /// The client's session id, if it has one.
    pub session: Option<&'a str>,
    /// Sender of the message, if it is not the opener of the session.
    pub caller: Option<&'a Caller>,
    /// Caller that the connection proves, if it differs from the opener of the session. The message may prove more.
    pub connection_caller: Option<&'a Caller>,
    /// Reason to refuse the message, if the front found an invalid signature.
    pub refusal: Option<&'a Fault>,
}

/// Starts the trace of a request, if it is traced.
pub type Begin<'a> = dyn Fn(&Envelope) -> Option<Box<Trace>> + 'a;

/// Trace of one exchange.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Span of the exchange itself.
    pub span: TraceParent,
    /// Span that caused it.
    pub parent: Option<[u8; 8]>,
    /// The client's session id, in a form that opens no session.
    pub session: Option<Box<str>>,
    /// Context sent to the backend.
    pub told: Arc<CallTrace>,
    /// End of the exchange, once it has ended.
    pub ended: Option<ExchangeEnd>,
}

/// Data that is known only at the end of an exchange.
#[derive(Clone, Debug)]
pub struct ExchangeEnd {
    /// Id as the client wrote it.
    pub request: RawId,
    /// Revision of the client.
    pub revision: Option<Revision>,
    /// Code of a JSON-RPC error, as the client gets it.
    pub code: Option<Box<str>>,
}

/// Trace context for the backend, and the time it was sent.
#[derive(Debug)]
pub struct CallTrace {
    /// Span of the call at the backend.
    pub call: TraceParent,
    /// The `tracestate` to send.
    pub state: TraceState,
    /// Departure of the call, once it was sent.
    pub sent: OnceLock<CallDeparture>,
}

/// The `tracestate` of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum TraceState {
    /// As the client wrote it in `_meta`.
    Kept,
    /// Replaced by this value.
    Set(Box<str>),
    /// Removed, because it belongs to a `traceparent` that is not passed on.
    Removed,
}

/// Departure of a call to a backend.
#[derive(Clone, Debug)]
pub struct CallDeparture {
    /// Time at which the call left.
    pub at: Instant,
    /// Id of the call on that connection.
    pub id: u64,
    /// Revision of the backend.
    pub revision: Revision,
    /// The backend's name or URI for the subject.
    pub name: Option<Box<str>>,
}

/// Returns the `traceparent` in a message's `_meta`.
#[must_use]
pub fn in_meta(message: &Envelope) -> Option<String> {
    let params = message.params()?;
    let span = json::path(params, &[meta::META, meta::TRACEPARENT])?;
    json::string(span.of(params)).map(std::borrow::Cow::into_owned)
}

/// Completes the trace of an exchange that ended.
pub(crate) fn complete(
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
    let ended = ExchangeEnd { request: exchange.client_id.detached(), revision, code };
    Some(Box::new(Trace { ended: Some(ended), ..Trace::clone(trace) }))
}

impl CallTrace {
    /// Returns its members of `_meta`, as raw JSON.
    pub(crate) fn members(&self) -> Vec<(&'static str, Vec<u8>)> {
        let mut members = vec![(meta::TRACEPARENT, json::quote(&self.call.to_string()).into_bytes())];
        if let TraceState::Set(state) = &self.state {
            members.push((meta::TRACESTATE, json::quote(state).into_bytes()));
        }
        members
    }

    /// Writes it into a call. The rest of the message is unchanged.
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
        self.remove_state(base, own, edits);
    }

    /// Removes a `tracestate` from `_meta` that is not passed on.
    pub(crate) fn remove_state(&self, base: &[u8], own: Span, edits: &mut Edits) {
        if self.state == TraceState::Removed {
            edits.remove_member(base, own, meta::TRACESTATE);
        }
    }

    /// Records that the call was sent. Later rounds change nothing: the span covers all of them.
    pub(crate) fn record_sent(&self, call: &Call, id: u64, revision: Revision, at: Instant) {
        let _ = self.sent.set(CallDeparture { at, id, revision, name: call.name.clone() });
    }
}

fn object(members: &[(&str, Vec<u8>)]) -> String {
    let texts: Vec<String> =
        members.iter().map(|(key, value)| format!("\"{key}\":{}", String::from_utf8_lossy(value))).collect();
    format!("{{{}}}", texts.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bridge::{self, BackendFeatures};
    use signalbox_wire::Era;

    const CALL: TraceParent = TraceParent { trace: [0xaa; 16], span: [0xbb; 8], flags: 1 };
    const TOLD: &str = r#""traceparent":"00-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa-bbbbbbbbbbbbbbbb-01""#;

    fn envelope(params: &str) -> Envelope {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call"{params}}}"#);
        Envelope::parse(text.into()).unwrap()
    }

    /// The params as the backend gets them.
    fn sent(from: Era, to: Era, state: TraceState, params: &str) -> String {
        let revision = |era| if era == Era::Modern { Revision::LATEST } else { Revision::LATEST_LEGACY };
        let envelope = envelope(params);
        let mut call = Call {
            method: "tools/call".into(),
            envelope,
            edits: Edits::new(),
            client: Arc::new(ClientProfile::new(revision(from), Bytes::from_static(b"{}"), None)),
            name: None,
            progress: None,
            param_headers: None,
            era: from,
            log_level: None,
            round: None,
            trace: Some(Arc::new(CallTrace { call: CALL, state, sent: OnceLock::new() })),
            tries: 0,
            awaits_sign_in: false,
        };
        bridge::request(&mut call, revision(to), BackendFeatures::default(), "{}").unwrap();
        let bytes = call.edits.apply(call.envelope.bytes());
        let after = Envelope::parse(bytes).unwrap();
        String::from_utf8(after.params().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn the_parent_is_replaced_where_it_stands_and_nothing_else_is_touched() {
        let params =
            r#","params":{"name" : "t","_meta" : { "a":1 , "traceparent":"old" ,"tracestate":"x=1","baggage":"b" }}"#;
        let expected = format!(r#"{{"name" : "t","_meta" : {{ "a":1 , {TOLD} ,"tracestate":"x=1","baggage":"b" }}}}"#);
        for era in [Era::Legacy, Era::Modern] {
            assert_eq!(sent(era, era, TraceState::Kept, params), expected);
        }
    }

    #[test]
    fn a_state_is_replaced_or_taken_away_with_the_parent_it_belonged_to() {
        let params = r#","params":{"_meta":{"tracestate":"x=1","baggage":"b"}}"#;
        let era = Era::Legacy;
        let set = sent(era, era, TraceState::Set("y=\"2".into()), params);
        assert_eq!(set, format!(r#"{{"_meta":{{"tracestate":"y=\"2","baggage":"b",{TOLD}}}}}"#));
        let removed = sent(era, era, TraceState::Removed, params);
        assert_eq!(removed, format!(r#"{{"_meta":{{"baggage":"b",{TOLD}}}}}"#));
    }

    #[test]
    fn there_is_room_for_it_in_any_request() {
        for (params, expected) in [
            ("", format!(r#"{{"_meta":{{{TOLD}}}}}"#)),
            (r#","params":{}"#, format!(r#"{{"_meta":{{{TOLD}}}}}"#)),
            (r#","params":{"name":"t"}"#, format!(r#"{{"name":"t","_meta":{{{TOLD}}}}}"#)),
            (r#","params":{"_meta":{}}"#, format!(r#"{{"_meta":{{{TOLD}}}}}"#)),
            // What is no object has no room, and is the backend's to judge.
            (r#","params":{"_meta":7}"#, r#"{"_meta":7}"#.to_owned()),
        ] {
            assert_eq!(sent(Era::Legacy, Era::Legacy, TraceState::Removed, params), expected);
        }
    }

    #[test]
    fn a_call_that_crosses_the_eras_says_it_once() {
        for params in
            ["", r#","params":{}"#, r#","params":{"name":"t"}"#, r#","params":{"_meta":{"traceparent":"old"}}"#]
        {
            let up = sent(Era::Legacy, Era::Modern, TraceState::Removed, params);
            assert_eq!(up.matches("traceparent").count(), 1, "{up}");
            assert_eq!(up.matches("_meta").count(), 1, "{up}");
            assert!(up.contains(TOLD) && up.contains(meta::PROTOCOL_VERSION), "{up}");
        }
        let own = format!(
            r#","params":{{"_meta":{{"{}":"2026-07-28","{}":{{}},"tracestate":"x=1"}}}}"#,
            meta::PROTOCOL_VERSION,
            meta::CLIENT_CAPABILITIES
        );
        let down = sent(Era::Modern, Era::Legacy, TraceState::Kept, &own);
        assert_eq!(down, format!(r#"{{"_meta":{{"tracestate":"x=1",{TOLD}}}}}"#));
    }

    #[test]
    fn only_a_text_in_meta_is_a_parent() {
        assert_eq!(in_meta(&envelope(r#","params":{"_meta":{"traceparent":"a\u0062"}}"#)).as_deref(), Some("ab"));
        for none in ["", r#","params":{"traceparent":"a"}"#, r#","params":{"_meta":{"traceparent":7}}"#] {
            assert_eq!(in_meta(&envelope(none)), None, "{none}");
        }
    }
}
