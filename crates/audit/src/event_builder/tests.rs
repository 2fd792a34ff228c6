//! Records of calls: what they hold, and what is withheld or redacted. How calls end is in `outcomes`.

mod notifications;
mod outcomes;

use super::*;
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::chain::Ruling;
use signalbox_engine::fact::Decision;
use signalbox_engine::{Absence, Caller, Principal, Proof, RefusedSubject, SessionKey};
use signalbox_tape::redact::{Action, PathRule, RedactionSettings};
use signalbox_wire::Era;
use std::sync::Arc;

const ALL: EventSelection =
    EventSelection { tool_invocations: true, security_events: true, performance_events: true, protocol_errors: true };

fn maker(logged: EventSelection, payloads: bool) -> EventBuilder {
    let redactor = Redactor::new(&RedactionSettings::default(), [1; 32]).unwrap();
    let run = AuditRun::new(1_700_000_000_000, 7);
    EventBuilder::new(
        TextPolicy { redactor, payloads },
        logged,
        Duration::from_secs(10),
        run,
        (Instant::now(), Duration::from_millis(1_700_000_000_000)),
    )
}

fn caller() -> Caller {
    Caller::of(Principal::named("user:ada"), Proof::ApiKey, "http")
}

fn decision(exchange: u64, by: &'static str, verdict: &'static str, rule: Option<&str>) -> Arc<Decision> {
    let ruling = Ruling { rule: rule.map(Arc::from), ..Ruling::of(verdict, "because".to_owned()) };
    Arc::new(Decision {
        at: Instant::now(),
        session: SessionKey(1),
        caller: caller(),
        exchange: Some(ExchangeId(exchange)),
        phase: "request",
        rulings: vec![(by, ruling.into())],
    })
}

fn intent(exchange: u64) -> Intent {
    Intent {
        exchange: ExchangeId(exchange),
        session: SessionKey(1),
        caller: caller(),
        method: "tools/call".into(),
        subject: Some("delete".into()),
        backend: "files".into(),
        kind: IntentKind::Call,
        decisions: vec![decision(exchange, "rules", "modify", Some("polite"))],
        message: Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete","arguments":{"path":"/a", "password":"hunter2"}}}"#,
        ),
        definition: Some(Bytes::from_static(br#"{"annotations":{"destructiveHint":true}}"#)),
    }
}

fn finished(exchange: u64, outcome: Outcome, took: Duration) -> FinishedFact {
    FinishedFact {
        at: Instant::now(),
        session: SessionKey(1),
        caller: caller(),
        exchange: ExchangeId(exchange),
        era: Era::Legacy,
        method: "tools/call".into(),
        subject: Some("files__delete".into()),
        backend: Some("files".into()),
        client: None,
        operation: ExchangeId(exchange),
        round: 1,
        outcome,
        took,
        bytes_in: 10,
        bytes_out: 20,
        trace: None,
        unreached: None,
    }
}

/// An event as it stands in a record.
type Told = Value;

fn tell(told: &mut Vec<Told>) -> impl FnMut(&AuditEvent<'_>) {
    |event| {
        let mut text = "{".to_owned();
        event.write(&mut text);
        text.push('}');
        told.push(serde_json::from_str(&text).unwrap());
    }
}

fn intended(maker: &mut EventBuilder, exchange: u64) -> Told {
    let mut told = Vec::new();
    maker.intent(intent(exchange), 5, &mut tell(&mut told));
    told.remove(0)
}

fn ended(maker: &mut EventBuilder, exchange: u64, outcome: Outcome, took: Duration) -> Vec<Told> {
    let mut told = Vec::new();
    maker.finished(&finished(exchange, outcome, took), &mut tell(&mut told));
    told
}

/// Arguments are there only if wanted, and without secrets.
#[test]
fn payloads_are_written_only_where_they_are_wanted_and_without_secrets() {
    let said = intended(&mut maker(ALL, true), 1);
    assert_eq!(said["details"]["arguments"]["path"], "/a", "{said}");
    assert!(!said.to_string().contains("hunter2"), "{said}");
}

/// Returns the `arguments` in the record of a call, if a path is redacted in this way.
fn recorded_arguments(method: &'static str, path: &str, action: Action) -> Option<Value> {
    let paths = vec![PathRule { method: None, path: path.to_owned(), action }];
    let settings = RedactionSettings { paths, ..RedactionSettings::none() };
    let mut maker = maker(ALL, true);
    maker.words.redactor = Redactor::new(&settings, [1; 32]).unwrap();
    let message = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"arguments":{{"card":"4111","list":[{{"card":4111}},2]}}}}}}"#
    );
    let mut told = Vec::new();
    maker.intent(Intent { method: method.into(), message: message.into(), ..intent(1) }, 5, &mut tell(&mut told));
    told.remove(0)["details"].as_object_mut().unwrap().remove("arguments")
}

/// Arguments are judged by the places that they had in the message.
#[test]
fn redacted_places_are_redacted_in_the_arguments_too() {
    const GONE: &str = "[redacted]";
    for method in ["tools/call", "prompts/get", "completion/complete", "x/other"] {
        let recorded = |path| recorded_arguments(method, path, Action::default());
        let list = serde_json::json!([{"card": 4111}, 2]);
        for path in ["/params/arguments/card", "/params/*/card", "/*/*/card", "/params/parameters/card"] {
            assert_eq!(recorded(path), Some(serde_json::json!({"card": GONE, "list": list})), "{method} {path}");
        }
        let inner = serde_json::json!({"card": "4111", "list": [{"card": GONE}, 2]});
        assert_eq!(recorded("/params/arguments/list/*/card"), Some(inner), "{method}");
        assert_eq!(recorded("/params/arguments"), Some(GONE.into()), "{method}");
        assert_eq!(recorded("/params"), None, "{method}");
        assert_eq!(recorded("/arguments/card").unwrap()["card"], "4111", "{method}");
        assert_eq!(recorded_arguments(method, "/params/arguments", Action::Remove), None, "{method}");
    }
}

#[test]
fn arguments_that_are_too_large_are_left_out_with_their_size() {
    let large =
        format!(r#"{{"method":"tools/call","params":{{"arguments":{{"path":"{}"}}}}}}"#, "x".repeat(MAX_ARGUMENTS));
    let mut told = Vec::new();
    maker(ALL, true).intent(Intent { message: large.into(), ..intent(1) }, 5, &mut tell(&mut told));
    let said = &told[0]["details"];
    assert!(said.get("arguments").is_none() && said["arguments_bytes"].as_u64() > Some(MAX_ARGUMENTS as u64), "{said}");
}

/// The words of rules, callers and backends are in records without secrets.
#[test]
fn secrets_in_the_words_of_decisions_and_subjects_are_taken_out() {
    const SECRET: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";
    let mut maker = maker(ALL, false);
    let mut written = Vec::new();
    let mut emit = |event: &AuditEvent<'_>| written.push(format!("{} {}", event.user_context, event.details));
    let told = |exchange| {
        let ruling = Ruling { rule: Some("tells".into()), ..Ruling::of("log", format!("token is {SECRET}")) };
        let of = decision(exchange, "rules", "log", None);
        Arc::new(Decision { rulings: vec![("rules", ruling.into())], ..(*of).clone() })
    };
    let uri = || Some(format!("https://host/file?access={SECRET}").into());
    maker.intent(
        Intent { decisions: vec![told(1)], method: "resources/read".into(), subject: uri(), ..intent(1) },
        1,
        &mut emit,
    );
    maker.decision(&told(1));
    let refused = finished(1, Outcome::Fault("refused"), Duration::ZERO);
    maker.finished(&FinishedFact { method: "resources/read".into(), ..refused }, &mut emit);
    maker.decision(&told(2));
    let read =
        FinishedFact { method: "resources/read".into(), subject: uri(), ..finished(2, Outcome::Ok, Duration::ZERO) };
    maker.finished(&read, &mut emit);
    let unreached = || Some(Box::new(RefusedSubject { name: uri().unwrap(), absence: Absence::Hidden }));
    let lost = FinishedFact {
        unreached: unreached(),
        subject: None,
        ..finished(3, Outcome::Fault("unknown_tool"), Duration::ZERO)
    };
    maker.finished(&lost, &mut emit);
    let refused = RefusedFact {
        at: Instant::now(),
        caller: caller(),
        session: SessionKey(1),
        status: None,
        reason: "invalid_request",
        detail: format!("no: {SECRET}"),
        exchange: Some(ExchangeId(4)),
        unreached: unreached(),
        notification: None,
    };
    maker.refused(&refused, &mut emit);
    let odd = finished(5, Outcome::Fault("method_not_found"), Duration::ZERO);
    maker.finished(&FinishedFact { method: format!("m/{SECRET}").into(), ..odd }, &mut emit);
    assert!(written.len() >= 8, "{written:#?}");
    for record in written {
        assert!(!record.contains(SECRET), "{record}");
    }
}

/// Who approved a call is in its records.
#[test]
fn the_person_who_decided_is_in_the_decisions() {
    let mut maker = maker(ALL, false);
    let inputs = vec![("message", "{\"secret\":1}".to_owned()), ("person", "edited by key:bob".to_owned())];
    let ruling = Ruling { inputs, ..Ruling::of("modify", String::new()) };
    let released =
        Decision { rulings: vec![("permissions", ruling.into())], ..(*decision(1, "x", "pass", None)).clone() };
    let mut details = String::new();
    maker.intent(Intent { decisions: vec![Arc::new(released)], ..intent(1) }, 1, &mut |event| {
        details = event.details.to_owned();
    });
    let details: Value = serde_json::from_str(&details).unwrap();
    assert_eq!(details["decisions"][0]["person"], "edited by key:bob", "{details}");
    assert!(!details.to_string().contains("secret"), "what was edited is a payload: {details}");
}

/// Texts of rules that were filled in with values of the message are withheld from readers who may not see arguments;
/// other texts are not.
#[test]
fn texts_that_quote_the_message_are_withheld_with_the_arguments() {
    for quotes in [true, false] {
        let mut maker = maker(ALL, false);
        let ruling = Ruling { quotes, rule: Some("no".into()), ..Ruling::of("refuse", "not SEKRIT".to_owned()) };
        let again = Ruling::of("refuse", "not SEKRIT".to_owned());
        let rulings = vec![("rules", ruling.into()), ("gateway", again.into())];
        maker.decision(&Decision { rulings, ..(*decision(1, "x", "pass", None)).clone() });
        let (mut place, mut lines) = (crate::ChainPlace::start("c"), Vec::new());
        maker.finished(&finished(1, Outcome::Fault("refused"), Duration::ZERO), &mut |event| {
            let mut line = String::new();
            place.append(event, &mut line);
            lines.push(crate::AuditRecord::read(line.trim_end()).unwrap());
        });
        assert_eq!(lines.len(), 2, "the outcome and the violation");
        for record in lines {
            assert!(record.value.to_string().contains("SEKRIT"), "{record:?}");
            assert_eq!(record.without_payloads().to_string().contains("SEKRIT"), !quotes, "{record:?}");
        }
    }
}

/// Rules for places reach the subject, which a record has apart from its message.
#[test]
fn rules_for_the_place_of_a_subject_reach_its_column() {
    let rule = |path: &str| PathRule { method: None, path: path.to_owned(), action: Action::Remove };
    for (method, place, subject) in [
        ("resources/read", "/params/uri", "crm://people/amber-walrus"),
        ("resources/subscribe", "/params/uri", "crm://people/amber-walrus"),
        ("prompts/get", "/params/name", "amber-walrus"),
        ("tools/call", "/params/name", "amber-walrus"),
        ("completion/complete", "/params/ref/uri", "crm://people/amber-walrus"),
    ] {
        for (paths, is_kept) in [(vec![], true), (vec![rule("/params/other")], true), (vec![rule(place)], false)] {
            let settings = RedactionSettings { paths, ..RedactionSettings::default() };
            let mut maker = maker(ALL, false);
            let redactor = Redactor::new(&settings, [1; 32]).unwrap();
            maker.follow(TextPolicy { redactor, payloads: false }, ALL, Duration::from_secs(10));
            let mut told = Vec::new();
            let before = Intent { method: method.into(), subject: Some(subject.into()), ..intent(1) };
            maker.intent(before, 1, &mut tell(&mut told));
            let after = |exchange, outcome| FinishedFact {
                method: method.into(),
                subject: Some(subject.into()),
                ..finished(exchange, outcome, Duration::ZERO)
            };
            maker.finished(&after(1, Outcome::Ok), &mut tell(&mut told));
            let hidden = Some(Box::new(RefusedSubject { name: subject.into(), absence: Absence::Hidden }));
            let lost = FinishedFact { unreached: hidden, subject: None, ..after(2, Outcome::Fault("unknown_tool")) };
            maker.finished(&lost, &mut tell(&mut told));
            assert_eq!(told.len(), 4, "{told:#?}");
            for record in told {
                assert_eq!(record.to_string().contains("amber-walrus"), is_kept, "{method} {settings:?}: {record}");
            }
        }
    }
}
