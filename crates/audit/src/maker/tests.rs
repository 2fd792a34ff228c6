use super::*;
use bytes::Bytes;
use serde_json::Value;
use signalbox_engine::chain::Ruling;
use signalbox_engine::fact::Decision;
use signalbox_engine::{Principal, Proof, SessionKey};
use signalbox_tape::redact::RedactionSettings;
use signalbox_wire::Era;
use std::sync::Arc;

const ALL: Logged =
    Logged { tool_invocations: true, security_events: true, performance_events: true, protocol_errors: true };

fn maker(logged: Logged, payloads: bool) -> Maker {
    let redactor = payloads.then(|| Redactor::new(&RedactionSettings::default(), [1; 32]).unwrap());
    let run = AuditRun::new(1_700_000_000_000, 7);
    Maker::new(logged, redactor, Duration::from_secs(10), run, (Instant::now(), 1_700_000_000_000))
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
        is_copy: false,
        decisions: vec![decision(exchange, "rules", "modify", Some("polite"))],
        message: Bytes::from_static(
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"delete","arguments":{"path":"/a", "password":"hunter2"}}}"#,
        ),
        definition: Some(Bytes::from_static(br#"{"annotations":{"destructiveHint":true}}"#)),
    }
}

fn finished(exchange: u64, outcome: Outcome, took: Duration) -> Fact {
    Fact::Finished(Arc::new(Finished {
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
    }))
}

fn details(event: &AuditEvent) -> Value {
    serde_json::from_str(&event.details).unwrap()
}

/// G-25, G-26: a call has an intent and an outcome under one id, with its decision, policy and risk.
#[test]
fn g_25_g_26_a_call_has_an_intent_and_an_outcome() {
    let mut maker = maker(ALL, false);
    let before = maker.intent(&intent(1), 5);
    assert_eq!(
        (before.source, before.risk_level, before.event_type),
        (PROTOCOL, RiskLevel::High, EventType::ToolInvocation)
    );
    let said = details(&before);
    assert_eq!(
        (&said["phase"], &said["tool"], &said["backend"]),
        (&"intent".into(), &"delete".into(), &"files".into())
    );
    assert_eq!((&said["decision"], &said["policy"]), (&"allow".into(), &"rules/polite".into()));
    assert!(said.get("arguments").is_none(), "{said}");
    let mut after = Vec::new();
    maker.fact(&finished(1, Outcome::Ok, Duration::from_millis(3)), &mut after);
    let [after] = &after[..] else { panic!("{after:?}") };
    assert_eq!((&after.correlation_id, after.risk_level), (&before.correlation_id, RiskLevel::High));
    let said = details(after);
    assert_eq!(
        (&said["phase"], &said["status"], &said["forwarded"]),
        (&"outcome".into(), &"success".into(), &true.into())
    );
    let user: Value = serde_json::from_str(&after.user_context).unwrap();
    assert_eq!((&user["principal"], &user["proof"]), (&"user:ada".into(), &"api_key".into()));
    assert!(maker.open.is_empty());
}

/// Arguments are there only if wanted, and without secrets.
#[test]
fn payloads_are_written_only_where_they_are_wanted_and_without_secrets() {
    let said = details(&maker(ALL, true).intent(&intent(1), 5));
    assert_eq!(said["arguments"]["path"], "/a", "{said}");
    assert!(!said.to_string().contains("hunter2"), "{said}");
}

#[test]
fn arguments_that_are_too_large_are_left_out_with_their_size() {
    let large =
        format!(r#"{{"method":"tools/call","params":{{"arguments":{{"path":"{}"}}}}}}"#, "x".repeat(MAX_ARGUMENTS));
    let said = details(&maker(ALL, true).intent(&Intent { message: large.into(), ..intent(1) }, 5));
    assert!(said.get("arguments").is_none() && said["arguments_bytes"].as_u64() > Some(MAX_ARGUMENTS as u64), "{said}");
}

/// G-22, G-27: what a policy refuses is an outcome and a violation; what was forged is critical.
#[test]
fn g_27_a_refusal_is_a_violation_of_high_risk_and_a_forgery_of_critical_risk() {
    let mut maker = maker(ALL, false);
    let mut out = Vec::new();
    maker.fact(&Fact::Decision(decision(2, "rules", "refuse", Some("no-delete"))), &mut out);
    maker.fact(&Fact::Decision(decision(2, "gateway", "refused", None)), &mut out);
    maker.fact(&finished(2, Outcome::Fault("refused"), Duration::ZERO), &mut out);
    let [outcome, violation] = &out[..] else { panic!("{out:?}") };
    assert_eq!(details(outcome)["status"], "denied");
    assert_eq!((&details(outcome)["decision"], &details(outcome)["forwarded"]), (&"deny".into(), &false.into()));
    assert_eq!((violation.source, violation.risk_level), (SECURITY, RiskLevel::High));
    assert_eq!(details(violation)["policy"], "rules/no-delete");
    assert_eq!(details(violation)["violation"], "policy_violation");
    out.clear();
    maker.fact(&finished(3, Outcome::Fault("replayed"), Duration::ZERO), &mut out);
    assert_eq!(out.last().unwrap().risk_level, RiskLevel::Critical);
}

/// G-38: each kind of event can be left out.
#[test]
fn g_38_each_kind_of_event_is_written_only_if_it_is_wanted() {
    let told = |logged: Logged| {
        let mut maker = maker(logged, false);
        let mut out = Vec::new();
        maker.intent(&intent(1), 5);
        maker.fact(&finished(1, Outcome::Ok, Duration::from_secs(11)), &mut out);
        maker.fact(&finished(2, Outcome::Fault("refused"), Duration::ZERO), &mut out);
        maker.fact(&finished(3, Outcome::Fault("invalid_params"), Duration::ZERO), &mut out);
        out.iter().map(|event| event.event_type).collect::<Vec<_>>()
    };
    use EventType::{Performance, ProtocolError, SecurityViolation, ToolInvocation};
    let all = [ToolInvocation, Performance, ToolInvocation, SecurityViolation, ToolInvocation, ProtocolError];
    assert_eq!(told(ALL), all);
    let without = |kind: EventType| all.into_iter().filter(|one| *one != kind).collect::<Vec<_>>();
    assert_eq!(told(Logged { tool_invocations: false, ..ALL }), without(ToolInvocation));
    assert_eq!(told(Logged { security_events: false, ..ALL }), without(SecurityViolation));
    assert_eq!(told(Logged { performance_events: false, ..ALL }), without(Performance));
    assert_eq!(told(Logged { protocol_errors: false, ..ALL }), without(ProtocolError));
}

/// NO-7: the statuses.
#[test]
fn no_7_a_call_ends_with_one_of_the_statuses() {
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
        let mut out = Vec::new();
        maker(ALL, false).fact(&finished(1, outcome, Duration::ZERO), &mut out);
        assert_eq!(details(&out[0])["status"], status, "{outcome:?}");
    }
}

/// What is remembered of exchanges is bounded.
#[test]
fn exchanges_that_never_end_are_not_remembered_without_bound() {
    let mut maker = maker(ALL, false);
    for exchange in 0..MAX_OPEN as u64 + 10 {
        maker.fact(&Fact::Decision(decision(exchange, "rules", "modify", None)), &mut Vec::new());
    }
    assert_eq!(maker.open.len(), MAX_OPEN);
}
