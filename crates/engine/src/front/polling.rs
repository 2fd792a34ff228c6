//! Polls a task of a new backend for an old client that waits for its end: with its call, because it knows no tasks, or
//! with `tasks/result`.
//!
//! ```text
//!             Cancelling (tasks/cancel)
//!                  ▼
//! Pausing ─► Getting (tasks/get) ─► done: the client is answered
//!    ▲             │ questions: AskingClient ─► Updating (tasks/update) ─┐
//!    └─────────────┴─────────────────────────────────────────────────────┘
//! ```

use super::exchanges::Stage;
use super::input_requests::{InputRequest, InputResponses, read_requests};
use super::judging::{AuthorizedCall, REFUSED_NOTIFICATION};
use super::sending::Delivery;
use super::{Context, FrontMachine};
use crate::bridge::tasks::{self, Payload, TaskState, TaskStatus};
use crate::bridge::{self, CallProgress, RevisionPair};
use crate::chain::Phase;
use crate::command::Command;
use crate::correlation::MAX_CALL;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Kind, RawId, Revision, builder, method};
use std::sync::Arc;
use std::time::Duration;

/// Poll interval of a task that names none.
const PAUSE: Duration = Duration::from_secs(1);
/// Shortest and longest poll interval, regardless of the task's own.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(30));
/// Maximum number of consecutive polls that may fail for lack of a connection.
const MAX_FAILURES: u32 = 3;
/// Maximum number of questions that one task may ask.
const MAX_SEEN: usize = 256;

/// Result that the client waits for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(super) enum PollGoal {
    /// The end of its call. If the call ends early, the task is cancelled.
    Call,
    /// The result, requested with `tasks/result`. The answer names the task.
    Result,
    /// The current state of the task.
    State,
}

#[derive(Debug)]
enum PollStep {
    Pausing,
    /// `tasks/get` is in flight.
    Getting,
    /// The client is being asked the task's questions.
    AskingClient(InputResponses),
    /// `tasks/update` is in flight.
    Updating,
    /// `tasks/cancel` is in flight.
    Cancelling,
}

/// Task that the machine polls.
#[derive(Debug)]
pub(super) struct TaskPoll {
    /// The client's call, which supplies the client, era and log level for requests about the task.
    call: AuthorizedCall,
    task: String,
    backend: Revision,
    goal: PollGoal,
    step: PollStep,
    pause: Duration,
    failures: u32,
    /// Questions already sent to the client.
    seen: Vec<InputRequest>,
    /// Status message last reported to the client as progress.
    told: Option<String>,
    progress: u64,
}

impl TaskPoll {
    pub fn new(call: AuthorizedCall, task: &str, backend: Revision, goal: PollGoal) -> Self {
        Self {
            call,
            task: task.to_owned(),
            backend,
            goal,
            step: PollStep::Pausing,
            pause: PAUSE,
            failures: 0,
            seen: Vec::new(),
            told: None,
            progress: 0,
        }
    }

    /// Returns true if the backend's next answer is about the task, and not yet for the client.
    pub fn awaits_backend(&self) -> bool {
        matches!(self.step, PollStep::Getting | PollStep::Updating | PollStep::Cancelling)
    }

    /// Returns the client's answers, while it is being asked.
    pub fn responses(&self) -> Option<&InputResponses> {
        match &self.step {
            PollStep::AskingClient(responses) => Some(responses),
            _ => None,
        }
    }

    pub fn responses_mut(&mut self) -> Option<&mut InputResponses> {
        match &mut self.step {
            PollStep::AskingClient(responses) => Some(responses),
            _ => None,
        }
    }

    /// Builds a request about the task on behalf of the client.
    fn request(&self, name: &'static str, responses: Option<&[u8]>) -> Result<AuthorizedCall, Fault> {
        self.call.about_task(name, &self.task, responses)
    }

    fn update(&mut self, state: &TaskState) {
        self.failures = 0;
        self.pause = state.poll.map_or(PAUSE, Duration::from_millis).clamp(PAUSES.0, PAUSES.1);
    }
}

impl FrontMachine {
    /// Starts to poll a task that was just created.
    pub(super) fn follow_task(
        &mut self,
        id: ExchangeId,
        state: &TaskState,
        mut poll: TaskPoll,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        poll.update(state);
        out.push(Command::Wake { exchange: id, after: poll.pause, round: None });
        self.exchanges.enter(id, Stage::PollingTask(Box::new(poll)));
        self.task_progressed(id, state, ctx, out);
    }

    /// Polls a task at once.
    pub(super) fn poll_now(&mut self, id: ExchangeId, poll: TaskPoll, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.exchanges.enter(id, Stage::PollingTask(Box::new(poll)));
        self.send_about(id, PollStep::Getting, method::TASKS_GET, None, ctx, out);
    }

    /// Cancels a task at once, then polls it.
    pub(super) fn cancel_now(&mut self, id: ExchangeId, poll: TaskPoll, ctx: &Context<'_>, out: &mut Vec<Command>) {
        self.exchanges.enter(id, Stage::PollingTask(Box::new(poll)));
        self.send_about(id, PollStep::Cancelling, method::TASKS_CANCEL, None, ctx, out);
    }

    /// Polls again after a pause.
    pub(super) fn poll_again(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        if !self.exchanges.poll(id).is_some_and(|poll| matches!(poll.step, PollStep::Pausing)) {
            return;
        }
        if let Some(fault) = self.withdrawn_task(id, ctx) {
            return self.fail(id, &fault, ctx, out);
        }
        let started = self.exchanges.get(&id).map(|exchange| exchange.started);
        if started.is_some_and(|started| ctx.now.saturating_duration_since(started) >= MAX_CALL) {
            self.abandon_task(id, out);
            let text = format!("the task was not done within {} hours", MAX_CALL.as_secs() / 3600);
            return self.fail(id, &Fault::new(FaultKind::TimedOut, text), ctx, out);
        }
        self.send_about(id, PollStep::Getting, method::TASKS_GET, None, ctx, out);
    }

    /// Sends the client's answers to the task.
    pub(super) fn update_task(&mut self, id: ExchangeId, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some(responses) = self.exchanges.poll(id).and_then(TaskPoll::responses) else { return };
        let responses = responses.to_object();
        self.send_about(id, PollStep::Updating, method::TASKS_UPDATE, Some(&responses), ctx, out);
    }

    fn send_about(
        &mut self,
        id: ExchangeId,
        step: PollStep,
        name: &'static str,
        responses: Option<&[u8]>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let Some((exchange, poll)) = self.exchanges.polled_mut(id) else { return };
        let Some(backend) = exchange.backend.clone() else { return };
        match poll.request(name, responses) {
            Ok(call) => {
                poll.step = step;
                // The interceptors have judged everything but the client's answers.
                let call = match responses {
                    None => Some(call),
                    Some(_) => self.judge_call(id, call.into_call(), ctx, out),
                };
                out.extend(call.map(|call| Command::Forward { exchange: id, backend, call }));
            }
            Err(fault) => self.fail(id, &fault, ctx, out),
        }
    }

    /// Cancels a task that is known only to this call.
    pub(super) fn abandon_task(&self, id: ExchangeId, out: &mut Vec<Command>) {
        let Some(poll) = self.exchanges.poll(id).filter(|poll| poll.goal == PollGoal::Call) else { return };
        let backend = self.exchanges.get(&id).and_then(|exchange| exchange.backend.clone());
        if let (Some(backend), Ok(call)) = (backend, poll.request(method::TASKS_CANCEL, None)) {
            out.push(Command::SendAndDiscard { backend, call });
        }
    }

    /// Handles a failed request about the task. A poll may be repeated.
    pub(super) fn poll_failed(&mut self, id: ExchangeId, fault: &Fault, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let passing = matches!(fault.kind, FaultKind::BackendDown | FaultKind::BackendDied | FaultKind::TimedOut);
        let poll = self.exchanges.poll_mut(id).filter(|poll| matches!(poll.step, PollStep::Getting) && passing);
        match poll.filter(|poll| poll.failures < MAX_FAILURES) {
            Some(poll) => {
                poll.failures += 1;
                poll.step = PollStep::Pausing;
                out.push(Command::Wake { exchange: id, after: poll.pause, round: None });
            }
            None => self.fail(id, fault, ctx, out),
        }
    }

    /// Handles a backend's answer to a request about the task.
    pub(super) fn poll_answered(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        edits: Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        if let Some(fault) = self.withdrawn_task(id, ctx) {
            return self.fail(id, &fault, ctx, out);
        }
        if message.kind() == Kind::Error {
            self.exchanges.take_poll(id);
            return self.answered(id, message, edits, None, ctx, out);
        }
        match self.exchanges.poll(id).map(|poll| &poll.step) {
            None => {}
            Some(PollStep::Cancelling) => self.send_about(id, PollStep::Getting, method::TASKS_GET, None, ctx, out),
            Some(PollStep::Updating) => self.pause(id, out),
            Some(_) => {
                if let Err(fault) = self.handle_poll_answer(id, message, ctx, out) {
                    self.abandon_task(id, out);
                    self.fail(id, &fault, ctx, out);
                }
            }
        }
    }

    fn handle_poll_answer(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let result = message.result().unwrap_or_default();
        let garbage = |text: &str| Fault::new(FaultKind::BackendGarbage, text);
        let state =
            TaskState::read(result).ok_or_else(|| garbage("the backend reported a task in an unknown shape"))?;
        let Some(poll) = self.exchanges.poll_mut(id) else { return Ok(()) };
        self.task_registry.seen(&poll.task, &state);
        poll.update(&state);
        if poll.goal == PollGoal::State {
            let told = tasks::get_to_legacy(result).unwrap_or_else(|| state.legacy());
            self.exchanges.take_poll(id);
            return self.answer_with(id, builder::response(&RawId::number(0), &told), Edits::new(), ctx, out);
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
                if let Some(fault) = self.withdrawn_round(id, ctx) {
                    return Err(fault);
                }
                let judged = self.judge_midway(id, Phase::Response, message, ctx, out);
                let Some(judged) = judged else { return Ok(()) };
                match Payload::read(judged.result().unwrap_or_default()) {
                    Payload::Questions(object) => {
                        let requests = self.signed_requests(id, object, ctx)?;
                        self.ask_for_task(id, read_requests(&requests), ctx, out)
                    }
                    _ => self.ask_for_task(id, Vec::new(), ctx, out),
                }
            }
            Payload::Nothing if state.status == TaskStatus::Cancelled => {
                Err(Fault::new(FaultKind::Refused, "the task was cancelled"))
            }
            Payload::Nothing if tasks::is_terminal(state.status) => {
                Err(garbage("the backend reported a finished task without its result"))
            }
            Payload::Nothing => {
                self.task_progressed(id, &state, ctx, out);
                self.pause(id, out);
                Ok(())
            }
        }
    }

    fn pause(&mut self, id: ExchangeId, out: &mut Vec<Command>) {
        if let Some(poll) = self.exchanges.poll_mut(id) {
            poll.step = PollStep::Pausing;
            out.push(Command::Wake { exchange: id, after: poll.pause, round: None });
        }
    }

    /// Asks the client the questions of the task that are new. A backend may repeat a question for a while after its
    /// answer.
    fn ask_for_task(
        &mut self,
        id: ExchangeId,
        mut wanted: Vec<InputRequest>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let Some(poll) = self.exchanges.poll_mut(id) else { return Ok(()) };
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
        let (client, backend) = (Arc::clone(&poll.call.client), poll.backend);
        let responses = self.ask_client(id, wanted, &client, backend, ctx, out)?;
        if let (Some(responses), Some(poll)) = (responses, self.exchanges.poll_mut(id)) {
            poll.step = PollStep::AskingClient(responses);
        }
        Ok(())
    }

    /// Reports the task's status message as progress, if the client asked for progress.
    fn task_progressed(&mut self, id: ExchangeId, state: &TaskState, ctx: &Context<'_>, out: &mut Vec<Command>) {
        let Some((exchange, poll)) = self.exchanges.polled_mut(id) else { return };
        let (Some(token), Some(text)) = (&exchange.progress_token, &state.message) else { return };
        let is_visible = exchange.backend.as_deref().is_none_or(|backend| ctx.sees_backend(backend));
        if !exchange.stream_open || !is_visible || poll.told.as_ref() == Some(text) {
            return;
        }
        poll.told = Some(text.clone());
        poll.progress += 1;
        let mut note = builder::Notification::new(method::PROGRESS)
            .param_raw("progressToken", token.token())
            .param_raw("progress", poll.progress.to_string());
        if poll.call.client.revision > Revision::V2024_11_05 {
            note = note.param_str("message", text);
        }
        let Ok(note) = Envelope::parse(note.build()) else { return };
        let stream = exchange.stream;
        let judged = self.judge_notification(Phase::FromBackend, (Some(id), None), &note, ctx, out);
        let Ok(judged) = judged else { return out.push(Command::Dropped(REFUSED_NOTIFICATION)) };
        self.send(Some(id), Delivery::droppable(stream), Self::passed(&judged), ctx, out);
    }

    /// Answers with the result or error of a finished task, as if it had answered the call.
    fn conclude(
        &mut self,
        id: ExchangeId,
        bytes: Bytes,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let Some(poll) = self.exchanges.take_poll(id) else { return Ok(()) };
        let bad = |_| Fault::new(FaultKind::BackendGarbage, "the result of the task is not a tool result");
        let message = Envelope::parse(bytes).map_err(bad)?;
        let mut edits = Edits::new();
        let revisions = RevisionPair { client: poll.call.client.revision, backend: poll.backend };
        let reach = bridge::answer(method::TOOLS_CALL, revisions, &message, &mut edits, &mut Vec::new())?;
        if reach != CallProgress::Whole {
            return Err(Fault::new(FaultKind::BackendGarbage, "the result of the task is not complete"));
        }
        if poll.goal != PollGoal::Result || message.kind() == Kind::Error {
            self.answered(id, &message, edits, None, ctx, out);
            return Ok(());
        }
        let fitted = Envelope::parse(edits.apply(message.bytes())).map_err(bad)?;
        let named = tasks::with_related_task(fitted.result().unwrap_or(b"{}"), &poll.task);
        self.answer_with(id, builder::response(&RawId::number(0), &named), Edits::new(), ctx, out)
    }

    /// Answers the exchange with a message that the gateway built.
    pub(super) fn answer_with(
        &mut self,
        id: ExchangeId,
        bytes: Bytes,
        edits: Edits,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let bad = |_| Fault::new(FaultKind::BackendGarbage, "the backend's answer about a task is not JSON");
        let message = Envelope::parse(bytes).map_err(bad)?;
        self.answered(id, &message, edits, None, ctx, out);
        Ok(())
    }
}
