//! Ends of requests and questions whose caller has lost the permission, or that a switch has turned off.
//!
//! A call that a backend has runs to its end. Meanwhile its backend must not ask the caller anything more, and the
//! caller's answers must not reach it. A request about a task ends like one about an unknown task.

use super::inward::in_params;
use super::questions::PendingQuestion;
use super::task_ownership::TaskOwner;
use super::task_requests::unknown_task;
use super::{Context, FrontMachine};
use crate::catalog::ListKind;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use signalbox_wire::{Envelope, Era, json, meta, method};
use std::sync::Arc;

/// Subject of a backend's question.
#[derive(Clone, Debug)]
pub(super) struct QuestionSubject {
    /// Configured name of the backend that asks.
    pub backend: Arc<str>,
    /// Exchange during which it asks, if known.
    pub about: Option<ExchangeId>,
    /// Task that the question names.
    pub task: Option<Box<str>>,
}

impl QuestionSubject {
    /// Reads the subject of a question that an old backend asks by a request of its own.
    pub fn of(backend: &Arc<str>, about: Option<ExchangeId>, question: &Envelope) -> Self {
        let task = in_params(question, &[meta::META, meta::RELATED_TASK, "taskId"]);
        let task = task.and_then(|span| json::string(span.of(question.bytes())));
        Self { backend: Arc::clone(backend), about, task: task.map(|task| task.into_owned().into()) }
    }
}

impl FrontMachine {
    /// Returns the fault for a question, or for the client's answer to one, if the caller may no longer use what it is
    /// about.
    pub(super) fn withdrawn_question(&self, subject: &QuestionSubject, ctx: &Context<'_>) -> Option<Fault> {
        let QuestionSubject { backend, about, task } = subject;
        ctx.sight?;
        let keeps_task = |task: &str| {
            !self.hides_task(TaskOwner { caller: self.caller_of(*about), era: Era::Legacy }, backend, task, ctx)
        };
        let is_kept = ctx.sees_backend(backend)
            && task.as_deref().is_none_or(keeps_task)
            && about.is_none_or(|id| self.keeps_subject(id, ctx));
        (!is_kept).then(|| Fault::new(FaultKind::Denied, "the caller may no longer use what this is about"))
    }

    /// Does the same for the questions in an answer of a backend.
    pub(super) fn withdrawn_round(&self, id: ExchangeId, ctx: &Context<'_>) -> Option<Fault> {
        let backend = Arc::clone(self.exchanges.get(&id)?.backend.as_ref()?);
        self.withdrawn_question(&QuestionSubject { backend, about: Some(id), task: None }, ctx)
    }

    /// Returns the fault for the client's answer to a question, if it may not reach the backend any more. The answers
    /// to a call of the new era are judged with the call when it continues.
    pub(super) fn withdrawn_answer(&self, question: &PendingQuestion, ctx: &Context<'_>) -> Option<Fault> {
        match question {
            PendingQuestion::Peer { subject, .. } => self.withdrawn_question(subject, ctx),
            PendingQuestion::Round { exchange, .. } => self.withdrawn_task(*exchange, ctx),
            PendingQuestion::Consent { .. } => None,
        }
    }

    /// Returns the fault for a request about a task that the caller may no longer know of.
    pub(super) fn withdrawn_task(&self, id: ExchangeId, ctx: &Context<'_>) -> Option<Fault> {
        ctx.sight?;
        let (exchange, task) = self.exchanges.task_subject(id)?;
        let shown = exchange.subject.as_deref().unwrap_or_else(|| task.name());
        (!self.keeps_subject(id, ctx)).then(|| unknown_task(shown))
    }

    /// Returns true if the caller may still use the entry that a request uses, or know of the task that it is about.
    fn keeps_subject(&self, id: ExchangeId, ctx: &Context<'_>) -> bool {
        let Some(exchange) = self.exchanges.get(&id) else { return true };
        let Some(backend) = &exchange.backend else { return true };
        if let Some((_, task)) = self.exchanges.task_subject(id) {
            return ctx.sees_backend(backend)
                && match task.tool() {
                    Some(tool) => ctx.keeps(ListKind::Tools, backend, tool),
                    None => !self.hides_task(TaskOwner::of(exchange), backend, task.name(), ctx),
                };
        }
        let kind = match &*exchange.method {
            method::TOOLS_CALL => ListKind::Tools,
            method::PROMPTS_GET => ListKind::Prompts,
            method::RESOURCES_READ => ListKind::Resources,
            _ if exchange.is_foreign() => ListKind::Tools,
            _ => return ctx.sees_backend(backend),
        };
        let own = exchange.own_name.as_deref().or(exchange.subject.as_deref());
        ctx.sees_backend(backend) && own.is_none_or(|own| ctx.keeps(kind, backend, own))
    }
}
