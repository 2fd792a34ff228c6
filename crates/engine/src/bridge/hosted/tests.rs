//! Dialogues about a task of an old backend.

use super::*;

struct Dialogue(Hosted<u32>);

fn envelope(json: &str) -> Envelope {
    Envelope::parse(Bytes::copy_from_slice(json.as_bytes())).unwrap()
}

fn task(status: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{"taskId":"t","status":"{status}","createdAt":"c","lastUpdatedAt":"u","ttl":5,"pollInterval":9}}}}"#
    )
}

fn shown(status: &str, more: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":0,"result":{{"taskId":"t","status":"{status}","createdAt":"c","lastUpdatedAt":"u","ttlMs":5,"pollIntervalMs":9,"resultType":"complete"{more}}}}}"#
    )
}

impl Dialogue {
    fn new() -> Self {
        let made = br#"{"task":{"taskId":"t","status":"working","createdAt":"c","lastUpdatedAt":"u","ttl":5}}"#;
        let capabilities = Bytes::from_static(br#"{"elicitation":{}}"#);
        Self(Hosted::new(made, capabilities, Revision::LATEST_LEGACY).unwrap())
    }

    fn run(&mut self, run: impl FnOnce(&mut Hosted<u32>, &mut Vec<HostedCommand<u32>>)) -> Vec<String> {
        let mut out = Vec::new();
        run(&mut self.0, &mut out);
        let text = |bytes: Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let tell = |command| match command {
            HostedCommand::Ask(about) => format!("> {}", about.method()),
            HostedCommand::Upstream(draft) => format!("> {}", text(draft.bytes)),
            HostedCommand::Deliver(to, bytes) => format!("{to}< {}", text(bytes)),
            HostedCommand::Fail(to, fault) => format!("{to}< {}", fault.reason()),
        };
        out.into_iter().map(tell).collect()
    }

    fn get(&mut self, to: u32) -> Vec<String> {
        self.run(|hosted, out| hosted.get(to, out))
    }

    fn answers(&mut self, about: TaskQuery, json: &str) -> Vec<String> {
        self.run(|hosted, out| hosted.answered(about, Ok(&envelope(json)), out))
    }

    fn asks(&mut self, json: &str) -> Vec<String> {
        self.run(|hosted, out| hosted.asked(&envelope(json), out))
    }
}

const QUESTION: &str = r#"{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#;
const SHOWN: &str = r#","inputRequests":{"q1":{"method":"elicitation/create","params":{"mode":"form","message":"?","requestedSchema":{}}}}"#;

#[test]
fn the_result_is_fetched_once_the_task_is_over_and_told_with_it() {
    let mut dialogue = Dialogue::new();
    assert_eq!(dialogue.get(1), ["> tasks/get"]);
    assert!(dialogue.get(2).is_empty(), "one look serves all who wait");
    let working = shown("working", "");
    assert_eq!(dialogue.answers(TaskQuery::Get, &task("working")), [format!("1< {working}"), format!("2< {working}")]);
    assert_eq!(dialogue.get(3), ["> tasks/get"]);
    assert_eq!(dialogue.answers(TaskQuery::Get, &task("completed")), ["> tasks/result"]);
    let whole = r#"{"jsonrpc":"2.0","id":8,"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}}"#;
    let done = shown("completed", r#","result":{"content":[],"resultType":"complete"}"#);
    assert_eq!(dialogue.answers(TaskQuery::Result, whole), [format!("3< {done}")]);
}

#[test]
fn questions_are_shown_until_they_are_answered() {
    let mut dialogue = Dialogue::new();
    dialogue.get(1);
    let said = dialogue.answers(TaskQuery::Get, &task("input_required"));
    assert_eq!(said, ["> tasks/result".to_owned(), format!("1< {}", shown("working", ""))], "none has come yet");
    assert!(dialogue.asks(QUESTION).is_empty());
    let asking = shown("input_required", SHOWN);
    assert_eq!(dialogue.get(2), [format!("2< {asking}")]);
    assert_eq!(dialogue.get(3), [format!("3< {asking}")]);
    let bad = dialogue.run(|hosted, out| hosted.update(4, br#"{"q1":7}"#, out));
    assert_eq!(bad, ["4< invalid_params"]);
    let answer = br#"{"q1":{"action":"accept","content":{"x":1}},"q9":{}}"#;
    assert_eq!(
        dialogue.run(|hosted, out| hosted.update(5, answer, out)),
        [
            r#"> {"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{"x":1}}}"#,
            r#"5< {"jsonrpc":"2.0","id":0,"result":{"resultType":"complete"}}"#
        ]
    );
    assert_eq!(
        dialogue.run(|hosted, out| hosted.update(6, answer, out)),
        [r#"6< {"jsonrpc":"2.0","id":0,"result":{"resultType":"complete"}}"#],
        "a second time it is only acknowledged"
    );
    assert_eq!(dialogue.get(7), ["> tasks/get"]);
    assert!(dialogue.answers(TaskQuery::Get, &task("completed")).is_empty(), "the result is on its way already");
    let done = dialogue.answers(TaskQuery::Result, r#"{"jsonrpc":"2.0","id":8,"result":{"content":[]}}"#);
    assert!(done[0].starts_with("7< ") && done[0].contains(r#""status":"completed""#), "{done:?}");
}

#[test]
fn a_task_whose_id_was_taken_is_told_under_its_other_name() {
    let mut dialogue = Dialogue::new();
    dialogue.0.rename("t~2");
    dialogue.get(1);
    assert!(dialogue.answers(TaskQuery::Get, &task("working"))[0].contains(r#""taskId":"t~2""#));
}

#[test]
fn what_the_client_cannot_answer_is_refused() {
    let mut dialogue = Dialogue::new();
    let roots = dialogue.asks(r#"{"jsonrpc":"2.0","id":1,"method":"roots/list"}"#);
    assert!(roots[0].contains("-32601"), "{roots:?}");
    let hosted = dialogue.asks(r#"{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"message":"?","requestedSchema":{},"task":{}}}"#);
    assert!(hosted[0].contains("a task that the client would host"), "{hosted:?}");
    dialogue.asks(QUESTION);
    dialogue.0.withdrawn(&RawId::from_token(Bytes::from_static(b"\"q\"")));
    assert_eq!(dialogue.get(1), ["> tasks/get"], "a question that was taken back is not shown");
}

#[test]
fn a_cancellation_is_acknowledged_also_when_the_task_is_over() {
    let mut dialogue = Dialogue::new();
    assert_eq!(dialogue.run(|hosted, out| hosted.cancel(1, out)), ["> tasks/cancel"]);
    assert!(dialogue.run(|hosted, out| hosted.cancel(2, out)).is_empty());
    let ack = r#"{"jsonrpc":"2.0","id":0,"result":{"resultType":"complete"}}"#;
    assert_eq!(
        dialogue.answers(TaskQuery::Cancel, r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"over"}}"#),
        [format!("1< {ack}"), format!("2< {ack}")]
    );
    dialogue.get(3);
    assert_eq!(dialogue.answers(TaskQuery::Get, &task("cancelled")), [format!("3< {}", shown("cancelled", ""))]);
}

#[test]
fn errors_and_losses_reach_whoever_waits() {
    let mut dialogue = Dialogue::new();
    dialogue.get(1);
    let error = r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Unknown task"}}"#;
    assert_eq!(dialogue.answers(TaskQuery::Get, error), [format!("1< {error}")]);
    dialogue.get(2);
    let lost = Fault::new(FaultKind::BackendDied, "gone");
    assert_eq!(dialogue.run(|hosted, out| hosted.answered(TaskQuery::Get, Err(lost), out)), ["2< backend_died"]);
    dialogue.get(3);
    dialogue.answers(TaskQuery::Get, &task("failed"));
    let failed = dialogue.answers(TaskQuery::Result, r#"{"jsonrpc":"2.0","id":4,"error":{"code":-5,"message":"no"}}"#);
    assert_eq!(failed, [format!("3< {}", shown("failed", r#","error":{"code":-5,"message":"no"}"#))]);
    for to in 0..MAX_WAITING {
        dialogue.get(u32::try_from(to).unwrap());
    }
    assert_eq!(dialogue.get(99), ["99< overloaded"]);
}
