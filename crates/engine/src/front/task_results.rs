//! Results that arrive through a task, by `tasks/result` or inside the answer to `tasks/get`. They are judged as the
//! result of the call that created the task, and then as the answer that carries them.

use super::holding::Continuation;
use super::judging::{JudgedContext, error_message};
use super::task_ownership::TaskOwner;
use super::{Context, FrontMachine};
use crate::bridge;
use crate::bridge::tasks::{self, TaskState};
use crate::chain::{Resume, Verdict};
use crate::command::Command;
use crate::exchange::Exchange;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::task_calls::TaskCall;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, RawId, builder, json, method};
use std::sync::Arc;

/// Task that a request is about.
#[derive(Debug)]
pub(super) struct TaskSubject {
    task: Box<str>,
    /// Call that created the task, if it is remembered.
    call: Option<Arc<TaskCall>>,
}

impl TaskSubject {
    /// Returns the backend's id of the task.
    pub fn name(&self) -> &str {
        &self.task
    }

    /// Returns the backend's name of the tool whose call created the task, if that call is remembered.
    pub fn tool(&self) -> Option<&str> {
        self.call.as_ref().map(|call| &*call.own_name)
    }
}

impl FrontMachine {
    /// Remembers which call created a task, if this answer reports one. `message` is the backend's answer, `told` the
    /// client's.
    pub(super) fn note_task(&self, id: ExchangeId, message: &Envelope, told: &Bytes, ctx: &Context<'_>) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let Some(backend) = &exchange.backend else { return };
        let task = |message: &Envelope| message.result().and_then(TaskState::read).map(|state| state.id);
        let (Some(own), Some(told)) = (task(message), Envelope::parse(told.clone()).ok().as_ref().and_then(task))
        else {
            return;
        };
        // The qualified id is split before the backend is asked.
        let qualified = told.strip_prefix(&**backend).and_then(|rest| rest.strip_prefix('+')) == Some(&*own);
        self.note_task_of(id, if qualified { &own } else { &told }, ctx);
    }

    /// Remembers that this call created the task.
    pub(super) fn note_task_of(&self, id: ExchangeId, task: &str, ctx: &Context<'_>) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let (Some(backend), Some(tool)) = (&exchange.backend, &exchange.subject) else { return };
        let route = ctx.tool(tool).filter(|route| route.backend == *backend);
        let own_name = route.map(|route| route.name).or_else(|| exchange.own_name.clone());
        let call = TaskCall {
            session: self.session,
            exchange: id,
            own_name: own_name.unwrap_or_else(|| tool.clone()),
            tool: tool.clone(),
        };
        ctx.task_calls.note(self.task_key(TaskOwner::of(exchange), backend, task), call);
    }

    /// Marks an exchange as being about a task of its backend.
    pub(super) fn asks_about_task(&mut self, id: ExchangeId, backend: &Arc<str>, task: &str, ctx: &Context<'_>) {
        let Some(exchange) = self.exchanges.get(&id) else { return };
        let call = ctx.task_calls.find(&self.task_key(TaskOwner::of(exchange), backend, task));
        self.exchanges.set_task_subject(id, TaskSubject { task: task.into(), call });
    }

    /// Extracts the result of a task's call as a message of its own, if this answer carries it.
    pub(super) fn task_result(&self, id: ExchangeId, message: &Envelope) -> Option<Envelope> {
        let (exchange, _) = self.exchanges.task_subject(id)?;
        if exchange.method == method::TASKS_RESULT {
            return Some(message.clone());
        }
        let task = message.result()?;
        let member = |key: &str| json::member(task, key).map(|span| span.of(task));
        let bytes = match (member("result"), member("error")) {
            (Some(result), _) => builder::response(&exchange.client_id, result),
            (None, error) => error_message(&exchange.client_id, error?),
        };
        Envelope::parse(bytes).ok()
    }

    /// Returns the exchange as if it were the call that created the task, as far as that call is remembered.
    pub(super) fn as_call(&self, id: ExchangeId) -> Option<Exchange> {
        let (exchange, TaskSubject { call, .. }) = self.exchanges.task_subject(id)?;
        let mut exchange = exchange.clone();
        exchange.method = method::TOOLS_CALL.into();
        (exchange.subject, exchange.own_name) = (None, None);
        if let Some(call) = call {
            (exchange.session, exchange.id) = (call.session, call.exchange);
            exchange.subject = Some(call.tool.clone());
            exchange.own_name = Some(call.own_name.clone());
        }
        Some(exchange)
    }

    /// Returns the backend's name of the tool whose call created the task that a request is about, if that call is
    /// remembered.
    pub(super) fn task_tool(&self, id: ExchangeId) -> Option<&str> {
        let (_, subject) = self.exchanges.task_subject(id)?;
        subject.tool()
    }

    /// Judges the result of a task's call, then the answer that carries it.
    #[allow(clippy::too_many_arguments, reason = "the parts of an answer within another, each needed once")]
    pub(super) fn judge_task_result(
        &mut self,
        id: ExchangeId,
        part: Envelope,
        whole: Envelope,
        then: Continuation,
        resume: Option<Resume<'_>>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        let judged = self.consult(JudgedContext::task_result(id), &part, resume, ctx, out);
        let after = match judged.verdict {
            Verdict::Pass => None,
            Verdict::Modify(message) => Some(message),
            Verdict::Reply(result) => {
                Envelope::parse(builder::response(&RawId::number(0), &self.task_reply(id, &result))).ok()
            }
            Verdict::Hold(hold) => {
                let then = Continuation::Within { whole, then: Box::new(then) };
                return self.hold(id, part, then, hold, judged.passed, ctx, out);
            }
            end => return self.end_by(id, end, ctx, out),
        };
        // A held message may have been changed before it was held.
        let after = after.or_else(|| resume.is_some().then_some(part));
        let Some(after) = after else { return self.judge_message(id, whole, then, None, ctx, out) };
        match self.put_back(id, &whole, &after) {
            Some(changed) => {
                let era = self.exchanges.get(&id).map_or(Era::Legacy, |exchange| exchange.era);
                let then = then.changed(&whole, &changed, era);
                self.judge_message(id, changed, then, None, ctx, out);
            }
            None => {
                let fault = Fault::new(FaultKind::Internal, "the result of the task cannot be put back in its place");
                self.fail(id, &fault, ctx, out);
            }
        }
    }

    /// Converts an interceptor's result to the form that a request about a task returns.
    fn task_reply(&self, id: ExchangeId, result: &Bytes) -> Bytes {
        match self.exchanges.task_subject(id) {
            Some((exchange, _)) if exchange.era == Era::Modern => bridge::complete_result(method::TOOLS_CALL, result),
            Some((_, subject)) => tasks::with_related_task(result, &subject.task),
            None => result.clone(),
        }
    }

    /// Puts the judged result of a task's call back into the answer.
    fn put_back(&self, id: ExchangeId, whole: &Envelope, part: &Envelope) -> Option<Envelope> {
        let exchange = self.exchanges.get(&id)?;
        if exchange.method == method::TASKS_RESULT {
            let own = exchange.client_id.token();
            return Envelope::parse(part.with_id(own)).ok();
        }
        let task = whole.result_span()?;
        let (status, key, value, other) = match (part.result(), part.error()) {
            (Some(result), _) => ("\"completed\"", "result", result, "error"),
            (None, error) => ("\"failed\"", "error", error?, "result"),
        };
        let mut edits = Edits::new();
        edits.set_member(whole.bytes(), task, key, value);
        if json::member(task.of(whole.bytes()), key).is_none() {
            edits.set_member(whole.bytes(), task, "status", status.as_bytes());
            edits.remove_member(whole.bytes(), task, other);
        }
        Envelope::parse(edits.apply_all(whole.bytes()).ok()?).ok()
    }
}
