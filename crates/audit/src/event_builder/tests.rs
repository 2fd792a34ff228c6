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

/// A call has an intent and an outcome under one id, with its decision, policy and risk.
/// Proves G-25 and G-26.
#[test]
fn a_call_has_an_intent_and_an_outcome() {
    let mut maker = maker(ALL, false);
    let before = intended(&mut maker, 1);
    assert_eq!(before["timestamp"], "1970-01-01T00:00:00.005Z");
    assert_eq!((&before["source"], &before["risk_level"]), (&PROTOCOL.into(), &"high".into()));
    assert_eq!(before["event_type"], "tool_invocation");
    let said = &before["details"];
    assert_eq!(
        (&said["phase"], &said["tool"], &said["backend"]),
        (&"intent".into(), &"delete".into(), &"files".into())
    );
    assert_eq!((&said["decision"], &said["policy"]), (&"allow".into(), &"rules/polite".into()));
    assert!(said.get("arguments").is_none(), "{said}");
    let after = ended(&mut maker, 1, Outcome::Ok, Duration::from_millis(3));
    let [after] = &after[..] else { panic!("{after:?}") };
    assert_eq!((&after["correlation_id"], &after["risk_level"]), (&before["correlation_id"], &"high".into()));
    let said = &after["details"];
    assert_eq!(
        (&said["phase"], &said["status"], &said["forwarded"]),
        (&"outcome".into(), &"success".into(), &true.into())
    );
    let user = &after["user_context"];
    assert_eq!(
        (&user["principal"], &user["proof"], &user["session"]),
        (&"user:ada".into(), &"api_key".into(), &1.into())
    );
    assert!(maker.open.is_empty());
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

/// What a policy refuses is an outcome and a violation; what was forged is critical.
/// Proves G-22 and G-27.
#[test]
fn a_refusal_is_a_violation_of_high_risk_and_a_forgery_of_critical_risk() {
    let mut maker = maker(ALL, false);
    maker.decision(&decision(2, "rules", "refuse", Some("no-delete")));
    maker.decision(&decision(2, "gateway", "refused", None));
    let told = ended(&mut maker, 2, Outcome::Fault("refused"), Duration::ZERO);
    let [outcome, violation] = &told[..] else { panic!("{told:?}") };
    let said = &outcome["details"];
    assert_eq!(
        (&said["status"], &said["decision"], &said["forwarded"]),
        (&"denied".into(), &"deny".into(), &false.into())
    );
    assert_eq!((&violation["source"], &violation["risk_level"]), (&SECURITY.into(), &"high".into()));
    assert_eq!(violation["details"]["policy"], "rules/no-delete");
    assert_eq!(violation["details"]["violation"], "policy_violation");
    let told = ended(&mut maker, 3, Outcome::Fault("replayed"), Duration::ZERO);
    assert_eq!(told.last().unwrap()["risk_level"], "critical");
}

/// A rule that let a call pass is not what made it fail.
#[test]
fn a_call_that_was_allowed_and_failed_names_the_gateway() {
    for (verdict, policy) in [("allow", "gateway"), ("log", "gateway"), ("refuse", "rules/one"), ("hold", "rules/one")]
    {
        let mut maker = maker(ALL, false);
        maker.decision(&decision(2, "rules", verdict, Some("one")));
        maker.decision(&decision(2, "gateway", "timed_out", None));
        let told = ended(&mut maker, 2, Outcome::Fault("timed_out"), Duration::ZERO);
        assert_eq!(told[0]["details"]["policy"], policy, "{verdict}");
    }
}

/// Each kind of event can be left out.
/// Proves G-38.
#[test]
fn each_kind_of_event_is_written_only_if_it_is_wanted() {
    let told = |logged: EventSelection| {
        let mut maker = maker(logged, false);
        intended(&mut maker, 1);
        let ends = [
            ended(&mut maker, 1, Outcome::Ok, Duration::from_secs(11)),
            ended(&mut maker, 2, Outcome::Fault("refused"), Duration::ZERO),
            ended(&mut maker, 3, Outcome::Fault("invalid_params"), Duration::ZERO),
        ];
        ends.concat()
            .iter()
            .map(|told| EventType::of(told["event_type"].as_str().unwrap()).unwrap())
            .collect::<Vec<_>>()
    };
    use EventType::{Performance, ProtocolError, SecurityViolation, ToolInvocation};
    let all = [ToolInvocation, Performance, ToolInvocation, SecurityViolation, ToolInvocation, ProtocolError];
    assert_eq!(told(ALL), all);
    let without = |kind: EventType| all.into_iter().filter(|one| *one != kind).collect::<Vec<_>>();
    assert_eq!(told(EventSelection { tool_invocations: false, ..ALL }), without(ToolInvocation));
    assert_eq!(told(EventSelection { security_events: false, ..ALL }), without(SecurityViolation));
    assert_eq!(told(EventSelection { performance_events: false, ..ALL }), without(Performance));
    assert_eq!(told(EventSelection { protocol_errors: false, ..ALL }), without(ProtocolError));
}

/// Outcomes are timed by the same clock as intents, also after it was set, so that no call ends before it begins.
#[test]
fn an_outcome_has_the_time_of_the_wall_clock_as_it_is_now() {
    let mut maker = maker(ALL, false);
    let now = Instant::now();
    maker.set_clocks((now, Duration::from_micros(1_800_000_000_000_900)));
    for (at, expected) in [
        (now + Duration::from_micros(200), "2027-01-15T08:00:00.001Z"),
        (now - Duration::from_micros(1_000), "2027-01-15T07:59:59.999Z"),
    ] {
        let mut told = Vec::new();
        let ended = FinishedFact { at, ..finished(1, Outcome::Ok, Duration::ZERO) };
        maker.finished(&ended, &mut tell(&mut told));
        assert_eq!(told[0]["timestamp"], expected);
    }
}

/// Proves NO-7.
#[test]
fn a_call_ends_with_one_of_the_statuses() {
    for (outcome, status) in [
        (Outcome::Ok, "success"),
        (Outcome::ToolError, "error"),
        (Outcome::BackendError, "error"),
        (Outcome::Fault("refused"), "denied"),
        (Outcome::Fault("killed"), "killed"),
        (Outcome::Fault("rate_limited"), "rate_limited"),
        (Outcome::Fault("invalid_params"), "invalid_args"),
        (Outcome::Fault("breaker_open"), "circuit_open"),
        (Outcome::Fault("timed_out"), "error"),
        (Outcome::Cancelled, "cancelled"),
    ] {
        let told = ended(&mut maker(ALL, false), 1, outcome, Duration::ZERO);
        assert_eq!(told[0]["details"]["status"], status, "{outcome:?}");
    }
}

/// What is remembered of exchanges is bounded.
#[test]
fn exchanges_that_never_end_are_not_remembered_without_bound() {
    let mut maker = maker(ALL, false);
    for exchange in 0..MAX_OPEN as u64 + 10 {
        maker.decision(&decision(exchange, "rules", "modify", None));
    }
    assert_eq!(maker.open.len(), MAX_OPEN);
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

/// Switches come before permissions: what is off is recorded as killed, although its caller was told
/// of an unknown name.
#[test]
fn what_is_switched_off_is_recorded_as_killed_where_it_is_hidden_too() {
    for (absence, status, reason) in [(Absence::Hidden, "denied", "hidden"), (Absence::SwitchedOff, "killed", "killed")]
    {
        let (mut maker, mut written) = (maker(ALL, false), Vec::new());
        let unreached = Some(Box::new(RefusedSubject { name: "greet".into(), absence }));
        let lost = finished(3, Outcome::Fault("unknown_tool"), Duration::ZERO);
        maker.finished(&FinishedFact { unreached, subject: None, ..lost }, &mut |event: &AuditEvent<'_>| {
            written.push(serde_json::from_str::<serde_json::Value>(event.details).unwrap());
        });
        assert_eq!((&written[0]["phase"], &written[0]["status"]), (&"outcome".into(), &status.into()), "{written:#?}");
        assert_eq!(written[1]["reason"], reason, "{written:#?}");
    }
}

/// Whatever a request ends with but success, it has an outcome, even if nothing else is known of it.
#[test]
fn a_request_that_ends_with_a_fault_has_an_outcome_whatever_the_reason() {
    let reasons = [
        "parse_error",
        "invalid_request",
        "method_not_found",
        "invalid_params",
        "missing_fields",
        "invalid_security_context",
        "wrong_tool_version",
        "invalid_arguments",
        "not_served",
        "unknown_tool",
        "unknown_prompt",
        "resource_not_found",
        "not_initialized",
        "session_closed",
        "duplicate_id",
        "header_mismatch",
        "unsupported_version",
        "missing_capability",
        "backend_died",
        "backend_down",
        "breaker_open",
        "era_refused",
        "backend_garbage",
        "timed_out",
        "overloaded",
        "rate_limited",
        "not_bridged",
        "sign_in_needed",
        "refused",
        "unauthenticated",
        "insufficient_scope",
        "denied",
        "killed",
        "quarantined",
        "hold_expired",
        "draining",
        "not_recorded",
        "internal",
        "rule_error",
        "tampered",
    ];
    for reason in reasons {
        for absence in
            [Absence::NotSought, Absence::Unknown, Absence::UnknownToLimited, Absence::Hidden, Absence::SwitchedOff]
        {
            let mut maker = maker(ALL, false);
            let mut kinds = Vec::new();
            let unreached = Some(Box::new(RefusedSubject { name: "odd".into(), absence }));
            let end = FinishedFact {
                subject: None,
                backend: None,
                unreached,
                ..finished(1, Outcome::Fault(reason), Duration::ZERO)
            };
            maker.finished(&end, &mut |event| {
                assert!(event.correlation_id.is_some() && event.details.contains(r#""tool":"odd""#), "{event:?}");
                kinds.push(event.event_type);
            });
            assert_eq!(kinds.first(), Some(&EventType::ToolInvocation), "{reason}");
            let violated = matches!(absence, Absence::Hidden | Absence::SwitchedOff | Absence::UnknownToLimited)
                || violation::of(reason).is_some();
            assert_eq!(kinds.contains(&EventType::SecurityViolation), violated, "{reason} {absence:?}");
        }
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

/// A read from the cache and an end of a shared subscription have an intent, because nothing leaves without one, and do
/// not leave.
#[test]
fn a_call_that_the_gateway_answers_after_its_intent_was_not_forwarded() {
    for (by, verdict, forwarded) in
        [("reads", "kept", false), ("subscriptions", "kept", false), ("rules", "kept", true), ("reads", "pass", true)]
    {
        let mut maker = maker(ALL, false);
        intended(&mut maker, 1);
        maker.decision(&decision(1, by, verdict, None));
        let all = ended(&mut maker, 1, Outcome::Ok, Duration::from_secs(60));
        let said = &all[0]["details"];
        assert_eq!((&said["forwarded"], &said["status"]), (&forwarded.into(), &"success".into()), "{by} {verdict}");
        assert_eq!(all.len(), 1 + usize::from(forwarded), "only a call that left was slow: {all:?}");
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
