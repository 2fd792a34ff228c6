//! Dialogues in which a message waits for a person.

use super::*;
use crate::chain::{self, Case, Hold, HoldAnswer, HoldQuestion, HoldResponse, Interceptor, Judgement, Phase, Verdict};
use signalbox_wire::Limits;

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","_meta":{"progressToken":"p"}}}"#;
const ANSWER: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;

/// Holds every message of one phase.
struct Holder(Phase);

impl Interceptor for Holder {
    fn name(&self) -> &'static str {
        "holder"
    }

    fn judge(&self, case: &Case<'_>, resumed: Option<HoldResponse<'_>>) -> Judgement {
        if let Some(resumed) = resumed {
            assert_eq!(resumed.cursor, 7);
            return chain::settle(case, resumed.answer, None, &Limits::default());
        }
        if case.phase != self.0 {
            return Judgement::pass();
        }
        let question = HoldQuestion::Person { reason: "test".into(), within: Duration::from_secs(50) };
        Verdict::Hold(Hold { question, cursor: 7, message: None }).into()
    }
}

/// Writes "after" for "before", so that it is seen who was asked when.
struct Writer;

impl Interceptor for Writer {
    fn name(&self) -> &'static str {
        "writer"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let text = String::from_utf8_lossy(case.message.bytes());
        if !text.contains("before") {
            return Judgement::pass();
        }
        Verdict::Modify(envelope(&text.replace("before", "after"))).into()
    }
}

fn holding(phase: Phase) -> Dialogue {
    let mut dialogue = Dialogue::operational();
    dialogue.chain = Chain::new(vec![Arc::new(Holder(phase)), Arc::new(Writer)]);
    dialogue
}

fn says(dialogue: &mut Dialogue, answer: HoldAnswer) -> Vec<String> {
    let exchange = dialogue.machine.exchanges().first().map_or(ExchangeId(0), |exchange| exchange.id);
    dialogue.event(Event::Consulted { exchange, answer })
}

fn by() -> Option<String> {
    Some("ada".to_owned())
}

#[test]
fn a_held_request_goes_on_when_it_is_released_and_not_before() {
    let mut dialogue = holding(Phase::Request);
    assert_eq!(dialogue.says(CALL), ["hold for person"]);
    assert_eq!(dialogue.machine.in_flight(), 1);
    let called = says(&mut dialogue, HoldAnswer::GoOn { by: by() });
    assert_eq!(called, [format!("a> {CALL}")]);
    let answered = dialogue.answers(ANSWER);
    assert_eq!(answered, [ANSWER.replace("1,", "\"c\",").replacen('{', "< {", 1)]);
    assert_eq!(says(&mut dialogue, HoldAnswer::GoOn { by: by() }), [""; 0], "a second word is of no use");
}

#[test]
fn an_edited_request_keeps_its_id_is_judged_by_those_that_follow_and_may_go_elsewhere() {
    let mut dialogue = holding(Phase::Request);
    dialogue.says(CALL);
    let message =
        r#"{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"b__echo","arguments":{"a":"before"}}}"#;
    let called = says(&mut dialogue, HoldAnswer::Edited { by: by(), message: Bytes::from_static(message.as_bytes()) });
    assert_eq!(
        called,
        [r#"b> {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"echo","arguments":{"a":"after"}}}"#]
    );
}

#[test]
fn a_held_request_is_answered_or_refused_without_its_backend() {
    let ends = [
        (
            HoldAnswer::Result { by: by(), result: Bytes::from_static(br#"{"content":[]}"#) },
            r#"< {"jsonrpc":"2.0","id":"c","result":{"content":[]}}"#,
        ),
        (HoldAnswer::Refused { by: by(), reason: "not today".to_owned() }, "not today"),
        (HoldAnswer::Expired, r#""reason":"hold_expired""#),
        (HoldAnswer::Failed("no room".to_owned()), "no room"),
        (HoldAnswer::Edited { by: by(), message: Bytes::from_static(b"{}") }, "the edited message is not valid"),
        (HoldAnswer::Result { by: by(), result: Bytes::from_static(b"[]") }, "a result must be a JSON object"),
    ];
    for (answer, expected) in ends {
        let mut dialogue = holding(Phase::Request);
        dialogue.says(CALL);
        let said = says(&mut dialogue, answer);
        assert!(said.len() == 1 && said[0].starts_with("< ") && said[0].contains(expected), "{said:?}");
        assert_eq!(dialogue.machine.in_flight(), 0);
    }
}

#[test]
fn what_a_person_answers_is_a_result_of_the_clients_revision() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.chain = Chain::new(vec![Arc::new(Holder(Phase::Request))]);
    dialogue.says(&modern("1", "tools/call", r#""name":"one""#));
    let said = says(&mut dialogue, HoldAnswer::Result { by: by(), result: Bytes::from_static(b"{\"content\":[]}") });
    assert_eq!(said, [r#"< {"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete"}}"#]);
}

#[test]
fn a_held_answer_is_released_edited_or_replaced() {
    let answers = [
        (HoldAnswer::GoOn { by: by() }, r#"< {"jsonrpc":"2.0","id":"c","result":{"content":[]}}"#),
        (
            HoldAnswer::Edited {
                by: by(),
                message: Bytes::from_static(br#"{"jsonrpc":"2.0","id":5,"result":{"content":["x"]}}"#),
            },
            r#"< {"jsonrpc":"2.0","id":"c","result":{"content":["x"]}}"#,
        ),
        (
            HoldAnswer::Result { by: by(), result: Bytes::from_static(b"{\"y\":1}") },
            r#"< {"jsonrpc":"2.0","id":"c","result":{"y":1}}"#,
        ),
    ];
    for (answer, expected) in answers {
        let mut dialogue = holding(Phase::Response);
        assert!(dialogue.says(CALL)[0].starts_with("a> "));
        assert_eq!(dialogue.answers(ANSWER), ["hold for person"]);
        assert_eq!(says(&mut dialogue, answer), [expected]);
    }
}

#[test]
fn a_call_that_is_cancelled_while_it_is_held_is_held_no_longer() {
    let mut dialogue = holding(Phase::Request);
    dialogue.says(CALL);
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#;
    let said = dialogue.says(cancel);
    assert!(said.contains(&"withdraw".to_owned()), "{said:?}");
    assert_eq!(dialogue.machine.in_flight(), 0);
    assert_eq!(says(&mut dialogue, HoldAnswer::GoOn { by: by() }), [""; 0]);
}

#[test]
fn a_session_that_ends_leaves_nothing_held() {
    let mut dialogue = holding(Phase::Request);
    dialogue.says(CALL);
    let said = dialogue.event(Event::Close);
    assert!(said.contains(&"withdraw".to_owned()), "{said:?}");
}

#[test]
fn a_client_of_the_new_era_that_goes_away_leaves_nothing_held() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.chain = Chain::new(vec![Arc::new(Holder(Phase::Request))]);
    assert_eq!(dialogue.says(&modern("1", "tools/call", r#""name":"one""#)), ["hold for person"]);
    let said = dialogue.event(Event::Gone { stream: STREAM });
    assert!(said.contains(&"withdraw".to_owned()), "{said:?}");
}

#[test]
fn progress_grows_while_a_call_is_held_and_stops_when_it_is_not() {
    let mut dialogue = holding(Phase::Request);
    dialogue.says(CALL);
    let exchange = dialogue.machine.exchanges()[0].id;
    let tell = |dialogue: &mut Dialogue| dialogue.event(Event::StillHeld { exchange, text: "held: test".into() });
    let first = tell(&mut dialogue);
    assert!(first[0].starts_with("~ ") && first[0].contains(r#""progressToken":"p","progress":1,"#), "{first:?}");
    assert!(first[0].contains(r#""message":"held: test""#), "{first:?}");
    assert!(tell(&mut dialogue)[0].contains(r#""progress":2,"#));
    says(&mut dialogue, HoldAnswer::GoOn { by: by() });
    assert_eq!(tell(&mut dialogue), [""; 0], "it waits for its backend, not for a person");
    let message = envelope(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":9,"progress":0.5,"total":3}}"#,
    );
    let told = dialogue.event(Event::Notified { backend: "a".into(), peer: PeerId(1), message, about: Some(exchange) });
    assert!(told[0].contains(r#""progressToken":"p","progress":2.5,"total":5}"#), "progress may only grow: {told:?}");
}

/// Says nothing, so long as nobody has set anything.
struct Idle;

impl Interceptor for Idle {
    fn name(&self) -> &'static str {
        "idle"
    }

    fn is_idle(&self) -> bool {
        true
    }

    fn judge(&self, _: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        Judgement::pass()
    }
}

#[test]
fn a_chain_of_idle_interceptors_is_idle() {
    assert!(Chain::new(vec![Arc::new(Idle)]).is_idle());
    assert!(!Chain::new(vec![Arc::new(Idle), Arc::new(Writer)]).is_idle());
}

/// Refuses whatever it is shown, and looks at requests alone.
struct RequestsOnly;

impl Interceptor for RequestsOnly {
    fn name(&self) -> &'static str {
        "requests only"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        match case.phase {
            Phase::Request => Judgement::pass(),
            _ => Verdict::Refuse(Fault::new(FaultKind::Refused, "it was shown what it does not look at")).into(),
        }
    }

    fn looks_at(&self, phase: Phase) -> bool {
        phase == Phase::Request
    }
}

#[test]
fn an_interceptor_is_not_asked_about_phases_that_only_others_look_at() {
    let mut dialogue = Dialogue::operational();
    dialogue.chain = Chain::new(vec![Arc::new(RequestsOnly), Arc::new(Writer)]);
    assert_eq!(dialogue.says(CALL), [format!("a> {CALL}")]);
    let answered = dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{"text":"before"}}"#);
    assert_eq!(answered, [r#"< {"jsonrpc":"2.0","id":"c","result":{"text":"after"}}"#]);
}
