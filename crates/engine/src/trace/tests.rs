//! What a call says of its trace when it leaves for a backend of either era.

use super::*;
use crate::bridge::{self, Offered};
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
        trace: Some(Arc::new(TraceSent { call: CALL, state, sent: OnceLock::new() })),
        tries: 0,
    };
    bridge::request(&mut call, revision(to), Offered::default(), "{}").unwrap();
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
    for params in ["", r#","params":{}"#, r#","params":{"name":"t"}"#, r#","params":{"_meta":{"traceparent":"old"}}"#] {
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
