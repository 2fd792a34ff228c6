//! A task of an old backend, hosted for a client of the new era.
//!
//! In the old era, `tasks/result` waits for the end of a task and carries its questions; in the new one both are inside
//! the answer to `tasks/get`. The machine opens `tasks/result` when the task has a result or a question, stores the
//! questions that arrive on it, and shows them until `tasks/update` answers them. `H` identifies the request that
//! waits; the machine only carries it.

use super::object::Object;
use super::tasks::{self, Payload, TaskState, TaskStatus};
use super::{RevisionPair, answer, capabilities, questions};
use crate::back::Draft;
use crate::fault::{Fault, FaultKind};
use crate::question_origin;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Kind, RawId, Revision, Span, builder, codes, json, meta, method};

/// Maximum number of waiting requests about one task.
pub const MAX_WAITING: usize = 32;
/// Maximum number of open questions of one task.
pub const MAX_QUESTIONS: usize = 32;
/// Maximum number of questions that one task may ask.
pub const MAX_ASKED: u32 = 256;

/// Request about the task that the machine sends to the backend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TaskQuery {
    /// `tasks/get`, which reads the state.
    Get,
    /// `tasks/result`, which is answered when the task is over.
    Result,
    /// `tasks/cancel`, which stops the task.
    Cancel,
}

impl TaskQuery {
    /// Returns the method on the wire.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Get => method::TASKS_GET,
            Self::Result => method::TASKS_RESULT,
            Self::Cancel => method::TASKS_CANCEL,
        }
    }
}

/// Command of the machine to its driver.
#[derive(Clone, Debug)]
pub enum HostedCommand<H> {
    /// Ask the backend about the task. Its answer arrives through [`HostedTaskMachine::answered`].
    Ask(TaskQuery),
    /// Send this message to the backend.
    Upstream(Draft),
    /// Answer the request with this message, whose id has yet to be replaced.
    Deliver(H, Bytes),
    /// Fail the request with this fault.
    Fail(H, Fault),
}

#[derive(Clone, Debug)]
struct Question {
    key: String,
    id: RawId,
    method: String,
    params: Bytes,
}

/// State machine of one hosted task. See the [module documentation](self).
#[derive(Debug)]
pub struct HostedTaskMachine<H> {
    capabilities: Bytes,
    backend: Revision,
    /// Id under which clients know the task, if it was renamed.
    name: Option<String>,
    state: TaskState,
    /// Last result of `tasks/get`, raw.
    last_state: Bytes,
    questions: Vec<Question>,
    question_count: u32,
    waiting_gets: Vec<H>,
    waiting_cancels: Vec<H>,
    get_in_flight: bool,
    result_in_flight: bool,
}

impl<H: Clone> HostedTaskMachine<H> {
    /// Creates the machine for a new task. `made` is the backend's result, `capabilities` are the client's.
    #[must_use]
    pub fn new(made: &[u8], capabilities: Bytes, backend: Revision) -> Option<Self> {
        let state = TaskState::read(made)?;
        Some(Self {
            capabilities,
            backend,
            name: None,
            last_state: state.legacy(),
            state,
            questions: Vec::new(),
            question_count: 0,
            waiting_gets: Vec::new(),
            waiting_cancels: Vec::new(),
            get_in_flight: false,
            result_in_flight: false,
        })
    }

    /// Returns the last known state of the task.
    pub fn state(&self) -> &TaskState {
        &self.state
    }

    /// Gives the task another id toward clients.
    pub fn rename(&mut self, name: &str) {
        self.name = Some(name.to_owned());
    }

    /// Returns the id under which clients know the task.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.state.id)
    }

    /// Handles the client's `tasks/get`.
    pub fn get(&mut self, to: H, out: &mut Vec<HostedCommand<H>>) {
        if !self.questions.is_empty() {
            let shown = self.shown();
            return out.push(HostedCommand::Deliver(to, self.render(Payload::Questions(&shown))));
        }
        if self.waiting_gets.len() >= MAX_WAITING {
            return out.push(HostedCommand::Fail(to, too_many_requests()));
        }
        self.waiting_gets.push(to);
        let at_hand = self.result_in_flight && tasks::is_terminal(self.state.status);
        if !self.get_in_flight && !at_hand {
            self.get_in_flight = true;
            out.push(HostedCommand::Ask(TaskQuery::Get));
        }
    }

    /// Handles the client's `tasks/update`. Answers to questions that are no longer open are ignored, because they may
    /// come twice.
    pub fn update(&mut self, to: H, responses: &[u8], out: &mut Vec<HostedCommand<H>>) {
        let given = |key: &str| json::member(responses, key).map(|span| span.of(responses));
        if let Some(bad) = self.questions.iter().find(|one| given(&one.key).is_some_and(|one| !one.starts_with(b"{"))) {
            let text = format!("params.inputResponses.{} must be an object", bad.key);
            return out.push(HostedCommand::Fail(to, Fault::new(FaultKind::InvalidParams, text)));
        }
        self.questions.retain(|question| match given(&question.key) {
            Some(answer) => {
                let reply = questions::reply(&question.id, &question.method, answer, self.backend);
                out.push(HostedCommand::Upstream(Draft::word("", reply)));
                false
            }
            None => true,
        });
        out.push(HostedCommand::Deliver(to, response(tasks::ACKNOWLEDGED)));
    }

    /// Handles the client's `tasks/cancel`.
    pub fn cancel(&mut self, to: H, out: &mut Vec<HostedCommand<H>>) {
        if self.waiting_cancels.len() >= MAX_WAITING {
            return out.push(HostedCommand::Fail(to, too_many_requests()));
        }
        self.waiting_cancels.push(to);
        if self.waiting_cancels.len() == 1 {
            out.push(HostedCommand::Ask(TaskQuery::Cancel));
        }
    }

    /// Handles a question of the backend during the task.
    pub fn asked(&mut self, message: &Envelope, out: &mut Vec<HostedCommand<H>>) {
        let (Some(id), Some(method)) = (message.id(), message.method()) else { return };
        let params = message.params().unwrap_or(b"{}");
        if !capabilities::allows(&self.capabilities, method, params) {
            let text = "the client declared no capability for this request";
            return out.push(refusal(&id, codes::METHOD_NOT_FOUND, text));
        }
        if let Err(no) = question_origin::check(method, params) {
            return out.push(HostedCommand::Upstream(Draft::word("", no.reply(&id))));
        }
        if json::member(params, "task").is_some() {
            let text = "a task that the client would host cannot be carried to revision 2026-07-28";
            return out.push(refusal(&id, codes::METHOD_NOT_FOUND, text));
        }
        if self.question_count >= MAX_ASKED || self.questions.len() >= MAX_QUESTIONS {
            return out.push(refusal(&id, codes::INTERNAL_ERROR, "this task has asked too often"));
        }
        self.question_count += 1;
        let params = questions::to_modern(method, &without_task_reference(params));
        self.questions.push(Question {
            key: format!("q{}", self.question_count),
            id,
            method: method.to_owned(),
            params,
        });
        if !self.get_in_flight {
            let shown = self.shown();
            self.deliver(Payload::Questions(&shown), out);
        }
    }

    /// Removes a question that the backend cancelled.
    pub fn withdrawn(&mut self, id: &RawId) {
        self.questions.retain(|question| question.id != *id);
    }

    /// Handles the backend's answer to a request about the task, or the request's failure.
    pub fn answered(&mut self, about: TaskQuery, answer: Result<&Envelope, Fault>, out: &mut Vec<HostedCommand<H>>) {
        match (about, answer) {
            (TaskQuery::Get, Ok(message)) => self.state_received(message, out),
            (TaskQuery::Get, Err(fault)) => {
                self.get_in_flight = false;
                self.fail(&fault, out);
            }
            (TaskQuery::Result, Ok(message)) => self.result_received(message, out),
            (TaskQuery::Result, Err(fault)) => {
                self.result_in_flight = false;
                self.questions.clear();
                self.fail(&fault, out);
            }
            (TaskQuery::Cancel, answer) => {
                self.questions.clear();
                for to in std::mem::take(&mut self.waiting_cancels) {
                    out.push(match &answer {
                        // A task that is already over counts as cancelled.
                        Ok(_) => HostedCommand::Deliver(to, response(tasks::ACKNOWLEDGED)),
                        Err(fault) => HostedCommand::Fail(to, fault.clone()),
                    });
                }
            }
        }
    }

    fn state_received(&mut self, message: &Envelope, out: &mut Vec<HostedCommand<H>>) {
        self.get_in_flight = false;
        if message.kind() == Kind::Error {
            for to in std::mem::take(&mut self.waiting_gets) {
                out.push(HostedCommand::Deliver(to, message.bytes().clone()));
            }
            return;
        }
        let result = message.result().unwrap_or_default();
        let Some(state) = TaskState::read(result) else {
            let text = "the backend reported a task in an unknown shape";
            return self.fail(&Fault::new(FaultKind::BackendGarbage, text), out);
        };
        self.state = state;
        self.last_state = Bytes::copy_from_slice(result);
        let over = matches!(self.state.status, TaskStatus::Completed | TaskStatus::Failed);
        if (over || self.state.status == TaskStatus::InputRequired) && !self.result_in_flight {
            self.result_in_flight = true;
            out.push(HostedCommand::Ask(TaskQuery::Result));
        }
        match (over, self.questions.is_empty()) {
            // The pending answer to `tasks/result` will carry the state too.
            (true, _) => {}
            (false, true) => self.deliver(Payload::Nothing, out),
            (false, false) => {
                let shown = self.shown();
                self.deliver(Payload::Questions(&shown), out);
            }
        }
    }

    /// Handles the answer to `tasks/result`. It is not stored: a later `tasks/get` asks again.
    fn result_received(&mut self, message: &Envelope, out: &mut Vec<HostedCommand<H>>) {
        self.result_in_flight = false;
        self.questions.clear();
        if message.kind() == Kind::Error && !tasks::is_terminal(self.state.status) {
            // Probably cancelled; the next `tasks/get` will tell.
            return;
        }
        let mut edits = Edits::new();
        let revisions = RevisionPair { client: Revision::LATEST, backend: self.backend };
        let fitted = answer(method::TOOLS_CALL, revisions, message, &mut edits, &mut Vec::new());
        let whole = fitted.ok().and_then(|_| Envelope::parse(edits.apply(message.bytes())).ok());
        let Some(whole) = whole else {
            let text = "the result of the task is not a tool result";
            return self.fail(&Fault::new(FaultKind::BackendGarbage, text), out);
        };
        match (whole.result(), whole.error()) {
            (Some(result), _) => self.deliver(Payload::Result(result), out),
            (_, Some(error)) => self.deliver(Payload::Error(error), out),
            _ => {}
        }
    }

    fn deliver(&mut self, payload: Payload<'_>, out: &mut Vec<HostedCommand<H>>) {
        let looking = std::mem::take(&mut self.waiting_gets);
        for to in looking {
            out.push(HostedCommand::Deliver(to, self.render(payload)));
        }
    }

    fn fail(&mut self, fault: &Fault, out: &mut Vec<HostedCommand<H>>) {
        for to in std::mem::take(&mut self.waiting_gets) {
            out.push(HostedCommand::Fail(to, fault.clone()));
        }
    }

    fn render(&self, payload: Payload<'_>) -> Bytes {
        let told = tasks::get_to_modern(&self.last_state, payload).unwrap_or_else(|| self.state.modern(payload));
        let mut edits = Edits::new();
        if let Some(name) = &self.name {
            edits.set_member(&told, Span::new(0, told.len()), "taskId", json::quote(name).as_bytes());
        }
        response(&edits.apply(&told))
    }

    fn shown(&self) -> Vec<u8> {
        let all = self.questions.iter().fold(Object::new(), |all, question| {
            let one = Object::new().string("method", &question.method).raw("params", &question.params).finish();
            all.raw(&question.key, one)
        });
        all.finish()
    }
}

/// Removes a question's reference to the task, which the client already knows.
fn without_task_reference(params: &[u8]) -> Bytes {
    let base = Bytes::copy_from_slice(params);
    let mut edits = Edits::new();
    if let Some(own) = json::member(&base, meta::META) {
        let bytes = own.of(&base);
        let mut keys = json::members(bytes).map(|member| json::key_eq(member.key.of(bytes), meta::RELATED_TASK));
        match (keys.next(), keys.next()) {
            (Some(true), None) => edits.remove_member(&base, Span::new(0, base.len()), meta::META),
            _ => edits.remove_member(&base, own, meta::RELATED_TASK),
        }
    }
    edits.apply(&base)
}

fn response(result: &[u8]) -> Bytes {
    builder::response(&RawId::number(0), result)
}

fn refusal<H>(id: &RawId, code: i64, text: &str) -> HostedCommand<H> {
    HostedCommand::Upstream(Draft::word("", builder::error(Some(id), code, text, None)))
}

fn too_many_requests() -> Fault {
    Fault::new(FaultKind::Overloaded, format!("{MAX_WAITING} requests about this task wait already"))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Dialogue(HostedTaskMachine<u32>);

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
            Self(HostedTaskMachine::new(made, capabilities, Revision::LATEST_LEGACY).unwrap())
        }

        fn run(&mut self, run: impl FnOnce(&mut HostedTaskMachine<u32>, &mut Vec<HostedCommand<u32>>)) -> Vec<String> {
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
        assert_eq!(
            dialogue.answers(TaskQuery::Get, &task("working")),
            [format!("1< {working}"), format!("2< {working}")]
        );
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
        let failed =
            dialogue.answers(TaskQuery::Result, r#"{"jsonrpc":"2.0","id":4,"error":{"code":-5,"message":"no"}}"#);
        assert_eq!(failed, [format!("3< {}", shown("failed", r#","error":{"code":-5,"message":"no"}"#))]);
        for to in 0..MAX_WAITING {
            dialogue.get(u32::try_from(to).unwrap());
        }
        assert_eq!(dialogue.get(99), ["99< overloaded"]);
    }
}
