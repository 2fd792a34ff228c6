//! What facts bring beside the messages themselves, and what is told besides facts.

use super::facts::{self, Facts, LONG};
use super::memory::Memory;
use super::{messages, recorded};
use crate::recorder::{RecorderSettings, SessionHash};
use crate::redact::{Action, PathRule, RedactionSettings, Redactor};
use bytes::Bytes;
use signalbox_engine::caller::Identity;
use signalbox_engine::fact::{
    FinishedFact, HttpHead, LostFact, MessageFact, Outcome, Point, RefusedFact, TransportData,
};
use signalbox_engine::record::{BackendOffer, Content, Entry, RulesEntry};
use signalbox_engine::{Caller, ClientProfile, ExchangeId, Fact, FactSink, Principal, Proof, SessionKey};
use signalbox_wire::{Era, Revision};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::{Duration, Instant};

fn bob(port: u16) -> Caller {
    Caller::new(Identity {
        principal: Principal::named("bob"),
        proof: Proof::Certificate,
        claims: vec![("subject".into(), "CN=bob".into())],
        address: Some(([10, 0, 0, 7], port).into()),
        transport: "http",
        standing: None,
    })
}

fn message(text: &str) -> MessageFact {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    MessageFact::new(Instant::now(), SessionKey::GATEWAY, bob(1), Point::BackendOut, bytes)
}

/// One round of a call without a session.
fn round(exchange: u64, operation: u64, round: u32, port: u16) -> Fact {
    let info = Some(Bytes::from_static(br#"{"name":"agent","version":"3"}"#));
    let client = ClientProfile::new(Revision::LATEST, Bytes::from_static(b"{}"), info);
    Fact::Finished(Arc::new(FinishedFact {
        at: Instant::now(),
        session: SessionKey(900 + exchange),
        caller: bob(port),
        exchange: ExchangeId(exchange),
        era: Era::Modern,
        method: "tools/call".into(),
        subject: Some("add".into()),
        backend: None,
        client: Some(Arc::new(client)),
        operation: ExchangeId(operation),
        round,
        outcome: Outcome::Ok,
        took: Duration::from_millis(1),
        bytes_in: 1,
        bytes_out: 2,
        trace: None,
        unreached: None,
    }))
}

fn told(facts: &[Fact]) -> Vec<Entry> {
    let memory = Memory::default();
    let recorder = memory.record(RecorderSettings::default(), Redactor::none());
    recorder.facts(facts);
    recorder.stop(LONG);
    memory.all_entries()
}

#[test]
fn numbers_on_the_tape_are_those_of_the_process() {
    let (entries, _) = recorded(RecorderSettings::default(), |facts| {
        facts.session(77, None);
        facts.call(77, 1234, "add", Outcome::Ok);
        facts.session(12, None);
    });
    assert!(entries[..6].iter().all(|entry| entry.session == Some(77)));
    assert!(entries[1..6].iter().all(|entry| entry.exchange == Some(1234)));
    assert_eq!(entries[6].session, Some(12));
}

/// Proves S-28 and S-71.
#[test]
fn a_stateless_exchange_says_who_called_and_the_caller_is_told_of_once() {
    let entries = told(&[round(5, 5, 1, 50_001), round(6, 6, 1, 50_002)]);
    let [client, first, second] = &entries[..] else { panic!("{entries:?}") };
    let Content::Client(told) = &client.content else { panic!("{client:?}") };
    let info = &told.info;
    assert_eq!((&*client.principal, client.session, client.exchange), ("bob", None, None));
    assert_eq!((info.client.as_deref(), info.client_version.as_deref()), (Some("agent"), Some("3")));
    assert_eq!((info.revision.as_deref(), &*info.transport), (Some("2026-07-28"), "http"));
    assert_eq!((info.proof.as_deref(), info.address.as_deref()), (Some("certificate"), Some("10.0.0.7")));
    for end in [first, second] {
        let Content::Finished(end) = &end.content else { panic!("{end:?}") };
        assert_eq!(end.client, Some(told.number));
    }
}

/// Proves S-16.
#[test]
fn rounds_of_one_operation_are_linked() {
    let entries = told(&[round(5, 5, 1, 1), round(9, 5, 2, 1)]);
    let ends: Vec<_> = entries
        .iter()
        .filter_map(|entry| match &entry.content {
            Content::Finished(end) => Some((entry.exchange, end.operation, end.round)),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [(Some(5), None, 1), (Some(9), Some(5), 2)]);
}

/// Proves S-29.
#[test]
fn a_session_tells_how_its_caller_was_proved_and_its_id_only_as_a_keyed_hash() {
    let hash = SessionHash::new(&[7; 32]);
    let with = RecorderSettings { session_hash: Some(hash.clone()), ..RecorderSettings::default() };
    let external = |settings| {
        let (entries, _) = recorded(settings, |facts| facts.session(1, Some("ann-code")));
        let Content::Session(info) = &entries[0].content else { panic!("{:?}", entries[0]) };
        assert_eq!(info.proof.as_deref(), Some("local_user"));
        info.external.clone()
    };
    assert_eq!(external(with), Some(hash.of("s-1")));
    assert_eq!(external(RecorderSettings::default()), None, "without a key a credential is left out");
}

/// Proves S-15.
#[test]
fn own_repeated_and_lost_messages_are_marked() {
    let (own, again, lost) = (r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#, facts::result(1), facts::result(2));
    let carried = Some(Arc::new(TransportData { event_id: Some("7_3".into()), http: None }));
    let entries = told(&[
        Fact::Message(MessageFact { own: true, number: 4, ..message(own) }),
        Fact::Message(MessageFact { number: 5, again: NonZeroU64::new(4), carried, ..message(&again) }),
        Fact::Message(MessageFact { lost: Some("orphan"), ..message(&lost) }),
        Fact::Lost(Arc::new(LostFact {
            at: Instant::now(),
            session: SessionKey::GATEWAY,
            caller: bob(1),
            exchange: None,
            point: Point::ClientOut,
            number: 5,
            reason: "overflow",
        })),
    ]);
    let seen = messages(&entries);
    assert!(seen[0].own && !seen[1].own);
    assert_eq!((seen[0].number, seen[1].number, seen[1].again), (4, 5, NonZeroU64::new(4)));
    assert_eq!(seen[1].carried.as_ref().and_then(|carried| carried.event_id.as_deref()), Some("7_3"));
    assert_eq!((seen[1].lost.as_deref(), seen[2].lost.as_deref()), (None, Some("orphan")));
    assert!(entries.iter().all(|entry| entry.session.is_none()), "the gateway's own belongs to no session");
    let Content::Lost(lost) = &entries[3].content else { panic!("{:?}", entries[3]) };
    assert_eq!((lost.number, lost.point, &*lost.reason), (5, Point::ClientOut, "overflow"));
}

#[test]
fn what_is_refused_before_there_is_an_exchange_is_on_the_tape_with_its_caller() {
    let entries = told(&[Fact::Refused(Arc::new(RefusedFact {
        at: Instant::now(),
        caller: bob(1),
        session: SessionKey::GATEWAY,
        status: Some(404),
        reason: "unknown_session",
        detail: "there is no such session".to_owned(),
        exchange: None,
        unreached: None,
        notification: None,
    }))]);
    let (Content::Client(client), Content::Refused(refused)) = (&entries[0].content, &entries[1].content) else {
        panic!("{entries:?}")
    };
    assert_eq!((refused.status, &*refused.reason, refused.client), (Some(404), "unknown_session", Some(client.number)));
}

/// Headers of tool arguments repeat the body, under names that no rule knows.
#[test]
fn heads_of_messages_are_redacted_like_their_bodies() {
    let paths = vec![PathRule { method: None, path: "/params/arguments/card".into(), action: Action::default() }];
    let redactor = Redactor::new(&RedactionSettings { paths, ..RedactionSettings::default() }, [1; 32]).unwrap();
    let memory = Memory::default();
    let recorder = memory.record(RecorderSettings::default(), redactor);
    let secret = "AKIAABCDEFGHIJKLMNOP";
    let head = HttpHead {
        url: Some(format!("/mcp?x={secret}")),
        headers: vec![("mcp-param-c".into(), "4111".into()), ("x-note".into(), format!("is {secret}"))],
        ..HttpHead::default()
    };
    for text in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"card":"4111"}}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"city":"4111"}}}"#,
    ] {
        let carried = Some(Arc::new(TransportData { event_id: None, http: Some(head.clone()) }));
        recorder.fact(&Fact::Message(MessageFact { carried, ..message(text) }));
    }
    recorder.stop(LONG);
    let entries = memory.entries();
    assert!(!format!("{entries:?}").contains(secret), "{entries:?}");
    let heads: Vec<_> =
        messages(&entries).iter().map(|entry| entry.carried.as_ref().unwrap().http.clone().unwrap()).collect();
    assert!(heads.iter().all(|head| head.redacted && head.headers[1].1 == "is [redacted]"), "{heads:?}");
    assert_eq!((&*heads[0].headers[0].1, &*heads[1].headers[0].1), ("[redacted]", "4111"));
}

/// What was taken out is marked, also if nothing stands in its place.
/// Proves S-61.
#[test]
fn whatever_something_was_taken_out_of_is_marked() {
    let settings = RedactionSettings { ..RedactionSettings::default() };
    let secret = "AKIAABCDEFGHIJKLMNOP";
    let memory = Memory::default();
    let recorder = memory.record(RecorderSettings::default(), Redactor::new(&settings, [1; 32]).unwrap());
    let say = |text: &str| recorder.fact(&Fact::Message(message(text)));
    say(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"password":"hush"}}"#);
    say(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":{"plain":"hush"}}"#);
    Facts::new(&recorder).ruling(1, 1, secret);
    recorder.rules(RulesEntry { hash: "h".into(), text: format!("say {secret}"), redacted: false });
    let parts = vec![("tools".into(), Bytes::from(format!(r#"[{{"name":"{secret}"}}]"#)))];
    recorder.backend(BackendOffer { backend: "math".into(), parts, ..BackendOffer::default() });
    recorder.stop(LONG);
    let entries = memory.entries();
    assert!(!format!("{entries:?}").contains(secret), "{entries:?}");
    let marks: Vec<bool> = entries
        .iter()
        .map(|entry| match &entry.content {
            Content::Message(message) => message.redacted,
            Content::Decisions(list) => list[0].redacted,
            Content::Rules(rules) => rules.redacted,
            Content::Backend(seen) => seen.redacted,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(marks, [true, false, true, true, true]);
}
