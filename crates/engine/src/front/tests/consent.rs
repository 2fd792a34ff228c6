//! Dialogues in which a caller is asked whether its call may run.

use super::*;
use crate::chain::consent::{self, Consent};
use crate::chain::{self, Case, ConsentOf, Hold, HoldQuestion, HoldResponse, Interceptor, Judgement, Phase, Verdict};
use signalbox_wire::Limits;

const CALL: &str = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","arguments":{"a":1}}}"#;
const YES: &str = r#"{"action":"accept","content":{"approve":true}}"#;

/// Wants consent for every request.
struct Asker(ConsentOf);

impl Interceptor for Asker {
    fn name(&self) -> &'static str {
        "asker"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        let returned = consent::returned(case.message, "ada");
        if let Some(answer) = resumed.map(|resumed| resumed.answer).or(returned.as_ref()) {
            return chain::settle(case, answer, None, &Limits::default());
        }
        if case.phase != Phase::Request {
            return Judgement::pass();
        }
        let consent = Consent { reason: "it writes".into(), policy: None, within: Duration::from_secs(60), of: self.0 };
        let question = HoldQuestion::Consent(Arc::new(consent));
        Verdict::Hold(Hold { question, cursor: 0, message: None }).into()
    }
}

fn old(capabilities: &str, of: ConsentOf) -> Dialogue {
    let mut dialogue = Dialogue::new(Mode::Pipe);
    dialogue.says(&format!(
        r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{capabilities},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    ));
    dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    dialogue.event(Event::GeneralStream { stream: STREAM });
    dialogue.chain = Chain::new(vec![Arc::new(Asker(of))]);
    dialogue
}

fn answer(number: u64, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{number},"result":{result}}}"#)
}

#[test]
fn a_caller_of_the_old_era_is_asked_and_its_yes_lets_the_call_go_on_once() {
    let mut dialogue = old(r#"{"elicitation":{}}"#, ConsentOf::Caller);
    let asked = dialogue.says(CALL);
    assert!(asked.len() == 1 && asked[0].starts_with("- ") && asked[0].contains("elicitation/create"), "{asked:?}");
    assert!(asked[0].contains(r#"Let `one` of `a` run with {\"a\":1}? it writes"#), "{asked:?}");
    assert!(!asked[0].contains("\"mode\""), "2025-06-18 has no modes");
    assert_eq!(dialogue.says(&answer(1, YES)), [format!("a> {CALL}")]);
    let twice = dialogue.says(&answer(1, YES));
    assert!(twice.iter().all(|one| !one.starts_with("a> ")), "{twice:?}");
}

#[test]
fn what_is_no_yes_refuses_and_an_error_of_the_client_is_none() {
    for no in [
        answer(1, r#"{"action":"accept","content":{"approve":false}}"#),
        answer(1, r#"{"action":"decline"}"#),
        answer(1, r#"{"action":"cancel"}"#),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}"#.to_owned(),
    ] {
        let mut dialogue = old(r#"{"elicitation":{}}"#, ConsentOf::CallerOrApprover);
        dialogue.says(CALL);
        let said = dialogue.says(&no);
        assert!(said.len() == 1 && said[0].starts_with("< ") && said[0].contains("\"error\""), "{said:?}");
        assert_eq!(dialogue.machine.in_flight(), 0);
    }
}

#[test]
fn a_question_that_nobody_answers_is_cancelled_and_its_timer_means_no_other() {
    let mut dialogue = old(r#"{"elicitation":{}}"#, ConsentOf::Caller);
    dialogue.says(CALL);
    let exchange = dialogue.machine.exchanges().first().unwrap().id;
    assert!(dialogue.event(Event::Wake { exchange, round: Some(9) }).is_empty());
    let over = dialogue.event(Event::Wake { exchange, round: Some(1) });
    assert!(over[0].contains("notifications/cancelled") && over[1].contains("hold_expired"), "{over:?}");
    assert!(dialogue.event(Event::Wake { exchange, round: Some(1) }).is_empty());
    // A client that gives its call up takes the question with it.
    dialogue.says(CALL);
    dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#);
    assert_eq!(dialogue.machine.in_flight(), 0);
    let late = dialogue.says(&answer(2, YES));
    assert!(late.iter().all(|one| !one.starts_with("a> ")), "{late:?}");
}

#[test]
fn a_client_that_cannot_ask_is_refused_or_others_are_asked() {
    let refused = old("{}", ConsentOf::Caller).says(CALL);
    assert!(refused.len() == 1 && refused[0].contains("declared no elicitation"), "{refused:?}");
    assert_eq!(old("{}", ConsentOf::CallerOrApprover).says(CALL), ["hold for person"]);
    assert_eq!(old(r#"{"elicitation":{}}"#, ConsentOf::Approver).says(CALL), ["hold for person"]);
}

/// A call of the new era whose client can ask, with more members of its params.
fn modern_call(id: &str, more: &str) -> String {
    let own = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#;
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"one",{own}{more}}}}}"#)
}

#[test]
fn a_caller_of_the_new_era_comes_back_and_the_backend_sees_nothing_of_the_question() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.chain = Chain::new(vec![Arc::new(Asker(ConsentOf::Caller))]);
    let asked = dialogue.says(&modern_call("1", ""));
    assert!(asked.len() == 1 && asked[0].contains("input_required"), "{asked:?}");
    let state = asked[0].split(r#""requestState":"#).nth(1).unwrap().trim_end_matches('}');
    let back = |answer: &str| format!(r#","inputResponses":{{"signalbox-consent":{answer}}},"requestState":{state}"#);
    let called = dialogue.says(&modern_call("2", &back(YES)));
    assert!(
        called.len() == 1 && called[0].starts_with("a> ") && !called[0].contains("signalbox-consent"),
        "{called:?}"
    );
    let refused = dialogue.says(&modern_call("3", &back(r#"{"action":"decline"}"#)));
    assert!(refused.len() == 1 && refused[0].contains("the caller said no"), "{refused:?}");
}
