//! Tasks of 2025-11-25 at new backends: calls that ask for a task, and requests about it.

use super::judging::{AuthorizedCall, ClearedRequest};
use super::params::Params;
use super::polling::{PollGoal, TaskPoll};
use super::requests::FoundRoute;
use super::subjects::text;
use super::task_registry::{TaskEntry, TaskHost, TaskRegistry, timestamp_token};
use super::{Context, FrontMachine};
use crate::bridge::tasks::{self, TaskState, TaskStatus};
use crate::bridge::{self, CallProgress, RevisionPair};
use crate::catalog::{Route, Selector};
use crate::chain::Phase;
use crate::command::Command;
use crate::exchange::Call;
use crate::fault::{Fault, FaultKind};
use crate::keys::ExchangeId;
use crate::profile::ClientProfile;
use bytes::Bytes;
use signalbox_wire::{Edits, Envelope, Era, RawId, Revision, builder, json, method};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum and default time a result is stored.
const STAY: Duration = Duration::from_secs(3600);

impl FrontMachine {
    /// Handles a task that a backend of the new era created for a call.
    pub(super) fn task_made(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        call: AuthorizedCall,
        backend: Revision,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let result = message.result().unwrap_or_default();
        let garbage = || Fault::new(FaultKind::BackendGarbage, "the backend created a task in an unknown shape");
        let state = TaskState::read(result).ok_or_else(garbage)?;
        let Some(exchange) = self.exchanges.get(&id) else { return Ok(()) };
        if !(exchange.wants_task && call.client.revision.tasks_core()) {
            let poll = TaskPoll::new(call, &state.id, backend, PollGoal::Call);
            self.follow_task(id, &state, poll, ctx, out);
            return Ok(());
        }
        let created = tasks::create_to_legacy(result).ok_or_else(garbage)?;
        let name = exchange.backend.clone();
        self.answer_with(id, builder::response(&RawId::number(0), &created), Edits::new(), ctx, out)?;
        if let Some(name) = name {
            let task = state.id.clone();
            self.register_task(&task, TaskEntry::new(name, TaskHost::Modern(backend), Some(state), ctx.now), ctx, out);
        }
        Ok(())
    }

    /// Handles the plain result of a call whose client wants a task: stores it as the result of a finished task.
    pub(super) fn no_task_made(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        call: &Call,
        backend: Revision,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Result<(), Fault> {
        let mut edits = Edits::new();
        let revisions = RevisionPair { client: call.client.revision, backend };
        let reach = bridge::answer(&call.method, revisions, message, &mut edits, &mut Vec::new());
        let Some(exchange) = self.exchanges.get(&id) else { return Ok(()) };
        if reach? != CallProgress::Whole || !exchange.wants_task {
            return Err(bridge::not_bridged("a result that is not complete", call.client.revision, backend));
        }
        super::resource_uris::rename_uris(exchange, message, &mut edits, ctx);
        let name = exchange.backend.clone().unwrap_or_else(|| Arc::from(""));
        let fitted = Envelope::parse(edits.apply(message.bytes()))
            .map_err(|_| Fault::new(FaultKind::BackendGarbage, "the result of the call is not JSON"))?;
        let Some(fitted) = self.judge_midway(id, Phase::Response, &fitted, ctx, out) else { return Ok(()) };
        let result = Bytes::copy_from_slice(fitted.result().unwrap_or(b"{}"));
        if !TaskRegistry::has_room_for(result.len()) {
            // A result that is too large to be stored is sent at once instead.
            self.reply(id, &result, ctx, out);
            return Ok(());
        }
        let state = self.stored_task_state(id, &result, call, ctx);
        let created = state.created_legacy();
        let entry = TaskEntry::new(name, TaskHost::Gateway(result), Some(state.clone()), ctx.now);
        self.register_task(&state.id, entry, ctx, out);
        self.note_task_of(id, &state.id, ctx);
        self.reply(id, &created, ctx, out);
        Ok(())
    }

    fn stored_task_state(&self, id: ExchangeId, result: &[u8], call: &Call, ctx: &Context<'_>) -> TaskState {
        let wish = call.envelope.params().and_then(tasks::wish).and_then(|wish| wish.ttl);
        let stay = wish.unwrap_or(u64::MAX).min(u64::try_from(STAY.as_millis()).unwrap_or(u64::MAX));
        let failed = json::member(result, "isError").is_some_and(|span| span.of(result) == b"true");
        let at = timestamp_token((ctx.unix_ms)());
        TaskState {
            id: format!("signalbox-{}-{}", self.session, id),
            status: if failed { TaskStatus::Failed } else { TaskStatus::Completed },
            poll: None,
            ttl: Some(stay),
            message: None,
            created: at.clone(),
            updated: at,
        }
    }

    pub(super) fn register_task(&mut self, task: &str, entry: TaskEntry, ctx: &Context<'_>, out: &mut Vec<Command>) {
        for _ in 0..self.task_registry.insert(task, entry, ctx.now) {
            out.push(Command::Dropped("task_forgotten"));
        }
    }

    /// Answers an old client's request about a task that no old backend runs. Returns false for any other request,
    /// which is then routed.
    pub(super) fn task_request(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        client: &Arc<ClientProfile>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> bool {
        let name = message.method().unwrap_or_default();
        let params = Params::read(message);
        if name == method::TASKS_LIST {
            let listed = self.lists_tasks(id, ctx);
            if listed && self.judge_local(id, message, None, ctx, out).is_some() {
                let whose = self.task_owner(id, Era::Legacy);
                let known = self.task_registry.states(ctx.now);
                let known = known.filter(|(backend, state)| !self.hides_task(whose, backend, &state.id, ctx));
                let states: Vec<Bytes> = known.map(|(_, state)| state.legacy()).collect();
                let result = [&b"{\"tasks\":["[..], &states.join(&b","[..]), b"]}"].concat();
                self.reply(id, &result, ctx, out);
            }
            return listed;
        }
        if !matches!(name, method::TASKS_GET | method::TASKS_RESULT | method::TASKS_CANCEL) {
            return false;
        }
        let task = params.task_id.and_then(|span| json::string(span.of(message.bytes())));
        let Some(task) = task else { return false };
        let Some(entry) = self.task_registry.get(&task, ctx.now).cloned() else { return false };
        if self.hides_task(self.task_owner(id, Era::Legacy), &entry.backend, &task, ctx) {
            return false;
        }
        if matches!(entry.host, TaskHost::Legacy) {
            return false;
        }
        let Some(cleared) = self.judge_local(id, message, Some(&entry.backend), ctx, out) else { return true };
        match entry.host {
            TaskHost::Legacy => {}
            TaskHost::Gateway(result) => {
                self.stored_task_request(id, name, &task, &result, entry.state.as_ref(), ctx, out)
            }
            TaskHost::Modern(revision) => {
                if let Some(exchange) = self.exchanges.get_mut(&id) {
                    exchange.progress_token =
                        params.progress_token().map(|span| RawId::from_token(message.bytes().slice(span.range())));
                }
                self.asks_about_task(id, &entry.backend, &task, ctx);
                let goal = if name == method::TASKS_RESULT { PollGoal::Result } else { PollGoal::State };
                let call = self.derived_call(id, cleared, client);
                let poll = TaskPoll::new(call, &task, revision, goal);
                match name {
                    method::TASKS_CANCEL => self.cancel_now(id, poll, ctx, out),
                    _ => self.poll_now(id, poll, ctx, out),
                }
            }
        }
        true
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of a request, each needed once")]
    fn stored_task_request(
        &mut self,
        id: ExchangeId,
        name: &str,
        task: &str,
        result: &[u8],
        state: Option<&TaskState>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) {
        match (name, state) {
            (method::TASKS_GET, Some(state)) => self.reply(id, &state.legacy(), ctx, out),
            (method::TASKS_RESULT, _) => self.reply(id, &tasks::with_related_task(result, task), ctx, out),
            _ => {
                let fault = Fault::new(FaultKind::InvalidParams, "the task is over and cannot be cancelled");
                self.fail(id, &fault, ctx, out);
            }
        }
    }

    /// Judges a request that the gateway answers or translates itself.
    fn judge_local(
        &mut self,
        id: ExchangeId,
        message: &Envelope,
        backend: Option<&Arc<str>>,
        ctx: &Context<'_>,
        out: &mut Vec<Command>,
    ) -> Option<ClearedRequest> {
        self.exchanges.get_mut(&id)?.backend = backend.cloned();
        self.judge_here(id, message, ctx, out)
    }

    /// Returns true if the gateway lists tasks itself. If the only backend with tasks is an old one, the request is
    /// passed on to it, unless some of its tools are hidden from the caller.
    fn lists_tasks(&self, id: ExchangeId, ctx: &Context<'_>) -> bool {
        let selector = self.selector(id);
        let mut hosts = ctx.catalog.profiles(&selector, ctx.sight).filter(|(_, profile)| profile.hosts_tasks());
        match (hosts.next(), hosts.next()) {
            (None, _) => false,
            (Some((name, only)), None) => only.era() == Era::Modern || !ctx.keeps_all_tools(name),
            _ => true,
        }
    }

    /// Returns the route of a request about a task: the backend known to have it, else the first (in the new era the
    /// only) backend that runs tasks of the client's own era.
    pub(super) fn find_task(
        &self,
        id: ExchangeId,
        message: &Envelope,
        params: &Params,
        ctx: &Context<'_>,
    ) -> Result<FoundRoute, Fault> {
        let name = message.method().unwrap_or_default();
        let found = if name == method::TASKS_LIST {
            self.list_route(id, ctx).ok_or_else(|| unknown_task(""))
        } else {
            text(message, params.task_id, "taskId").and_then(|(span, task)| {
                let route = self.task_route(id, &task, ctx).ok_or_else(|| unknown_task(&task))?;
                let subject = Some(span).filter(|_| route.renamed);
                Ok(FoundRoute { route, subject })
            })
        };
        let selector = self.selector(id);
        let has_host = || ctx.catalog.profiles(&selector, ctx.sight).any(|(_, profile)| profile.hosts_tasks());
        found.map_err(|fault| if has_host() { fault } else { Fault::no_method(name) })
    }

    /// Returns the route of a list of tasks that the gateway passes on.
    fn list_route(&self, id: ExchangeId, ctx: &Context<'_>) -> Option<FoundRoute> {
        let backend = own_host(&self.selector(id), ctx).filter(|host| ctx.keeps_all_tools(host))?;
        Some(FoundRoute { route: Route { backend, name: "".into(), renamed: false }, subject: None })
    }

    /// Returns the backend of a task that the caller may know of, and its id there.
    pub(super) fn task_route(&self, id: ExchangeId, task: &str, ctx: &Context<'_>) -> Option<Route> {
        let selector = self.selector(id);
        let known = self.task_registry.get(task, ctx.now).map(|entry| &entry.backend);
        let known = known.cloned().or_else(|| (ctx.task_home)(task).filter(|_| selector.era == Era::Modern));
        if let (None, Some((backend, own))) = (&known, task.split_once('+'))
            && let Some(entry) = ctx.catalog.backends().iter().find(|entry| *entry.name == *backend)
            && ctx.sees_backend(backend)
        {
            let whose = self.task_owner(id, selector.era);
            let is_known = self.may_have_made(whose, &entry.name, own, ctx);
            return (is_known && !self.hides_task(whose, &entry.name, own, ctx)).then(|| Route {
                backend: Arc::clone(&entry.name),
                name: own.into(),
                renamed: true,
            });
        }
        // The search does not move to other backends when the task's own backend is hidden from the caller.
        let whose = self.task_owner(id, selector.era);
        let home = match known {
            Some(home) => ctx.sees_backend(&home).then_some(home)?,
            None => own_host(&selector, ctx).filter(|home| self.may_have_made(whose, home, task, ctx))?,
        };
        (!self.hides_task(whose, &home, task, ctx)).then(|| Route { backend: home, name: task.into(), renamed: false })
    }

    /// Returns true if an old backend gave this session the task.
    #[must_use]
    pub fn owns_task(&self, backend: &str, task: &str, now: Instant) -> bool {
        let entry = self.task_registry.get(task, now);
        entry.is_some_and(|entry| *entry.backend == *backend && matches!(entry.host, TaskHost::Legacy))
    }

    /// Builds a call from which the gateway derives its own requests about a task.
    fn derived_call(&self, id: ExchangeId, cleared: ClearedRequest, client: &Arc<ClientProfile>) -> AuthorizedCall {
        let exchange = self.exchanges.get(&id);
        cleared.authorize(|envelope| Call {
            envelope,
            edits: Edits::new(),
            client: Arc::clone(client),
            method: exchange.map_or_else(|| method::TASKS_GET.into(), |exchange| exchange.method.clone()),
            name: None,
            progress: None,
            param_headers: None,
            era: client.revision.era(),
            log_level: self.log_level,
            round: None,
            trace: None,
            tries: 0,
            awaits_sign_in: false,
        })
    }
}

/// Returns the first backend that runs tasks of the client's own era.
fn own_host(selector: &Selector, ctx: &Context<'_>) -> Option<Arc<str>> {
    let hosts = ctx.catalog.profiles(selector, ctx.sight).filter(|(_, profile)| profile.hosts_tasks());
    let mut own = hosts.filter(|(_, profile)| profile.era() == selector.era).map(|(name, _)| name);
    let first = own.next().cloned();
    // A task of the new era that is not remembered can only be at the only host.
    first.filter(|_| selector.era == Era::Legacy || own.next().is_none())
}

/// Returns the fault for an unknown task.
pub(super) fn unknown_task(task: &str) -> Fault {
    let shown: String = task.chars().take(200).collect();
    Fault::new(FaultKind::InvalidParams, format!("Unknown task: {shown}"))
}
