//! Dialogues in which the interceptors have their say in the middle of a call.

use super::*;
use crate::bridge::CallProgress;
use crate::chain::{Case, HoldResponse, Interceptor, Judgement, Phase, Verdict};

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","_meta":{"progressToken":"p"}}}"#;
const FORM: &str = r#"{"method":"elicitation/create","params":{"mode":"form","message":"WORD","requestedSchema":{}}}"#;

/// Refuses what says REFUSE, answers in place of what says REPLY, and writes "word" for WORD.
struct Guard;

fn judge(message: &Envelope) -> Verdict {
    let text = String::from_utf8_lossy(message.bytes());
    if text.contains("REFUSE") {
        return Verdict::Refuse(Fault::new(FaultKind::Refused, "not with this gateway"));
    }
    if text.contains("REPLY") {
        return Verdict::Reply(Bytes::from_static(b"{\"instead\":1}"));
    }
    if !text.contains("WORD") {
        return Verdict::Pass;
    }
    Verdict::Modify(Envelope::parse(Bytes::from(text.replace("WORD", "word"))).unwrap())
}

impl Interceptor for Guard {
    fn name(&self) -> &'static str {
        "guard"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        judge(case.message).into()
    }
}

impl Dialogue {
    /// A call that the interceptors have seen, at a backend of the new era.
    fn guarded() -> Self {
        let mut dialogue = Self::of("2025-11-25", r#"{"elicitation":{}}"#);
        dialogue.chain = Chain::new(vec![Arc::new(Guard)]);
        dialogue.says(CALL);
        dialogue
    }

    /// The same, once it has become a task that was looked at.
    fn guarded_task() -> Self {
        let mut dialogue = Self::guarded();
        let (exchange, call) = dialogue.calls.pop().unwrap();
        let message = envelope(
            r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"t1","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":60000,"pollIntervalMs":70}}"#,
        );
        dialogue.event(Event::Unfinished {
            exchange,
            message,
            reach: CallProgress::Task,
            call,
            backend: Revision::LATEST,
        });
        dialogue.event(Event::Wake { exchange, round: None });
        dialogue
    }
}

fn asks(form: &str) -> String {
    format!(r#"{{"inputRequests":{{"k":{form}}}}}"#)
}

fn task_asks(form: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":9,"result":{{"resultType":"complete","taskId":"t1","status":"input_required","createdAt":"c","lastUpdatedAt":"v","ttlMs":null,"pollIntervalMs":70,"inputRequests":{{"k":{form}}}}}}}"#
    )
}

fn accepts(text: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"action":"accept","content":{{"a":"{text}"}}}}}}"#)
}

#[test]
fn what_a_new_backend_asks_and_an_old_client_answers_is_judged() {
    let mut dialogue = Dialogue::guarded();
    let asked = dialogue.wants(&asks(FORM));
    assert!(asked[0].contains(r#""message":"[a] word""#), "{asked:?}");
    let called = dialogue.says(&accepts("a WORD"));
    assert!(called[0].starts_with("a> ") && called[0].contains(r#""a":"a word""#), "{called:?}");

    let ends = [("REFUSE", r#""reason":"refused""#), ("REPLY", r#""result":{"instead":1}"#)];
    for (word, end) in ends {
        let said = Dialogue::guarded().wants(&asks(&FORM.replace("WORD", word)));
        assert!(said.len() == 1 && said[0].starts_with("< ") && said[0].contains(end), "{said:?}");
        let mut dialogue = Dialogue::guarded();
        dialogue.wants(&asks(FORM));
        let said = dialogue.says(&accepts(word));
        if word == "REPLY" {
            // The backend gets another answer.
            assert!(said[0].starts_with("a> ") && said[0].contains(r#""k":{"instead":1}"#), "{said:?}");
            continue;
        }
        assert!(said.len() == 1 && said[0].starts_with("< ") && said[0].contains(end), "{said:?}");
        assert_eq!(dialogue.machine.in_flight(), 0);
    }
}

#[test]
fn what_a_task_asks_and_an_old_client_answers_is_judged() {
    let mut dialogue = Dialogue::guarded_task();
    let asked = dialogue.answers(&task_asks(FORM));
    assert!(asked[0].contains(r#""message":"[a] word""#), "{asked:?}");
    let told = dialogue.says(&accepts("a WORD"));
    assert!(told[0].contains("tasks/update") && told[0].contains(r#""a":"a word""#), "{told:?}");

    for (word, end) in [("REFUSE", r#""reason":"refused""#), ("REPLY", r#""result":{"instead":1}"#)] {
        let mut dialogue = Dialogue::guarded_task();
        let refused = dialogue.answers(&task_asks(&FORM.replace("WORD", word)));
        let mut dialogue = Dialogue::guarded_task();
        dialogue.answers(&task_asks(FORM));
        let answered = dialogue.says(&accepts(word));
        if word == "REPLY" {
            assert!(answered[0].contains("tasks/update") && answered[0].contains(r#""instead":1"#), "{answered:?}");
        }
        for said in [refused, answered].into_iter().take(if word == "REPLY" { 1 } else { 2 }) {
            assert!(said[0].starts_with("a>> ") && said[0].contains("tasks/cancel"), "{said:?}");
            assert!(said.len() == 2 && said[1].starts_with("< ") && said[1].contains(end), "{said:?}");
        }
    }
}

#[test]
fn what_a_task_says_about_itself_is_judged_as_the_progress_it_becomes() {
    let says = |text: &str| {
        let state = r#""taskId":"t1","status":"working","createdAt":"c","lastUpdatedAt":"v","ttlMs":null"#;
        let looked = format!(r#"{{"jsonrpc":"2.0","id":9,"result":{{{state},"statusMessage":"{text}"}}}}"#);
        Dialogue::guarded_task().answers(&looked)
    };
    let said = says("a WORD");
    assert!(said[0].starts_with("~ ") && said[0].contains(r#""message":"a word""#), "{said:?}");
    assert_eq!(says("REFUSE"), ["dropped refused_notification", "wake after 1s"]);
}

#[test]
fn what_an_old_backend_asks_is_judged_and_a_call_that_may_not_ask_is_given_up() {
    let shows = |text: &str| {
        let mut dialogue = Dialogue::new(Mode::Stateless);
        dialogue.chain = Chain::new(vec![Arc::new(Guard)]);
        dialogue.says(&modern("1", "tools/call", r#""name":"one""#));
        let result = Bytes::from(format!(r#"{{"resultType":"input_required","inputRequests":"{text}"}}"#));
        dialogue.event(Event::Reply { exchange: ExchangeId(1), result, park: Some(7) })
    };
    assert_eq!(
        shows("a WORD"),
        [r#"< {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":"a word"}}"#]
    );
    let said = shows("REFUSE");
    assert!(said[0].contains(r#""reason":"refused""#) && said[1] == "give up 7", "{said:?}");
    assert_eq!(
        shows("REPLY"),
        [r#"< {"jsonrpc":"2.0","id":1,"result":{"instead":1,"resultType":"complete"}}"#, "give up 7"]
    );
    let late = Event::Reply { exchange: ExchangeId(9), result: Bytes::from_static(b"{}"), park: Some(7) };
    assert_eq!(Dialogue::new(Mode::Stateless).event(late), ["give up 7"], "nobody is there to see it");
}

/// A mock, a kept answer, a webhook or a person, in the place of a request and of an answer.
/// Proves S-23.
#[test]
fn a_result_that_interceptors_make_is_one_of_the_clients_revision() {
    let ask = |dialogue: &mut Dialogue, new: bool, method: &str, params: &str| match new {
        true => dialogue.says(&modern("1", method, params)),
        false => dialogue.says(&format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)),
    };
    for (new, call, read) in [
        (false, r#"{"instead":1}"#, r#"{"instead":1}"#),
        (
            true,
            r#"{"instead":1,"resultType":"complete"}"#,
            r#"{"instead":1,"resultType":"complete","ttlMs":0,"cacheScope":"private"}"#,
        ),
    ] {
        let begin = || {
            let mut dialogue = if new { Dialogue::new(Mode::Stateless) } else { Dialogue::operational() };
            dialogue.chain = Chain::new(vec![Arc::new(Guard)]);
            dialogue
        };
        let said = |result: &str| [format!(r#"< {{"jsonrpc":"2.0","id":1,"result":{result}}}"#)];
        let asked = ask(&mut begin(), new, "tools/call", r#""name":"one","arguments":{"a":"REPLY"}"#);
        assert_eq!(asked, said(call));
        let asked = ask(&mut begin(), new, "resources/read", r#""uri":"x://1","b":"REPLY""#);
        assert_eq!(asked, said(read));
        let mut dialogue = begin();
        ask(&mut dialogue, new, "tools/call", r#""name":"one""#);
        let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[],"resultType":"complete","x":"REPLY"}}"#;
        assert_eq!(dialogue.answers(answer), said(call));
    }
}

/// Writes down whether what it is asked about can wait.
#[derive(Default)]
struct Waits(std::sync::Mutex<Vec<(Phase, bool)>>);

impl Interceptor for Waits {
    fn name(&self) -> &'static str {
        "waits"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        self.0.lock().unwrap().push((case.phase, case.can_wait));
        Judgement::pass()
    }
}

#[test]
fn an_interceptor_knows_whether_a_message_can_wait() {
    let waits = Arc::new(Waits::default());
    let mut dialogue = Dialogue::of("2025-11-25", r#"{"elicitation":{}}"#);
    dialogue.chain = Chain::new(vec![Arc::clone(&waits) as _]);
    dialogue.says(CALL);
    dialogue.wants(&asks(FORM));
    dialogue.says(&accepts("x"));
    dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
    let (request, response) = (Phase::Request, Phase::Response);
    let asked = std::mem::take(&mut *waits.0.lock().unwrap());
    let (question, answer) = (Phase::ServerAsks, Phase::ClientAnswers);
    let expected =
        [(request, true), (response, false), (question, false), (answer, false), (request, false), (response, true)];
    assert_eq!(asked, expected);
}

/// Writes down which attempt it is asked about.
#[derive(Default)]
struct Attempts(std::sync::Mutex<Vec<(Phase, u32)>>);

impl Interceptor for Attempts {
    fn name(&self) -> &'static str {
        "attempts"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        self.0.lock().unwrap().push((case.phase, case.attempt));
        Judgement::pass()
    }
}

#[test]
fn an_interceptor_knows_how_often_a_call_was_sent() {
    let attempts = Arc::new(Attempts::default());
    let mut dialogue = Dialogue::operational();
    dialogue.chain = Chain::new(vec![Arc::clone(&attempts) as _]);
    dialogue.says(CALL);
    let exchange = dialogue.calls.last().unwrap().0;
    for _ in 0..2 {
        dialogue.event(Event::Retried { exchange });
    }
    dialogue.answers(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#);
    assert_eq!(*attempts.0.lock().unwrap(), [(Phase::Request, 1), (Phase::Response, 3)]);
}

/// Refuses everything of one phase.
struct RefusesPhase(Phase);

impl Interceptor for RefusesPhase {
    fn name(&self) -> &'static str {
        "refuses"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        if case.phase == self.0 {
            Verdict::Refuse(Fault::new(FaultKind::Refused, "no")).into()
        } else {
            Judgement::pass()
        }
    }
}

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}},"clientInfo":{"name":"c","version":"1"}}}"#;

#[test]
fn what_the_gateway_answers_itself_can_be_refused_before_and_after_it_is_answered() {
    for phase in [Phase::ToGateway, Phase::FromGateway] {
        let mut dialogue = Dialogue::new(Mode::Pipe);
        dialogue.chain = Chain::new(vec![Arc::new(RefusesPhase(phase)) as _]);
        let said = dialogue.says(HELLO);
        assert!(said.len() == 1 && said[0].contains(r#""reason":"refused""#), "{said:?}");
        dialogue.chain = Chain::default();
        assert!(dialogue.says(HELLO)[0].contains("protocolVersion"), "it may try again");
        assert_eq!(
            dialogue.says(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#),
            [r#"< {"jsonrpc":"2.0","id":1,"result":{}}"#]
        );
    }
}

#[test]
fn what_an_old_server_asks_and_an_old_client_answers_can_be_refused() {
    let question = || Event::Asked {
        backend: "a".into(),
        peer: PeerId(7),
        message: envelope(r#"{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{}}"#),
        about: None,
    };
    let mut dialogue = Dialogue::operational();
    dialogue.chain = Chain::new(vec![Arc::new(RefusesPhase(Phase::ServerAsks)) as _]);
    let said = dialogue.event(question());
    assert!(said.len() == 1 && said[0].starts_with("peer7> ") && said[0].contains(r#""id":"q","error""#), "{said:?}");

    let mut dialogue = Dialogue::operational();
    dialogue.chain = Chain::new(vec![Arc::new(RefusesPhase(Phase::ClientAnswers)) as _]);
    assert!(dialogue.event(question())[0].starts_with("- "));
    let said = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"secret":1}}"#);
    assert!(said.len() == 1 && said[0].contains(r#""id":"q","error""#) && !said[0].contains("secret"), "{said:?}");
}

#[test]
fn an_old_client_is_asked_only_what_it_declared() {
    let mut dialogue = Dialogue::operational();
    let message =
        envelope(r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"your key?"}}"#);
    let said = dialogue.event(Event::Asked { backend: "a".into(), peer: PeerId(7), message, about: None });
    assert!(said.len() == 2 && said[0] == "dropped undeclared_question" && said[1].contains("-32601"), "{said:?}");
}

#[test]
fn a_tool_call_without_an_id_reaches_no_backend() {
    let mut dialogue = Dialogue::operational();
    let said = dialogue.says(r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"one"}}"#);
    assert_eq!(said, ["dropped request_without_id"]);
}

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

/// A call of the new era, and what becomes of this answer of the backend.
fn modern_answer(result: &str) -> Vec<String> {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.chain = Chain::new(vec![Arc::new(RefusesPhase(Phase::ClientAnswers)) as _, Arc::new(Guard) as _]);
    let call = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"one",{MODERN}}}}}"#);
    dialogue.says(&call);
    dialogue.answers(&format!(r#"{{"jsonrpc":"2.0","id":9,"result":{{"resultType":"input_required",{result}}}}}"#))
}

#[test]
fn questions_are_judged_where_they_travel_in_an_answer_and_what_is_none_ends_the_call() {
    let asked = modern_answer(r#""inputRequests":{"k":{"method":"elicitation/create","params":{"message":"x"}}}"#);
    assert!(asked[0].contains(r#""message":"[a] x""#), "{asked:?}");
    let refused =
        modern_answer(r#""inputRequests":{"k":{"method":"elicitation/create","params":{"message":"REFUSE"}}}"#);
    assert!(refused.len() == 1 && refused[0].contains(r#""reason":"refused""#), "{refused:?}");
    for garbage in
        [r#"{"k":{"method":7,"params":{}}}"#, r#"{"k":{"method":"elicitation/create","params":5}}"#, r#"{"k":1}"#]
    {
        let said = modern_answer(&format!(r#""inputRequests":{garbage}"#));
        assert!(said.len() == 1 && said[0].contains(r#""reason":"backend_garbage""#), "{garbage}: {said:?}");
    }
}

#[test]
fn answers_are_judged_where_they_travel_in_a_request() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.chain = Chain::new(vec![Arc::new(RefusesPhase(Phase::ClientAnswers)) as _]);
    let said = dialogue.says(&format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"one","inputResponses":{{"k":{{"action":"accept"}}}},{MODERN}}}}}"#
    ));
    assert!(said.len() == 1 && said[0].contains(r#""reason":"refused""#), "{said:?}");
}

/// Changes whatever says WORD into another call, and errors that say TEXT into others.
struct Unfaithful;

impl Interceptor for Unfaithful {
    fn name(&self) -> &'static str {
        "unfaithful"
    }

    fn judge(&self, case: &Case<'_>, _: Option<HoldResponse<'_>>) -> Judgement {
        let text = String::from_utf8_lossy(case.message.bytes()).into_owned();
        let changed = match text {
            text if text.contains("METHOD") => text.replace("tools/call", "tools/list"),
            text if text.contains("ID") => text.replace(r#""id":2"#, r#""id":3"#),
            text if text.contains("CODE") => text.replace("-5", "-32601"),
            text if text.contains("FINE") => {
                text.replace(r#""error":{"code":-32601,"message":"FINE"}"#, r#""result":{}"#)
            }
            _ => return Judgement::pass(),
        };
        Verdict::Modify(Envelope::parse(changed.into()).unwrap()).into()
    }
}

/// Whoever changes a message, it stays the same call; and a changed answer has the status of what it is.
#[test]
fn a_message_that_was_made_another_call_is_refused_and_never_hangs() {
    let mut dialogue = Dialogue::new(Mode::Stateless);
    dialogue.chain = Chain::new(vec![Arc::new(Unfaithful)]);
    for (id, word, why) in [(1, "METHOD", "must keep the method tools/call"), (2, "ID", "must keep its id")] {
        let call = modern(&id.to_string(), "tools/call", &format!(r#""name":"one","arguments":{{"a":"{word}"}}"#));
        let said = dialogue.says(&call);
        assert!(said[0].starts_with('<') && said[0].contains(why), "{said:?}");
    }
    let status = |commands: Vec<Command>| {
        commands.into_iter().find_map(|command| match command {
            Command::Send(sent) => Some(sent.status()),
            _ => None,
        })
    };
    for (text, expected) in [(r#"{"code":-5,"message":"CODE"}"#, 404), (r#"{"code":-32601,"message":"FINE"}"#, 200)] {
        dialogue.says(&modern("9", "tools/call", r#""name":"one""#));
        let (exchange, _) = dialogue.calls.pop().unwrap();
        let message = envelope(&format!(r#"{{"jsonrpc":"2.0","id":1,"error":{text}}}"#));
        let answered = Event::Answered { exchange, message, edits: Edits::new(), status: Some(404) };
        assert_eq!(status(dialogue.commands(answered)), Some(expected), "{text}");
    }
}
