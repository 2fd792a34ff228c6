//! Requests of the gateway itself. None of them uses a tool, prompt or resource: only clients do.

use super::{BackMachine, Outbound, Purpose};
use crate::fault::{Fault, FaultKind};
use signalbox_wire::{Revision, json, method};
use std::time::{Duration, Instant};

/// Methods that use a tool, prompt or resource. The gateway never sends them by itself.
const USES_ENTRIES: [&str; 4] =
    [method::TOOLS_CALL, method::PROMPTS_GET, method::RESOURCES_READ, method::COMPLETION_COMPLETE];

impl<O: Clone> BackMachine<O> {
    /// Sends a request of our own: lists, pings, subscriptions and tasks. `params` are the members of the params object
    /// without braces.
    ///
    /// # Errors
    /// Returns a fault while the connection is not ready, and for methods that use an entry: those are sent only for
    /// clients, as an [`crate::AuthorizedCall`].
    pub fn own_request(
        &mut self,
        origin: O,
        name: &'static str,
        params: &str,
        timeout: Duration,
        now: Instant,
    ) -> Result<Outbound, Fault> {
        if USES_ENTRIES.contains(&name) {
            return Err(Fault::new(FaultKind::Internal, format!("`{name}` is sent for clients alone")));
        }
        let profile = self.profile.clone().ok_or_else(|| self.not_ready())?;
        let (client, method) = (profile.revision, name.into());
        let purpose = Purpose::Call {
            origin,
            method,
            client,
            repeatable: None,
            task_client: None,
            task: None,
            sign_in_call: None,
        };
        let id = self.calls.open(purpose, now, timeout);
        Ok(self.request(id, name, params, profile.revision))
    }

    /// Sends `tasks/result` for a task that an old backend created for a call. Its answer replaces that of the call.
    ///
    /// # Errors
    /// Returns a fault while the connection is not ready.
    pub fn await_task(
        &mut self,
        origin: O,
        task: &str,
        client: Revision,
        timeout: Duration,
        now: Instant,
    ) -> Result<Outbound, Fault> {
        let profile = self.profile.clone().ok_or_else(|| self.not_ready())?;
        let method = method::TOOLS_CALL.into();
        let purpose = Purpose::Call {
            origin,
            method,
            client,
            repeatable: None,
            task_client: None,
            task: Some(task.into()),
            sign_in_call: None,
        };
        let id = self.calls.open(purpose, now, timeout);
        let params = format!(r#""taskId":{}"#, json::quote(task));
        Ok(self.request(id, method::TASKS_RESULT, &params, profile.revision))
    }
}
