//! A task of an old backend, kept for a client of the new era.
//!
//! In the old shape, `tasks/result` waits for the end of a task and carries its questions; in the new one both are
//! inside the answer to `tasks/get`. The machine opens `tasks/result` when there is something to learn from it, keeps
//! the questions that arrive on it, and shows them until `tasks/update` answers them. `H` identifies the request that
//! waits; the machine only carries it.

use super::object::Object;
use super::tasks::{self, Payload, TaskState, TaskStatus};
use super::{answer, capabilities, questions};
use crate::back::Draft;
use crate::fault::{Fault, FaultKind};
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Kind, RawId, Revision, Span, builder, codes, json, meta, method};

/// Maximum number of requests about one task that may wait.
pub const MAX_WAITING: usize = 32;
/// Maximum number of questions of one task that may be open.
pub const MAX_QUESTIONS: usize = 32;
/// Maximum number of questions that one task may ask.
pub const MAX_ASKED: u32 = 256;

/// A request about the task that the machine sends to the backend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum TaskQuery {
    /// `tasks/get`
    Get,
    /// `tasks/result`, which is answered when the task is over
    Result,
    /// `tasks/cancel`
    Cancel,
}

impl TaskQuery {
    /// Its name on the wire.
    #[must_use]
    pub const fn method(self) -> &'static str {
        match self {
            Self::Get => method::TASKS_GET,
            Self::Result => method::TASKS_RESULT,
            Self::Cancel => method::TASKS_CANCEL,
        }
    }
}

/// What is to be done.
#[derive(Clone, Debug)]
pub enum HostedCommand<H> {
    /// Ask the backend about the task; the answer comes back by [`Hosted::answered`].
    Ask(TaskQuery),
    /// Send this to the backend.
    Upstream(Draft),
    /// Answer the request with this message, whose id has yet to be replaced.
    Deliver(H, Bytes),
    /// Fail the request.
    Fail(H, Fault),
}

#[derive(Clone, Debug)]
struct Question {
    key: String,
    id: RawId,
    method: String,
    params: Bytes,
}

/// The machine; see the module.
#[derive(Debug)]
pub struct Hosted<H> {
    capabilities: Bytes,
    backend: Revision,
    /// The id under which clients know the task, if it was renamed.
    name: Option<String>,
    state: TaskState,
    /// What `tasks/get` last said, raw.
    told: Bytes,
    questions: Vec<Question>,
    asked: u32,
    looking: Vec<H>,
    stopping: Vec<H>,
    getting: bool,
    watching: bool,
}

impl<H: Clone> Hosted<H> {
    /// A task that was just made. `made` is the backend's result, `capabilities` are the client's.
    #[must_use]
    pub fn new(made: &[u8], capabilities: Bytes, backend: Revision) -> Option<Self> {
        let state = TaskState::read(made)?;
        Some(Self {
            capabilities,
            backend,
            name: None,
            told: state.legacy(),
            state,
            questions: Vec::new(),
            asked: 0,
            looking: Vec::new(),
            stopping: Vec::new(),
            getting: false,
            watching: false,
        })
    }

    /// The task as it was last seen.
    pub fn state(&self) -> &TaskState {
        &self.state
    }

    /// Gives the task another id toward clients.
    pub fn rename(&mut self, name: &str) {
        self.name = Some(name.to_owned());
    }

    /// The id by which clients know the task.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.state.id)
    }

    /// The client sent `tasks/get`.
    pub fn get(&mut self, to: H, out: &mut Vec<HostedCommand<H>>) {
        if !self.questions.is_empty() {
            let shown = self.shown();
            return out.push(HostedCommand::Deliver(to, self.told(Payload::Questions(&shown))));
        }
        if self.looking.len() >= MAX_WAITING {
            return out.push(HostedCommand::Fail(to, crowded()));
        }
        self.looking.push(to);
        let at_hand = self.watching && tasks::is_terminal(self.state.status);
        if !self.getting && !at_hand {
            self.getting = true;
            out.push(HostedCommand::Ask(TaskQuery::Get));
        }
    }

    /// The client sent `tasks/update`. Answers that nobody waits for are ignored, because they may come twice.
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

    /// The client sent `tasks/cancel`.
    pub fn cancel(&mut self, to: H, out: &mut Vec<HostedCommand<H>>) {
        if self.stopping.len() >= MAX_WAITING {
            return out.push(HostedCommand::Fail(to, crowded()));
        }
        self.stopping.push(to);
        if self.stopping.len() == 1 {
            out.push(HostedCommand::Ask(TaskQuery::Cancel));
        }
    }

    /// The backend asks the client something during the task.
    pub fn asked(&mut self, message: &Envelope, out: &mut Vec<HostedCommand<H>>) {
        let (Some(id), Some(method)) = (message.id(), message.method()) else { return };
        let params = message.params().unwrap_or(b"{}");
        if !capabilities::allows(&self.capabilities, method, params) {
            let text = "the client declared no capability for this request";
            return out.push(refusal(&id, codes::METHOD_NOT_FOUND, text));
        }
        if json::member(params, "task").is_some() {
            let text = "a task that the client would host cannot be carried to revision 2026-07-28";
            return out.push(refusal(&id, codes::METHOD_NOT_FOUND, text));
        }
        if self.asked >= MAX_ASKED || self.questions.len() >= MAX_QUESTIONS {
            return out.push(refusal(&id, codes::INTERNAL_ERROR, "this task has asked too often"));
        }
        self.asked += 1;
        let params = questions::to_modern(method, &unrelated(params));
        self.questions.push(Question { key: format!("q{}", self.asked), id, method: method.to_owned(), params });
        if !self.getting {
            let shown = self.shown();
            self.deliver(Payload::Questions(&shown), out);
        }
    }

    /// The backend cancelled a question.
    pub fn withdrawn(&mut self, id: &RawId) {
        self.questions.retain(|question| question.id != *id);
    }

    /// The backend answered a request about the task, or the request failed.
    pub fn answered(&mut self, about: TaskQuery, answer: Result<&Envelope, Fault>, out: &mut Vec<HostedCommand<H>>) {
        match (about, answer) {
            (TaskQuery::Get, Ok(message)) => self.looked(message, out),
            (TaskQuery::Get, Err(fault)) => {
                self.getting = false;
                self.fail(&fault, out);
            }
            (TaskQuery::Result, Ok(message)) => self.ended(message, out),
            (TaskQuery::Result, Err(fault)) => {
                self.watching = false;
                self.questions.clear();
                self.fail(&fault, out);
            }
            (TaskQuery::Cancel, answer) => {
                self.questions.clear();
                for to in std::mem::take(&mut self.stopping) {
                    out.push(match &answer {
                        // A task that is already over is as good as cancelled.
                        Ok(_) => HostedCommand::Deliver(to, response(tasks::ACKNOWLEDGED)),
                        Err(fault) => HostedCommand::Fail(to, fault.clone()),
                    });
                }
            }
        }
    }

    fn looked(&mut self, message: &Envelope, out: &mut Vec<HostedCommand<H>>) {
        self.getting = false;
        if message.kind() == Kind::Error {
            for to in std::mem::take(&mut self.looking) {
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
        self.told = Bytes::copy_from_slice(result);
        let over = matches!(self.state.status, TaskStatus::Completed | TaskStatus::Failed);
        if (over || self.state.status == TaskStatus::InputRequired) && !self.watching {
            self.watching = true;
            out.push(HostedCommand::Ask(TaskQuery::Result));
        }
        match (over, self.questions.is_empty()) {
            // The answer to `tasks/result` is already here, and goes into this one.
            (true, _) => {}
            (false, true) => self.deliver(Payload::Nothing, out),
            (false, false) => {
                let shown = self.shown();
                self.deliver(Payload::Questions(&shown), out);
            }
        }
    }

    /// Takes the answer to `tasks/result`. It is not kept: a later `tasks/get` asks again.
    fn ended(&mut self, message: &Envelope, out: &mut Vec<HostedCommand<H>>) {
        self.watching = false;
        self.questions.clear();
        if message.kind() == Kind::Error && !tasks::is_terminal(self.state.status) {
            // Probably cancelled; the next `tasks/get` will tell.
            return;
        }
        let mut edits = Edits::new();
        let fitted = answer(method::TOOLS_CALL, (Revision::LATEST, self.backend), message, &mut edits, &mut Vec::new());
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
        let looking = std::mem::take(&mut self.looking);
        for to in looking {
            out.push(HostedCommand::Deliver(to, self.told(payload)));
        }
    }

    fn fail(&mut self, fault: &Fault, out: &mut Vec<HostedCommand<H>>) {
        for to in std::mem::take(&mut self.looking) {
            out.push(HostedCommand::Fail(to, fault.clone()));
        }
    }

    fn told(&self, payload: Payload<'_>) -> Bytes {
        let told = tasks::get_to_modern(&self.told, payload).unwrap_or_else(|| self.state.modern(payload));
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

/// A question without its reference to the task, which the client already knows.
fn unrelated(params: &[u8]) -> Bytes {
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

fn crowded() -> Fault {
    Fault::new(FaultKind::Overloaded, format!("{MAX_WAITING} requests about this task wait already"))
}

#[cfg(test)]
mod tests;
