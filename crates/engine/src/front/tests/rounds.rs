//! Dialogues in which a backend of the new era asks a client of the old one.

use super::*;
use crate::bridge::CallProgress;

const CALL: &str = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one"}}"#;

impl Dialogue {
    pub(super) fn of(revision: &str, capabilities: &str) -> Self {
        let mut dialogue = Self::new(Mode::Pipe);
        dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{{"protocolVersion":"{revision}","capabilities":{capabilities}}}}}"#));
        dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        dialogue.event(Event::GeneralStream { stream: STREAM });
        dialogue
    }

    /// The backend answers the last call with what it wants to know.
    pub(super) fn wants(&mut self, result: &str) -> Vec<String> {
        let (exchange, call) = self.calls.pop().unwrap();
        let message = envelope(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        self.event(Event::Unfinished { exchange, message, reach: CallProgress::Input, call, backend: Revision::LATEST })
    }
}

#[test]
fn an_old_client_is_asked_by_requests_and_the_call_is_made_again_with_its_answers() {
    let mut dialogue = Dialogue::of("2025-11-25", r#"{"elicitation":{},"roots":{}}"#);
    dialogue.says(CALL);
    let asked = dialogue.wants(r#"{"resultType":"input_required","requestState":"S","inputRequests":{"a b":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{}}},"r":{"method":"roots/list"}}}"#);
    assert_eq!(
        asked,
        [
            r#"- {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"form","message":"[a] ?","requestedSchema":{},"_meta":{"io.signalbox/backend":"a"}}}"#,
            r#"- {"jsonrpc":"2.0","id":2,"method":"roots/list","params":{"_meta":{"io.signalbox/backend":"a"}}}"#
        ]
    );
    assert!(dialogue.says(r#"{"jsonrpc":"2.0","id":2,"result":{"roots":[]}}"#).is_empty());
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"x":1}}}"#),
        [
            r#"a> {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","inputResponses":{"r":{"roots":[]},"a b":{"action":"accept","content":{"x":1}}},"requestState":"S"}}"#
        ]
    );
    let again =
        dialogue.wants(r#"{"resultType":"input_required","inputRequests":{"r":{"method":"roots/list","params":{}}}}"#);
    assert_eq!(
        again,
        [r#"- {"jsonrpc":"2.0","id":3,"method":"roots/list","params":{"_meta":{"io.signalbox/backend":"a"}}}"#]
    );
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":3,"result":{"roots":[]}}"#),
        [
            r#"a> {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","inputResponses":{"r":{"roots":[]}}}}"#
        ],
        "what the first round brought is not sent again, nor its state"
    );
    assert_eq!(
        dialogue.answers(r#"{"jsonrpc":"2.0","id":9,"result":{"content":[]}}"#),
        [r#"< {"jsonrpc":"2.0","id":"c","result":{"content":[]}}"#]
    );
}

#[test]
fn a_client_that_cannot_answer_ends_the_call_and_a_user_who_cannot_be_asked_does_not() {
    let mut dialogue = Dialogue::of("2025-11-25", r#"{"sampling":{},"elicitation":{}}"#);
    let error = |id: u32| format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-1,"message":"no"}}}}"#);
    dialogue.says(CALL);
    dialogue.wants(
        r#"{"inputRequests":{"e":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{}}}}}"#,
    );
    assert!(dialogue.says(&error(1))[0].contains(r#""inputResponses":{"e":{"action":"cancel"}}"#));
    dialogue
        .wants(r#"{"inputRequests":{"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}}"#);
    assert_eq!(
        dialogue.says(&error(2)),
        [
            r#"< {"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"text","text":"the client refused `sampling/createMessage`: no"}],"isError":true}}"#
        ]
    );
    assert_eq!(dialogue.says(&error(2)), ["dropped orphan_client_answer"]);
}

#[test]
fn what_the_client_s_revision_lacks_is_refused_by_name() {
    let mut dialogue = Dialogue::of("2025-06-18", r#"{"elicitation":{}}"#);
    dialogue.says(CALL);
    let said = dialogue.wants(r#"{"inputRequests":{"u":{"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"go"}}}}"#);
    assert!(
        said[0].contains("not_bridged") && said[0].contains("2025-06-18") && said[0].contains("2026-07-28"),
        "{said:?}"
    );
}

#[test]
fn a_client_is_told_when_what_it_went_to_a_url_for_is_done() {
    let mut dialogue = Dialogue::of("2025-11-25", r#"{"elicitation":{"url":{}}}"#);
    dialogue.says(CALL);
    let said = dialogue.wants(r#"{"inputRequests":{"u":{"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"go"}}}}"#);
    assert!(said[0].contains(r#""elicitationId":"1-1""#), "{said:?}");
    dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}"#);
    let over = dialogue.answers(r#"{"jsonrpc":"2.0","id":9,"result":{"content":[]}}"#);
    assert!(over[0].contains("notifications/elicitation/complete") && over[0].contains("1-1"), "{over:?}");
}

#[test]
fn a_backend_that_only_wants_to_be_called_again_is_called_after_a_pause_and_not_for_ever() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.says(CALL);
    for round in 1..=16_u32 {
        let said = dialogue.wants(r#"{"requestState":"more"}"#);
        assert_eq!(said, [format!("wake after {:?}", std::time::Duration::from_millis(200) * round)]);
        let called = dialogue.event(Event::Wake { exchange: ExchangeId(2), round: None });
        assert!(called[0].contains(r#""inputResponses":{},"requestState":"more""#), "{called:?}");
    }
    assert!(dialogue.wants(r#"{"requestState":"more"}"#)[0].contains("16 times"));
}

#[test]
fn a_cancelled_call_forgets_its_questions() {
    let mut dialogue = Dialogue::of("2025-11-25", r#"{"roots":{}}"#);
    dialogue.says(CALL);
    dialogue.wants(r#"{"inputRequests":{"r":{"method":"roots/list"}}}"#);
    dialogue.says(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#);
    let late = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    assert_eq!(late, ["dropped orphan_client_answer"]);
}

#[test]
fn a_client_is_asked_only_what_it_declared() {
    for method in ["sampling/createMessage", "roots/list", "tools/call", "initialize"] {
        let mut dialogue = Dialogue::of("2025-11-25", r#"{"elicitation":{}}"#);
        dialogue.says(CALL);
        let said = dialogue
            .wants(&format!(r#"{{"inputRequests":{{"k":{{"method":"{method}","params":{{"messages":[]}}}}}}}}"#));
        assert!(said.len() == 1 && said[0].starts_with("< ") && said[0].contains("backend_garbage"), "{said:?}");
    }
}

#[test]
fn a_round_that_is_not_answered_in_time_ends_its_call() {
    let mut dialogue = Dialogue::of("2025-11-25", r#"{"roots":{}}"#);
    let wants = r#"{"inputRequests":{"r":{"method":"roots/list"}}}"#;
    let over = |round| Event::Wake { exchange: ExchangeId(2), round: Some(round) };
    dialogue.says(CALL);
    dialogue.wants(wants);
    dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#);
    assert!(dialogue.event(over(1)).is_empty(), "it was answered");
    dialogue.wants(wants);
    assert!(dialogue.event(over(1)).is_empty(), "the second round has a time of its own");
    let said = dialogue.event(over(2));
    assert_eq!(
        said[0],
        r#"~ {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"timed out"}}"#
    );
    assert!(said[1].starts_with("< ") && said[1].contains("timed_out"), "{said:?}");
    assert!(dialogue.event(over(2)).is_empty());
}

#[test]
fn the_next_round_goes_to_the_backend_under_its_own_name() {
    let mut dialogue = Dialogue::of("2025-11-25", r#"{"roots":{}}"#);
    dialogue.says(r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"b__echo"}}"#);
    dialogue.wants(r#"{"inputRequests":{"r":{"method":"roots/list"}}}"#);
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}"#),
        [
            r#"b> {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"echo","inputResponses":{"r":{"roots":[]}}}}"#
        ]
    );
}

/// The answer of a client of the new era with these capabilities, whose call a backend of its era answers so.
fn shown(capabilities: &str, method: &str, answer: &str) -> String {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.says(&format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"{method}","params":{{"name":"one","taskId":"a+t1","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{capabilities}}}}}}}"#
    ));
    dialogue.answers(&format!(r#"{{"jsonrpc":"2.0","id":9,{answer}}}"#)).concat()
}

/// Every question, with the capability it needs.
const QUESTIONS: [(&str, &str); 5] = [
    (r#"{"method":"roots/list"}"#, r#"{"roots":{}}"#),
    (r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}"#, r#"{"sampling":{}}"#),
    (
        r#"{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}"#,
        r#"{"sampling":{"tools":{}}}"#,
    ),
    (r#"{"method":"elicitation/create","params":{"message":"?"}}"#, r#"{"elicitation":{"form":{}}}"#),
    (
        r#"{"method":"elicitation/create","params":{"mode":"url","url":"https://x","message":"?"}}"#,
        r#"{"elicitation":{"url":{}}}"#,
    ),
];

#[test]
fn a_new_backend_asks_a_new_client_only_what_it_declared() {
    for (number, (question, needed)) in QUESTIONS.iter().enumerate() {
        for (other, (_, declared)) in QUESTIONS.iter().enumerate() {
            let answer = format!(r#""result":{{"resultType":"input_required","inputRequests":{{"k":{question}}}}}"#);
            let said = shown(declared, "tools/call", &answer);
            // Sampling with tools includes plain sampling.
            if number == other || (number, other) == (1, 2) {
                assert!(said.contains("inputRequests"), "{question} of {declared}: {said}");
                continue;
            }
            let parts = ["\"code\":-32021", "backend `a`", needed, r#""backend":"a""#];
            let whole = parts.iter().all(|part| said.contains(part)) && said.contains("requiredCapabilities");
            assert!(whole && !said.contains("inputRequests"), "{question} of {declared}: {said}");
        }
    }
    let two = format!(r#"{{"a":{},"b":{}}}"#, QUESTIONS[3].0, QUESTIONS[0].0);
    let answer = format!(r#""result":{{"resultType":"input_required","inputRequests":{two}}}"#);
    assert!(shown(QUESTIONS[3].1, "tools/call", &answer).contains("-32021"), "one of two is undeclared");
}

#[test]
fn an_undeclared_question_reaches_no_client_by_an_error() {
    let error = r#""error":{"code":-32042,"message":"go","data":{"elicitations":[{"mode":"url","url":"https://x","elicitationId":"1","message":"?"}]}}"#;
    assert!(shown(r#"{"elicitation":{"url":{}}}"#, "tools/call", error).contains("https://x"));
    let said = shown(r#"{"elicitation":{}}"#, "tools/call", error);
    assert!(said.contains("-32021") && !said.contains("https://x"), "{said}");
}

#[test]
fn a_log_message_cannot_pass_for_the_gateway_or_another_backend() {
    let mut dialogue = Dialogue::operational();
    let mut logged = |logger: &str, more: &str| {
        let message = envelope(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"error","logger":{logger},"data":"x"{more}}}}}"#
        ));
        let told = dialogue.event(Event::Notified { backend: "a".into(), peer: PeerId(1), message, about: None });
        told.concat()
    };
    let said = logged("\"db\"", r#","_meta":{"x":1,"io.signalbox/backend":"b","io.signalbox/other":1}"#);
    assert!(said.ends_with(r#""logger":"db","data":"x","_meta":{"x":1,"io.signalbox/backend":"a"}}}"#), "{said}");
    let escaped = logged("\"db\"", r#","_meta":{"io.\u0073ignalbox/backend":"b"}"#);
    assert!(escaped.ends_with(r#""_meta":{"io.signalbox/backend":"a"}}}"#), "{escaped}");
    for (logger, told) in [
        ("\"signalbox\"", "a/signalbox"),
        ("\"s\u{456}gnalbox\"", "a/s\u{456}gnalbox"),
        ("\"b\"", "a/b"),
        ("\"B.auth\"", "a/B.auth"),
        ("[\"signalbox\"]", "a"),
        ("\"a\"", "a"),
        ("\"backend.db\"", "backend.db"),
    ] {
        let said = logged(logger, "");
        assert!(said.contains(&format!(r#""logger":"{told}","data""#)), "{logger}: {said}");
    }
}
