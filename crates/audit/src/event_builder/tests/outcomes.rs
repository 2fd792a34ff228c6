//! Records of how requests end.

use super::*;

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

/// A refusal by a policy is an outcome and a violation; a forged request is critical.
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

#[test]
fn exchanges_that_never_end_are_not_remembered_without_bound() {
    let mut maker = maker(ALL, false);
    for exchange in 0..MAX_OPEN as u64 + 10 {
        maker.decision(&decision(exchange, "rules", "modify", None));
    }
    assert_eq!(maker.open.len(), MAX_OPEN);
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
