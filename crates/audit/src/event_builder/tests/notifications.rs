//! Records of notifications of clients that no backend gets.

use super::*;
use serde_json::json;

fn refused(reason: &'static str, absence: Absence) -> RefusedFact {
    let ruling = Ruling { rule: Some("nf".into()), ..Ruling::of("refuse", "because".to_owned()) };
    let decision = Decision {
        at: Instant::now(),
        session: SessionKey(3),
        caller: Caller::anonymous("http"),
        exchange: None,
        phase: "notification",
        rulings: vec![("rules", ruling.into())],
    };
    let notification = RefusedNotification {
        method: "notifications/foo".to_owned().into(),
        backend: "b".into(),
        decisions: vec![Arc::new(decision)],
    };
    RefusedFact {
        at: Instant::now(),
        caller: Caller::anonymous("http"),
        session: SessionKey(3),
        status: None,
        reason,
        detail: "no".to_owned(),
        exchange: None,
        unreached: Some(Box::new(RefusedSubject { name: "notifications/foo".into(), absence })),
        notification: Some(Box::new(notification)),
    }
}

/// Returns the kinds and details of the records of a refusal.
fn records(logged: EventSelection, refused: &RefusedFact) -> Vec<(&'static str, Value)> {
    let mut maker = maker(logged, false);
    let mut found = Vec::new();
    maker.refused(refused, &mut |event: &AuditEvent<'_>| {
        assert!(event.user_context.contains("\"session\":3"), "{}", event.user_context);
        found.push((event.event_type.word(), serde_json::from_str(event.details).unwrap()));
    });
    found
}

#[test]
fn a_refused_notification_has_one_record_with_its_status_subject_backend_and_policy() {
    for (reason, absence, recorded, status) in [
        ("refused", Absence::NotSought, "refused", "denied"),
        ("unknown_tool", Absence::Hidden, "hidden", "denied"),
        ("unknown_tool", Absence::SwitchedOff, "killed", "killed"),
        ("rate_limited", Absence::NotSought, "rate_limited", "rate_limited"),
    ] {
        let found = records(ALL, &refused(reason, absence));
        let [("security_violation", details)] = &found[..] else { panic!("{reason}: {found:#?}") };
        for (name, value) in [
            ("reason", json!(recorded)),
            ("phase", json!("notification")),
            ("method", json!("notifications/foo")),
            ("tool", json!("notifications/foo")),
            ("backend", json!("b")),
            ("forwarded", json!(false)),
            ("status", json!(status)),
            ("decision", json!("deny")),
            ("policy", json!("rules/nf")),
        ] {
            assert_eq!(details[name], value, "{reason}: {name}");
        }
    }
    let early = records(ALL, &refused("not_initialized", Absence::NotSought));
    assert!(matches!(&early[..], [("protocol_error", details)] if details["status"] == "error"), "{early:?}");
}

/// Records of calls tell of refusals even if violations are not recorded, as they do for requests.
#[test]
fn a_refused_notification_is_recorded_while_any_fitting_kind_is() {
    let fact = refused("refused", Absence::NotSought);
    let calls = EventSelection { security_events: false, ..ALL };
    let found = records(calls, &fact);
    assert!(matches!(&found[..], [("request", details)] if details["status"] == "denied"), "{found:?}");
    assert!(records(EventSelection { tool_invocations: false, ..calls }, &fact).is_empty());
}
