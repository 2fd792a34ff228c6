//! Dialogues in which a backend of the new era makes a task of a call of an old client, or is asked to.

use super::*;
use crate::bridge::CallProgress;
use std::time::Duration;

const CALL: &str =
    r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","_meta":{"progressToken":"p"}}}"#;
const TASK_CALL: &str =
    r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"one","task":{"ttl":5000}}}"#;
const MADE: &str = r#"{"resultType":"task","taskId":"t1","status":"working","createdAt":"c","lastUpdatedAt":"u","ttlMs":60000,"pollIntervalMs":70}"#;
const LOOK: &str = r#"a> {"jsonrpc":"2.0","id":0,"method":"tasks/get","params":{"taskId":"t1"}}"#;
const EXCHANGE: ExchangeId = ExchangeId(2);

fn told(status: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":9,"result":{{"resultType":"complete","taskId":"t1","status":"{status}","createdAt":"c","lastUpdatedAt":"v","ttlMs":null,"pollIntervalMs":70{more}}}}}"#
    )
}

impl Dialogue {
    fn reaches(&mut self, reach: CallProgress, result: &str) -> Vec<String> {
        let (exchange, call) = self.calls.pop().unwrap();
        let message = envelope(&format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#));
        self.event(Event::Unfinished { exchange, message, reach, call, backend: Revision::LATEST })
    }

    /// A call that became a task, at the moment of the first look.
    fn polling(revision: &str, capabilities: &str) -> Self {
        let mut dialogue = Self::of(revision, capabilities);
        dialogue.says(CALL);
        assert_eq!(dialogue.reaches(CallProgress::Task, MADE), ["wake after 70ms"]);
        assert_eq!(dialogue.event(Event::Wake { exchange: EXCHANGE, round: None }), [LOOK]);
        dialogue
    }

    fn fails(&mut self, kind: FaultKind) -> Vec<String> {
        let (exchange, _) = self.calls.pop().unwrap();
        self.event(Event::Failed { exchange, fault: Fault::new(kind, "gone") })
    }
}

#[test]
fn a_client_that_knows_no_tasks_waits_with_its_call_until_the_task_is_done() {
    let mut dialogue = Dialogue::polling("2024-11-05", "{}");
    let half = told("working", r#","statusMessage":"half \"way\"""#);
    assert_eq!(
        dialogue.answers(&half),
        [
            r#"~ {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#,
            "wake after 70ms"
        ]
    );
    dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    assert_eq!(dialogue.answers(&half), ["wake after 70ms"], "the same word is no progress");
    dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    assert_eq!(
        dialogue.answers(&told(
            "completed",
            r#","result":{"resultType":"complete","content":[{"type":"audio","data":"","mimeType":"audio/wav"}]}"#
        )),
        [
            r#"< {"jsonrpc":"2.0","id":"c","result":{"content":[{"type":"resource","resource":{"uri":"signalbox:audio/1","mimeType":"audio/wav","blob":""}}]}}"#
        ],
        "the result is fitted to the client's revision"
    );
    assert_eq!(dialogue.machine.in_flight(), 0);
    assert!(dialogue.event(Event::Wake { exchange: EXCHANGE, round: None }).is_empty());
}

#[test]
fn the_pause_between_two_looks_is_bounded() {
    for (named, pause) in [(",\"pollIntervalMs\":0", "50ms"), (",\"pollIntervalMs\":1e12", "30s"), ("", "1s")] {
        let mut dialogue = Dialogue::of("2025-06-18", "{}");
        dialogue.says(CALL);
        let made = format!(r#"{{"resultType":"task","taskId":"t","status":"working","createdAt":"c"{named}}}"#);
        assert_eq!(dialogue.reaches(CallProgress::Task, &made), [format!("wake after {pause}")]);
    }
}

#[test]
fn a_task_that_asks_has_the_client_asked_and_is_told_its_answers() {
    let mut dialogue = Dialogue::polling("2025-11-25", r#"{"elicitation":{}}"#);
    let asks = told(
        "input_required",
        r#","inputRequests":{"k":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{}}}}"#,
    );
    assert_eq!(
        dialogue.answers(&asks),
        [
            r#"- {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"mode":"form","message":"[a] ?","requestedSchema":{},"_meta":{"io.signalbox/backend":"a"}}}"#
        ]
    );
    assert_eq!(
        dialogue.says(r#"{"jsonrpc":"2.0","id":1,"result":{"action":"accept","content":{"x":1}}}"#),
        [
            r#"a> {"jsonrpc":"2.0","id":0,"method":"tasks/update","params":{"taskId":"t1","inputResponses":{"k":{"action":"accept","content":{"x":1}}}}}"#
        ]
    );
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":9,"result":{"resultType":"complete"}}"#), ["wake after 70ms"]);
    dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    assert_eq!(dialogue.answers(&asks), ["wake after 70ms"], "a question that was answered is not put again");
    dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    let done = dialogue.answers(&told("completed", r#","result":{"content":[]}"#));
    assert_eq!(done, [r#"< {"jsonrpc":"2.0","id":"c","result":{"content":[]}}"#]);
}

#[test]
fn a_client_that_refuses_a_task_s_question_ends_the_task() {
    let mut dialogue = Dialogue::polling("2025-11-25", r#"{"sampling":{}}"#);
    dialogue.answers(&told(
        "input_required",
        r#","inputRequests":{"s":{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1}}}"#,
    ));
    let said = dialogue.says(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-1,"message":"no"}}"#);
    assert_eq!(said[0], r#"a>> {"jsonrpc":"2.0","id":0,"method":"tasks/cancel","params":{"taskId":"t1"}}"#);
    assert!(said[1].contains(r#""isError":true"#), "{said:?}");
}

#[test]
fn tasks_that_fail_are_cancelled_or_make_no_sense_end_the_call_with_an_error() {
    for (answer, part) in [
        (told("failed", r#","error":{"code":-5,"message":"broken"}"#), r#""error":{"code":-5,"message":"broken"}"#),
        (told("cancelled", ""), "the task was cancelled"),
        (told("completed", ""), "without its result"),
        (told("completed", r#","result":{"resultType":"input_required"}"#), "not complete"),
        (told("paused", ""), "in an unknown shape"),
        (r#"{"jsonrpc":"2.0","id":9,"error":{"code":-32602,"message":"Unknown task"}}"#.to_owned(), "Unknown task"),
    ] {
        let mut dialogue = Dialogue::polling("2025-03-26", "{}");
        let said = dialogue.answers(&answer);
        assert!(said.last().unwrap().starts_with("< ") && said.last().unwrap().contains(part), "{answer}: {said:?}");
        assert_eq!(dialogue.machine.in_flight(), 0);
    }
}

#[test]
fn a_cancelled_call_cancels_its_task_and_so_does_the_end_of_the_session() {
    const STOP: &str = r#"a>> {"jsonrpc":"2.0","id":0,"method":"tasks/cancel","params":{"taskId":"t1"}}"#;
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}"#;
    assert_eq!(dialogue.says(note), [STOP, "cancel at a"]);
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    assert_eq!(dialogue.event(Event::Close), [STOP, "cancel at a"]);
}

#[test]
fn a_look_that_fails_is_taken_again_but_not_for_ever() {
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    for _ in 0..3 {
        assert_eq!(dialogue.fails(FaultKind::BackendDown), ["wake after 70ms"]);
        assert_eq!(dialogue.event(Event::Wake { exchange: EXCHANGE, round: None }), [LOOK]);
    }
    assert!(dialogue.fails(FaultKind::BackendDown)[0].contains("backend_down"));
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    assert!(dialogue.fails(FaultKind::BackendGarbage)[0].starts_with("< "));
}

#[test]
fn a_task_that_never_ends_is_given_up() {
    let mut dialogue = Dialogue::polling("2025-06-18", "{}");
    dialogue.answers(&told("working", ""));
    dialogue.now += Duration::from_secs(24 * 3600);
    let said = dialogue.event(Event::Wake { exchange: EXCHANGE, round: None });
    assert!(said[0].contains("tasks/cancel") && said[1].contains("within 24 hours"), "{said:?}");
}

#[test]
fn a_client_that_asks_for_a_task_is_given_the_one_that_the_backend_made() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.says(TASK_CALL);
    let task = r#""taskId":"t1","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":60000,"pollInterval":70"#;
    assert_eq!(
        dialogue.reaches(CallProgress::Task, MADE),
        [format!(r#"< {{"jsonrpc":"2.0","id":"c","result":{{"task":{{{task}}}}}}}"#)]
    );
    let ask =
        |method: &str| format!(r#"{{"jsonrpc":"2.0","id":"g","method":"tasks/{method}","params":{{"taskId":"t1"}}}}"#);
    assert_eq!(dialogue.says(&ask("get")), [LOOK]);
    assert_eq!(
        dialogue.answers(&told("completed", r#","result":{"content":[],"isError":true}"#)),
        [
            r#"< {"jsonrpc":"2.0","id":"g","result":{"taskId":"t1","status":"failed","createdAt":"c","lastUpdatedAt":"v","ttl":null,"pollInterval":70}}"#
        ]
    );
    assert_eq!(dialogue.says(&ask("result")), [LOOK]);
    assert_eq!(dialogue.answers(&told("working", "")), ["wake after 70ms"]);
    assert_eq!(dialogue.event(Event::Wake { exchange: ExchangeId(4), round: None }), [LOOK]);
    assert_eq!(
        dialogue.answers(&told("completed", r#","result":{"content":[],"resultType":"complete"}"#)),
        [
            r#"< {"jsonrpc":"2.0","id":"g","result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}}"#
        ]
    );
    assert!(dialogue.says(&ask("cancel"))[0].contains(r#""method":"tasks/cancel""#));
    assert_eq!(dialogue.answers(r#"{"jsonrpc":"2.0","id":9,"result":{"resultType":"complete"}}"#), [LOOK]);
    assert!(dialogue.answers(&told("cancelled", ""))[0].contains(r#""status":"cancelled""#));
    let unknown = dialogue.says(r#"{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"t2"}}"#);
    assert!(unknown[0].contains("-32601"), "no backend of this catalog has tasks: {unknown:?}");
}

#[test]
fn a_result_request_that_is_cancelled_leaves_the_task_alone() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.says(TASK_CALL);
    dialogue.reaches(CallProgress::Task, MADE);
    dialogue.says(r#"{"jsonrpc":"2.0","id":"r","method":"tasks/result","params":{"taskId":"t1"}}"#);
    let note = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r"}}"#;
    assert_eq!(dialogue.says(note), ["cancel at a"]);
}

#[test]
fn a_result_that_came_at_once_is_kept_as_a_task_that_is_over() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    dialogue.says(TASK_CALL);
    let task = r#""taskId":"signalbox-1-2","status":"completed","createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","ttl":5000"#;
    assert_eq!(
        dialogue.reaches(CallProgress::Whole, r#"{"resultType":"complete","content":[]}"#),
        [format!(r#"< {{"jsonrpc":"2.0","id":"c","result":{{"task":{{{task}}}}}}}"#)]
    );
    let ask = |method: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":"g","method":"tasks/{method}","params":{{"taskId":"signalbox-1-2"}}}}"#)
    };
    assert_eq!(dialogue.says(&ask("get")), [format!(r#"< {{"jsonrpc":"2.0","id":"g","result":{{{task}}}}}"#)]);
    assert_eq!(
        dialogue.says(&ask("result")),
        [
            r#"< {"jsonrpc":"2.0","id":"g","result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"signalbox-1-2"}}}}"#
        ]
    );
    assert!(dialogue.says(&ask("cancel"))[0].contains("-32602"));
    dialogue.now += Duration::from_secs(5);
    assert!(dialogue.says(&ask("get"))[0].contains("error"), "it was to be kept for five seconds");
}

#[test]
fn tasks_are_listed_from_what_the_session_knows_of_them() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    let mut modern = view(ListKind::Tools, &[r#"{"name":"one"}"#]);
    modern.profile = Arc::new(crate::ServerProfile {
        revision: Revision::LATEST,
        capabilities: Bytes::from_static(br#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}"#),
        info: Bytes::from_static(b"{}"),
        instructions: None,
    });
    dialogue.catalog = Catalog::new(["a"].map(Arc::from));
    dialogue.catalog.set_view("a", bare(Era::Modern), modern);
    let list = r#"{"jsonrpc":"2.0","id":"l","method":"tasks/list"}"#;
    assert_eq!(dialogue.says(list), [r#"< {"jsonrpc":"2.0","id":"l","result":{"tasks":[]}}"#]);
    dialogue.says(TASK_CALL);
    dialogue.reaches(CallProgress::Task, MADE);
    dialogue.says(TASK_CALL);
    dialogue.reaches(CallProgress::Whole, r#"{"content":[]}"#);
    let said = dialogue.says(list);
    assert!(said[0].contains(r#"{"tasks":[{"taskId":"t1""#) && said[0].contains("signalbox-1-4"), "{said:?}");
    let unknown = dialogue.says(r#"{"jsonrpc":"2.0","id":"g","method":"tasks/get","params":{"taskId":"t2"}}"#);
    assert!(unknown[0].contains(r#""code":-32602,"message":"Unknown task: t2""#), "{unknown:?}");
    let tools = dialogue.says(r#"{"jsonrpc":"2.0","id":"t","method":"tools/list"}"#);
    assert!(tools[0].contains(r#""execution":{"taskSupport":"optional"}"#), "{tools:?}");
    dialogue =
        Dialogue { machine: FrontMachine::new(SessionKey(2), Caller::anonymous("http"), Mode::Pipe), ..dialogue };
    let greeting = dialogue.says(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
    );
    assert!(greeting[0].contains(r#""tasks":{"list":{},"cancel":{}"#), "{greeting:?}");
}

/// A-7: an old backend is not asked what the revision of its client does not have, whichever task is named.
#[test]
fn an_old_client_has_no_updates_of_tasks() {
    let mut dialogue = Dialogue::of("2025-11-25", "{}");
    let mut legacy = view(ListKind::Tools, &[r#"{"name":"one","execution":{"taskSupport":"optional"}}"#]);
    legacy.profile = Arc::new(crate::ServerProfile {
        revision: Revision::LATEST_LEGACY,
        capabilities: Bytes::from_static(br#"{"tools":{},"tasks":{"list":{},"requests":{"tools":{"call":{}}}}}"#),
        info: Bytes::from_static(b"{}"),
        instructions: None,
    });
    dialogue.catalog = Catalog::new(["a"].map(Arc::from));
    dialogue.catalog.set_view("a", bare(Era::Legacy), legacy);
    dialogue.says(TASK_CALL);
    dialogue.answers(
        r#"{"jsonrpc":"2.0","id":9,"result":{"task":{"taskId":"t1","status":"working","createdAt":"c","ttl":5000}}}"#,
    );
    let ask = |name: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":"{name}","method":"tasks/{name}","params":{{"taskId":"t1","inputResponses":{{}}}}}}"#
        )
    };
    assert!(dialogue.says(&ask("get"))[0].starts_with("a> "));
    let refused = dialogue.says(&ask("update"));
    assert!(refused[0].contains(r#""code":-32601"#), "{refused:?}");
}
