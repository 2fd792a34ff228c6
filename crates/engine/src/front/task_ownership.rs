//! Ownership of tasks: which of a backend's tasks a caller may know of. A backend that sees only the gateway's own
//! credential takes all callers for one, and would give each of them the tasks of all.

use super::{Context, FrontMachine};
use crate::caller::{Caller, Proof};
use crate::catalog::ListKind;
use crate::exchange::Exchange;
use crate::keys::ExchangeId;
use crate::task_calls::TaskKey;
use signalbox_wire::{Edits, Envelope, Era, json, method};
use std::sync::Arc;

/// Caller that created a task, and the era in which it did.
#[derive(Copy, Clone)]
pub(super) struct TaskOwner<'a> {
    pub caller: &'a Caller,
    pub era: Era,
}

impl<'a> TaskOwner<'a> {
    pub(super) fn of(exchange: &'a Exchange) -> Self {
        Self { caller: &exchange.caller, era: exchange.era }
    }

    /// Returns true if there are no other callers to keep tasks from: authentication is off, or the gateway's own
    /// credentials are the caller's too. An open endpoint lets callers in without a proof beside others.
    fn is_the_only_user(self, ctx: &Context<'_>) -> bool {
        match self.caller.identity().proof {
            Proof::Unproved => ctx.face.is_none(),
            Proof::LocalUser | Proof::Gateway => true,
            Proof::Certificate | Proof::Signature | Proof::ApiKey | Proof::Token => false,
        }
    }
}

impl FrontMachine {
    pub(super) fn task_owner(&self, id: ExchangeId, era: Era) -> TaskOwner<'_> {
        TaskOwner { caller: self.caller_of(Some(id)), era }
    }

    /// Returns true if this session or another one of its caller created the task, or may have in an earlier process.
    /// Any other task is unknown to the caller, because its backend connection may know tasks of other callers.
    pub(super) fn may_have_made(
        &self,
        whose: TaskOwner<'_>,
        backend: &Arc<str>,
        task: &str,
        ctx: &Context<'_>,
    ) -> bool {
        // Requests of the new era belong to no session, so each of them may come from before a restart.
        let outlives_process = self.restored || whose.era == Era::Modern;
        let is_separate = || ctx.catalog.has_own_credentials(backend) || whose.is_the_only_user(ctx);
        ctx.task_calls.is_of(&self.task_key(whose, backend, task)) || outlives_process && is_separate()
    }

    /// Returns true if this caller must not know of a task: its tool is no longer listed to the caller, or another
    /// caller created it. If the call that created it is not remembered, it may have been any of the backend's tools.
    pub(super) fn hides_task(&self, whose: TaskOwner<'_>, backend: &Arc<str>, task: &str, ctx: &Context<'_>) -> bool {
        let key = self.task_key(whose, backend, task);
        match ctx.task_calls.find(&key) {
            Some(call) => !ctx.keeps(ListKind::Tools, backend, &call.own_name),
            None => ctx.task_calls.is_of_another(&key) || !ctx.keeps_all_tools(backend),
        }
    }

    /// Returns true if a backend may name this task to the caller of its own accord, in a list or a notification: the
    /// caller created it, or the backend knows callers by credentials of their own.
    pub(super) fn shows_task(&self, whose: TaskOwner<'_>, backend: &Arc<str>, task: &str, ctx: &Context<'_>) -> bool {
        let is_own = ctx.catalog.has_own_credentials(backend) || self.may_have_made(whose, backend, task, ctx);
        is_own && !self.hides_task(whose, backend, task, ctx)
    }

    /// Removes the tasks that the caller may not know of from a backend's answer to `tasks/list`.
    pub(super) fn remove_foreign_tasks(
        &self,
        exchange: &Exchange,
        message: &Envelope,
        edits: &mut Edits,
        ctx: &Context<'_>,
    ) {
        if exchange.method != method::TASKS_LIST {
            return;
        }
        let (Some(backend), Some(span)) = (&exchange.backend, message.result_member("tasks")) else { return };
        let list = span.of(message.bytes());
        let is_shown = |entry: &&[u8]| {
            let task = json::member(entry, "taskId").and_then(|span| json::string(span.of(entry)));
            task.is_some_and(|task| self.shows_task(TaskOwner::of(exchange), backend, &task, ctx))
        };
        let all: Vec<&[u8]> = json::elements(list).map(|span| span.of(list)).collect();
        let shown: Vec<&[u8]> = all.iter().copied().filter(is_shown).collect();
        if shown.len() < all.len() || !list.starts_with(b"[") {
            edits.replace(span, [&b"["[..], &shown.join(&b','), b"]"].concat());
        }
    }

    pub(super) fn task_key(&self, owner: TaskOwner<'_>, backend: &Arc<str>, task: &str) -> TaskKey {
        TaskKey {
            principal: owner.caller.principal().clone(),
            session: (owner.era == Era::Legacy).then_some(self.session),
            backend: Arc::clone(backend),
            task: task.into(),
        }
    }
}
