//! Looking at a task of a backend of the new era until it is done, for a client of the old one that waits: with its call,
//! because it knows no tasks, or with `tasks/result`.
//!
//! ```text
//! Pause ─► Look (tasks/get) ─► done: the client is answered
//!   ▲          │ questions: the client is asked ─► Tell (tasks/update) ─┐
//!   └──────────┴────────────────────────────────────────────────────────┘
//! ```

use super::inquiry::{Wanted, read_requests};
use super::sending::Way;
use super::{Context, FrontMachine};
use crate::bridge::tasks::{self, Payload, TaskState, TaskStatus};
use crate::bridge::{self, Reach};
use crate::chain::Phase;
use crate::command::Command;
use crate::correlation::MAX_CALL;
use crate::exchange::Call;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Kind, RawId, Revision, builder, method};
use std::sync::Arc;
use std::time::Duration;

/// The pause between two looks at a task that names none.
const PAUSE: Duration = Duration::from_secs(1);
/// The shortest and the longest pause, whatever the task names.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));
/// How many looks in a row may fail for want of a connection.
const MAX_FAILURES: u32 = 3;
/// Most questions of one task that are remembered as asked.
const MAX_SEEN: usize = 256;

/// What the client waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum Aim {
    /// The end of the call that it made. With the call the task is given up.
    Call,
    /// The same by `tasks/result`, which says which task it belongs to.
    Result,
    /// The task as it stands.
    State,
}

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
enum Step {
    Pause,
    /// `tasks/get` is on its way.
    Look,
    /// The client is asked.
    Ask,
    /// `tasks/update` is on its way.
    Tell,
    /// `tasks/cancel` is on its way.
    Stop,
}

/// A task that is looked at.
#[derive(Clone, Debug)]
pub(super) struct Poll {
    /// Whose calls those about the task are like.
    call: Box<Call>,
    task: String,
    backend: Revision,
    aim: Aim,
    step: Step,
    pause: Duration,
    failures: u32,
    seen: Vec<Wanted>,
    told: Option<String>,
    steps: u64,
}

impl Poll {
    pub fn new(call: Box<Call>, task: &str, backend: Revision, aim: Aim) -> Self {
        Self {
            call,
            task: task.to_owned(),
            backend,
            aim,
            step: Step::Pause,
            pause: PAUSE,
            failures: 0,
            seen: Vec::new(),
            told: None,
            steps: 0,
        }
    }

    /// A request about the task, in the name of the client.
    fn request(&self, name: &'static str, responses: Option<&[u8]>) -> Result<Box<Call>, Fault> {
        let mut request = builder::Request::new(name).param_str("taskId", &self.task);
        if let Some(responses) = responses {
            request = request.param_raw("inputResponses", responses);
        }
        let bad = |_| Fault::new(FaultKind::Internal, "a request about a task could not be made");
        Ok(Box::new(Call {
            envelope: Envelope::parse(request.build()).map_err(bad)?,
            edits: Edits::new(),
            client: self.call.client.clone(),
            method: name.into(),
            name: Some(self.task.as_str().into()),
            progress: None,
            param_headers: None,
            era: self.call.era,
            log_level: self.call.log_level,
            round: None,
            trace: None,
            tries: 0,
        }))
    }

    fn noted(&mut self, state: &TaskState) {
        self.failures = 0;
        self.pause = state.poll.map_or(PAUSE, Duration::from_millis).clamp(PAUSES.0, PAUSES.1);
    }
}

impl FrontMachine {
    /// Begins to look at a task that was just made.
    pub(super) fn follow_task(
        &mut self,
        id: ExchangeId,
        state: &TaskState,
        mut poll: Poll,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        poll.noted(state);
        out.push(Command::Wake { exchange: id, after: poll.pause, round: None });
        self.polls.insert(id, poll);
        self.task_progressed(id, state, ctx, out);
    }

    /// Looks at a task at once.
    pub(super) fn look_now(&mut self, id: ExchangeId, poll: Poll, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.polls.insert(id, poll);
        self.send_about(id, Step::Look, method::TASKS_GET, None, ctx, out);
    }

    /// Cancels a task at once, and then looks at it.
    pub(super) fn stop_now(&mut self, id: ExchangeId, poll: Poll, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.polls.insert(id, poll);
        self.send_about(id, Step::Stop, method::TASKS_CANCEL, None, ctx, out);
    }

    /// The pause between two looks is over.
    pub(super) fn look_again(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if self.polls.get(&id).is_none_or(|poll| poll.step != Step::Pause) {
            return;
        }
        let started = self.exchanges.get(&id).map(|exchange| exchange.started);
        if started.is_some_and(|started| ctx.now.saturating_duration_since(started) >= MAX_CALL) {
            self.give_task_up(id, out);
            let text = format!("the task was not done within {} hours", MAX_CALL.as_secs() / 3600);
            return self.fail(id, &Fault::new(FaultKind::TimedOut, text), ctx, out);
        }
        self.send_about(id, Step::Look, method::TASKS_GET, None, ctx, out);
    }

    /// The client has answered everything that the task wanted to know.
    pub(super) fn tell_task(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if self.polls.get(&id).is_some_and(|poll| poll.step == Step::Ask) {
            let responses = self.take_answers(id);
            self.send_about(id, Step::Tell, method::TASKS_UPDATE, Some(&responses), ctx, out);
        }
    }

    fn send_about(
        &mut self,
        id: ExchangeId,
        step: Step,
        name: &'static str,
        responses: Option<&[u8]>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let backend = self.exchanges.get(&id).and_then(|exchange| exchange.backend.clone());
        let (Some(poll), Some(backend)) = (self.polls.get_mut(&id), backend) else { return };
        match poll.request(name, responses) {
            Ok(mut call) => {
                poll.step = step;
                // Only what the client has said is new to the interceptors.
                if responses.is_none() || self.passes(id, &mut call, ctx, out) {
                    out.push(Command::Forward { exchange: id, backend, call });
                }
            }
            Err(fault) => self.fail(id, &fault, ctx, out),
        }
    }

    /// Stops the work on a task that nobody but this call knows of.
    pub(super) fn give_task_up(&self, id: ExchangeId, out: &mut Vec<Command>) {
        let backend = self.exchanges.get(&id).and_then(|exchange| exchange.backend.clone());
        let poll = self.polls.get(&id).filter(|poll| poll.aim == Aim::Call);
        if let (Some(backend), Some(Ok(call))) = (backend, poll.map(|poll| poll.request(method::TASKS_CANCEL, None))) {
            out.push(Command::Errand { backend, call });
        }
    }

    /// True where the answer of a backend is about the task, and not yet for the client.
    pub(super) fn is_polling(&self, id: ExchangeId) -> bool {
        self.polls.get(&id).is_some_and(|poll| matches!(poll.step, Step::Look | Step::Tell | Step::Stop))
    }

    /// A request about the task could not be brought to an answer. A look may be taken again.
    pub(super) fn poll_failed(&mut self, id: ExchangeId, fault: &Fault, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let passing = matches!(fault.kind, FaultKind::BackendDown | FaultKind::BackendDied | FaultKind::TimedOut);
        let poll = self.polls.get_mut(&id).filter(|poll| poll.step == Step::Look && passing);
        match poll.filter(|poll| poll.failures < MAX_FAILURES) {
            Some(poll) => {
                poll.failures += 1;
                poll.step = Step::Pause;
                out.push(Command::Wake { exchange: id, after: poll.pause, round: None });
            }
            None => self.fail(id, fault, ctx, out),
        }
    }

    /// A backend answered a request about the task.
    pub(super) fn poll_answered(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        edits: Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some(poll) = self.polls.get_mut(&id) else { return };
        if message.kind() == Kind::Error {
            self.polls.remove(&id);
            return self.answered(id, message, edits, None, ctx, out);
        }
        match poll.step {
            Step::Stop => self.send_about(id, Step::Look, method::TASKS_GET, None, ctx, out),
            Step::Tell => {
                poll.step = Step::Pause;
                out.push(Command::Wake { exchange: id, after: poll.pause, round: None });
            }
            _ => {
                if let Err(fault) = self.looked(id, message, ctx, out) {
                    self.give_task_up(id, out);
                    self.fail(id, &fault, ctx, out);
                }
            }
        }
    }

    fn looked(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let result = message.result().unwrap_or_default();
        let garbage = |text: &str| Fault::new(FaultKind::BackendGarbage, text);
        let state = TaskState::read(result).ok_or_else(|| garbage("the backend told of a task in no known shape"))?;
        let Some(poll) = self.polls.get_mut(&id) else { return Ok(()) };
        self.task_registry.seen(&poll.task, &state);
        poll.noted(&state);
        if poll.aim == Aim::State {
            let told = tasks::get_to_legacy(result).unwrap_or_else(|| state.legacy());
            self.polls.remove(&id);
            return self.tell_whole(id, builder::response(&RawId::number(0), &told), Edits::new(), ctx, out);
        }
        match Payload::read(result) {
            Payload::Result(value) => self.conclude(id, builder::response(&RawId::number(0), value), ctx, out),
            Payload::Error(value) => {
                let mut bytes = br#"{"jsonrpc":"2.0","id":0,"error":"#.to_vec();
                bytes.extend_from_slice(value);
                bytes.push(b'}');
                self.conclude(id, bytes.into(), ctx, out)
            }
            Payload::Questions(_) => {
                let judged = self.judge_midway(id, Phase::Response, message, ctx, out);
                let Some(judged) = judged else { return Ok(()) };
                match Payload::read(judged.result().unwrap_or_default()) {
                    Payload::Questions(object) => self.ask_for_task(id, read_requests(object), ctx, out),
                    _ => self.ask_for_task(id, Vec::new(), ctx, out),
                }
            }
            Payload::Nothing if state.status == TaskStatus::Cancelled => {
                Err(Fault::new(FaultKind::Refused, "the task was cancelled"))
            }
            Payload::Nothing if tasks::is_terminal(state.status) => {
                Err(garbage("the backend told of a task that is over, but not how"))
            }
            Payload::Nothing => {
                self.task_progressed(id, &state, ctx, out);
                self.pause(id, out);
                Ok(())
            }
        }
    }

    fn pause(&mut self, id: ExchangeId, out: &mut Vec<Command>) {
        if let Some(poll) = self.polls.get_mut(&id) {
            poll.step = Step::Pause;
            out.push(Command::Wake { exchange: id, after: poll.pause, round: None });
        }
    }

    /// Asks the client what the task wants to know, unless it was asked before: a backend may show a question for a
    /// while after its answer has come.
    fn ask_for_task(
        &mut self,
        id: ExchangeId,
        mut wanted: Vec<Wanted>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let Some(poll) = self.polls.get_mut(&id) else { return Ok(()) };
        wanted.retain(|one| !poll.seen.contains(one));
        if wanted.is_empty() {
            self.pause(id, out);
            return Ok(());
        }
        if poll.seen.len() + wanted.len() > MAX_SEEN {
            return Err(Fault::new(
                FaultKind::BackendGarbage,
                format!("one task asked more than {MAX_SEEN} questions"),
            ));
        }
        poll.seen.extend(wanted.iter().cloned());
        poll.step = Step::Ask;
        let (client, backend) = (Arc::clone(&poll.call.client), poll.backend);
        self.inquire(id, wanted, (&client, backend), ctx, out).map(|_| ())
    }

    /// What a task says about itself is progress, for a client that wants to hear of it.
    fn task_progressed(&mut self, id: ExchangeId, state: &TaskState, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let (Some(poll), Some(exchange)) = (self.polls.get_mut(&id), self.exchanges.get(&id)) else { return };
        let (Some(token), Some(text)) = (&exchange.progress_token, &state.message) else { return };
        if !exchange.stream_open || poll.told.as_ref() == Some(text) {
            return;
        }
        poll.told = Some(text.clone());
        poll.steps += 1;
        let mut note = builder::Notification::new(method::PROGRESS)
            .param_raw("progressToken", token.token())
            .param_raw("progress", poll.steps.to_string());
        if poll.call.client.revision > Revision::V2024_11_05 {
            note = note.param_str("message", text);
        }
        let Ok(note) = Envelope::parse(note.build()) else { return };
        let stream = exchange.stream;
        let judged = self.judge_notification(Phase::FromBackend, (Some(id), None), &note, ctx, out);
        let Some(judged) = judged else { return };
        self.send(Some(id), Way::droppable(stream), Self::passed(&judged), ctx, out);
    }

    /// The task is over: its result or error answers whoever waits for it, as it would have answered the call.
    fn conclude(
        &mut self,
        id: ExchangeId,
        bytes: Bytes,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let Some(poll) = self.polls.remove(&id) else { return Ok(()) };
        let bad = |_| Fault::new(FaultKind::BackendGarbage, "the result of the task is not one of a call");
        let message = Envelope::parse(bytes).map_err(bad)?;
        let mut edits = Edits::new();
        let revisions = (poll.call.client.revision, poll.backend);
        let reach = bridge::answer(method::TOOLS_CALL, revisions, &message, &mut edits, &mut Vec::new())?;
        if reach != Reach::Whole {
            return Err(Fault::new(FaultKind::BackendGarbage, "the result of the task is not complete"));
        }
        if poll.aim != Aim::Result || message.kind() == Kind::Error {
            self.answered(id, &message, edits, None, ctx, out);
            return Ok(());
        }
        let fitted = Envelope::parse(edits.apply(message.bytes())).map_err(bad)?;
        let named = tasks::with_related_task(fitted.result().unwrap_or(b"{}"), &poll.task);
        self.tell_whole(id, builder::response(&RawId::number(0), &named), Edits::new(), ctx, out)
    }

    /// Answers the exchange with a message that the gateway has put together.
    pub(super) fn tell_whole(
        &mut self,
        id: ExchangeId,
        bytes: Bytes,
        edits: Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let bad = |_| Fault::new(FaultKind::BackendGarbage, "what the backend said of a task is not JSON");
        let message = Envelope::parse(bytes).map_err(bad)?;
        self.answered(id, &message, edits, None, ctx, out);
        Ok(())
    }
}
