//! Tasks that a legacy backend creates from calls of modern clients.

use super::Peer;
use crate::backend::Backend;
use crate::hosted_task::HostedTask;
use crate::origin::Origin;
use crate::session::Session;
use signalbox_engine::bridge;
use signalbox_engine::bridge::tasks::TaskState;
use signalbox_engine::correlation::MAX_CALL;
use signalbox_engine::{ClientProfile, Fault, FaultKind};
use signalbox_wire::{Edits, Envelope, json, meta, method};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Time limit for the backend to acknowledge the cancellation of a task.
const STOP_TIMEOUT: Duration = Duration::from_secs(10);

impl Peer {
    /// Handles a call that the backend turned into a task. A client that supports tasks gets the task, any other its
    /// result.
    pub(super) fn task_made(
        self: &Arc<Self>,
        to: Origin,
        message: Envelope,
        mut edits: Edits,
        status: Option<u16>,
        client: &ClientProfile,
    ) {
        let (Some(backend), Some(profile)) = (self.backend.upgrade(), self.profile()) else { return };
        let (made, Some(gateway)) = (message.result().unwrap_or_default(), backend.gateway()) else { return };
        if !bridge::knows_tasks(&client.capabilities) {
            return self.await_task(to, made, client, backend.spec().timeout);
        }
        let task = HostedTask::new(self, made, client, profile.revision, backend.spec().timeout).map(Arc::new);
        let Some(task) = task else { return };
        let Some(name) = gateway.tasks.host(&task, &backend.name) else {
            self.stop_task(&task.id);
            let fault = Fault::new(FaultKind::Overloaded, "too many tasks are remembered for this caller");
            return self.fail(&to, fault);
        };
        let mut message = message;
        if *name != *task.id {
            task.rename(&name);
            if let Ok(whole) = Envelope::parse(edits.apply(message.bytes()))
                && let Some(result) = whole.result_span()
            {
                let mut renamed = Edits::new();
                renamed.set_member(whole.bytes(), result, "taskId", json::quote(&name).as_bytes());
                if let Ok(told) = Envelope::parse(renamed.apply(whole.bytes())) {
                    (message, edits) = (told, Edits::new());
                }
            }
        }
        self.answer(to, message, edits, status);
    }

    /// Waits for the result of a task on behalf of the call that created it. A legacy backend answers `tasks/result`
    /// when the task has ended, and asks its questions on that request.
    fn await_task(self: &Arc<Self>, to: Origin, made: &[u8], client: &ClientProfile, timeout: Duration) {
        let Some(state) = TaskState::read(made) else { return };
        let stay = state.ttl.map_or(MAX_CALL, Duration::from_millis);
        let timeout = stay.max(timeout).min(MAX_CALL);
        let sent = {
            let mut inner = self.lock();
            let request =
                inner.machine.await_task(to.clone(), &state.id, client.revision, timeout, crate::clock::now());
            request.and_then(|message| self.transmit(&mut inner, message))
        };
        if let Err(fault) = sent {
            self.fail(&to, fault);
        }
    }

    /// Returns true while one call has exclusive use of the connection.
    pub(crate) fn is_in_exclusive_use(&self) -> bool {
        self.busy.load(Ordering::Acquire)
    }

    /// Cancels a task at the backend.
    pub(super) fn stop_task(&self, task: &str) {
        let params = format!(r#""taskId":{}"#, json::quote(task));
        let _ = self.own(Origin::Discard, method::TASKS_CANCEL, &params, STOP_TIMEOUT);
    }

    /// Forwards a status change of a legacy backend's task. A task of a modern client goes to the listen requests that
    /// name it. Otherwise, on a shared connection, the session that owns the task gets it.
    pub(super) fn task_changed(self: &Arc<Self>, backend: &Arc<Backend>, message: &Envelope) {
        let params = message.params().unwrap_or_default();
        let id = json::member(params, "taskId").and_then(|span| json::string(span.of(params)));
        let (Some(gateway), Some(id)) = (backend.gateway(), id) else { return backend.count_stray("notification") };
        if let Some(task) = gateway.tasks.at(self.id, self.user.principal(), &id) {
            return self.notify_followers(&task);
        }
        let mut owners = gateway.sessions.all();
        owners.retain(|session| session.is_user(&self.user) && session.owns_task(&backend.name, &id));
        if owners.is_empty() {
            backend.count_stray("notification");
        }
        for owner in owners {
            owner.handle(self.notice(&backend.name, message.clone(), None));
        }
    }

    /// Reports the state of a task to the listen requests that follow it.
    pub(super) fn notify_followers(&self, task: &Arc<HostedTask>) {
        let Some(backend) = self.backend.upgrade() else { return };
        let followers = backend.task_followers(&task.name(), &self.user);
        if !followers.is_empty() {
            task.notify_listeners(&backend.name, followers);
        }
    }

    /// Returns the task that a question of the backend belongs to.
    pub(super) fn task_asking(&self, about: Option<&Origin>, message: &Envelope) -> Option<Arc<HostedTask>> {
        if let Some(Origin::Hosted(task, _)) = about {
            return Some(Arc::clone(task));
        }
        let gateway = self.backend.upgrade()?.gateway()?;
        gateway.tasks.at(self.id, self.user.principal(), &related_task(message)?)
    }

    /// Returns true if a question belongs to a task that the backend gave this session and still works on.
    pub(super) fn asks_about_task(&self, owner: &Session, message: &Envelope) -> bool {
        let works_on = |task: &str| self.tasks.has(task, crate::clock::now()) && owner.owns_task(&self.name, task);
        related_task(message).is_some_and(|task| works_on(&task))
    }
}

/// Returns the task that a question names.
fn related_task(message: &Envelope) -> Option<std::borrow::Cow<'_, str>> {
    let params = message.params()?;
    let span = json::path(params, &[meta::META, meta::RELATED_TASK, "taskId"])?;
    json::string(span.of(params))
}
