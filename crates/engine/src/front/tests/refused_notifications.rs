//! Notifications of clients that no backend gets.

use super::*;
use crate::catalog::{Audience, EntryRef, Visibility};
use crate::chain::{Case, HoldResponse, Interceptor, Judgement, Ruling, Verdict};
use crate::fact::RefusedFact;

/// Interceptor that refuses every notification.
struct Refuser;

impl Interceptor for Refuser {
    fn name(&self) -> &'static str {
        "refuser"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        match case.message.method() {
            Some("notifications/initialized") => Verdict::Pass.into(),
            _ => {
                let verdict = Verdict::Refuse(Fault::new(FaultKind::Refused, "not with this gateway"));
                Judgement { rulings: Ruling::of("refuse", "no".to_owned()).into(), ..verdict.into() }
            }
        }
    }
}

/// Visibility that shows nothing, because of a switch or without one.
struct Nothing {
    is_off: bool,
}

impl Visibility for Nothing {
    fn audience(&self, _: &Caller) -> Audience {
        Audience::default()
    }

    fn shows_backend(&self, _: &Caller, _: &str) -> bool {
        false
    }

    fn is_off(&self, _: &Caller, _: &EntryRef<'_>) -> bool {
        self.is_off
    }
}

fn single_backend() -> Dialogue {
    let mut dialogue = Dialogue::operational();
    dialogue.catalog = Catalog::new(["b"].map(Arc::from));
    dialogue.message_facts = true;
    dialogue
}

/// Sends a notification. Returns the recorded refusals, and whether it goes to backends.
fn notify(dialogue: &mut Dialogue, method: &str) -> (Vec<Arc<RefusedFact>>, bool) {
    let message = envelope(&format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"a":1}}}}"#));
    let commands = dialogue.commands(Event::Received { stream: STREAM, message });
    let is_told = commands.iter().any(|command| matches!(command, Command::Tell { .. }));
    let refused = commands.into_iter().filter_map(|command| match command {
        Command::Fact(Fact::Refused(refused)) => Some(refused),
        _ => None,
    });
    (refused.collect(), is_told)
}

#[test]
fn a_refused_notification_with_content_is_recorded_once_with_its_subject_and_backend() {
    let mut by_rule = single_backend();
    by_rule.chain = Chain::new(vec![Arc::new(Refuser)]);
    let (mut hidden, mut off) = (single_backend(), single_backend());
    hidden.visibility = Some(Arc::new(Nothing { is_off: false }));
    off.visibility = Some(Arc::new(Nothing { is_off: true }));
    for (mut dialogue, reason, absence, decisions) in [
        (by_rule, "refused", Absence::NotSought, 1),
        (hidden, "unknown_tool", Absence::Hidden, 0),
        (off, "unknown_tool", Absence::SwitchedOff, 0),
    ] {
        let (refused, is_told) = notify(&mut dialogue, "notifications/foo");
        let [refused] = &refused[..] else { panic!("{reason}: {refused:#?}") };
        assert!(!is_told, "{reason}");
        let subject = refused.unreached.as_deref().unwrap();
        assert_eq!((refused.reason, &*subject.name, subject.absence), (reason, "notifications/foo", absence));
        let notification = refused.notification.as_deref().unwrap();
        assert_eq!((&*notification.method, &*notification.backend), ("notifications/foo", "b"));
        assert_eq!(notification.decisions.len(), decisions, "{reason}");
        // One of MCP's own is kept from a hidden backend too.
        assert_eq!(notify(&mut dialogue, "notifications/message").0.len(), 1, "{reason}");
        for bare in ["roots/list_changed", "cancelled", "progress"] {
            assert!(notify(&mut dialogue, &format!("notifications/{bare}")).0.is_empty(), "{bare}");
        }
    }
}

#[test]
fn a_notification_that_goes_to_backends_is_no_refusal() {
    let (refused, is_told) = notify(&mut single_backend(), "notifications/foo");
    assert!(is_told && refused.is_empty(), "{refused:?}");
}

#[test]
fn a_notification_before_the_session_begins_is_recorded_as_too_early() {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    dialogue.message_facts = true;
    let (refused, is_told) = notify(&mut dialogue, "notifications/foo");
    assert!(!is_told && refused[0].reason == "not_initialized", "{refused:?}");
    assert_eq!(&*refused[0].notification.as_deref().unwrap().backend, "*");
}
