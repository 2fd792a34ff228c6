//! Requests that may reach a backend.

use crate::catalog::Route;
use crate::chain::Chain;
use crate::exchange::Call;
use crate::fault::{Fault, FaultKind};
use signalbox_wire::{Edits, Envelope, builder};
use std::ops::Deref;
use std::sync::Arc;

/// Request of a client that the interceptors let through. Only the judging module can create one.
#[derive(Debug)]
pub(in crate::front) struct ClearedRequest(Envelope);

impl ClearedRequest {
    /// Wraps a request that passed, or that no interceptor judges.
    pub(super) fn judged(message: Envelope) -> Self {
        Self(message)
    }

    #[inline]
    pub(in crate::front) fn message(&self) -> &Envelope {
        &self.0
    }

    /// Builds the call that leaves with this request.
    #[inline]
    pub(in crate::front) fn authorize(self, call: impl FnOnce(Envelope) -> Call) -> AuthorizedCall {
        AuthorizedCall(Box::new(call(self.0)))
    }
}

/// Proof that no interceptor has anything to judge, so that a request need not be prepared for them.
#[derive(Debug)]
pub(in crate::front) struct IdleChain(());

impl IdleChain {
    /// Returns the proof if the chain is idle.
    #[inline]
    pub(in crate::front) fn now(chain: &Chain) -> Option<Self> {
        chain.is_idle().then_some(Self(()))
    }

    /// Clears a request that arrives while the chain is idle.
    #[inline]
    pub(in crate::front) fn clear(self, message: Envelope) -> ClearedRequest {
        ClearedRequest(message)
    }
}

/// A call that may reach a backend, because the interceptors have judged it. Every command that sends a client's
/// request to a backend holds one, connections accept nothing else, and only the judging module can create one. Code
/// that forwards an unjudged call does not compile.
///
/// ```
/// use signalbox_engine::{AuthorizedCall, Call, Command};
///
/// fn what_leaves(command: &Command) -> Option<&AuthorizedCall> {
///     match command {
///         Command::Forward { call, .. } | Command::Fork { call, .. } | Command::SendAndDiscard { call, .. } => Some(call),
///         Command::Watch(watch) => Some(&watch.call),
///         _ => None,
///     }
/// }
///
/// fn name(call: &AuthorizedCall) -> Option<&str> {
///     let call: &Call = call;
///     call.name.as_deref()
/// }
/// ```
///
/// Other modules cannot create one from a call:
///
/// ```compile_fail,E0423
/// use signalbox_engine::{AuthorizedCall, Call};
///
/// fn forge(call: Box<Call>) -> AuthorizedCall {
///     AuthorizedCall(call)
/// }
/// ```
///
/// They cannot forward a plain call:
///
/// ```compile_fail,E0308
/// use signalbox_engine::{Call, Command, ExchangeId};
/// use std::sync::Arc;
///
/// fn bypass(exchange: ExchangeId, backend: Arc<str>, call: Box<Call>) -> Command {
///     Command::Forward { exchange, backend, call }
/// }
/// ```
///
/// They cannot replace the call inside one:
///
/// ```compile_fail,E0594
/// use signalbox_engine::{AuthorizedCall, Call};
///
/// fn swap(authorized: &mut AuthorizedCall, call: Call) {
///     **authorized = call;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct AuthorizedCall(Box<Call>);

impl AuthorizedCall {
    /// Wraps a call that was judged in this form.
    pub(super) fn judged(call: Box<Call>) -> Self {
        Self(call)
    }

    /// Builds the gateway's own request about the task that this call created or asks about.
    pub(in crate::front) fn about_task(
        &self,
        name: &'static str,
        task: &str,
        responses: Option<&[u8]>,
    ) -> Result<Self, Fault> {
        let mut request = builder::RequestBuilder::new(name).param_str("taskId", task);
        if let Some(responses) = responses {
            request = request.param_raw("inputResponses", responses);
        }
        let bad = |_| Fault::new(FaultKind::Internal, "a request about a task could not be made");
        Ok(Self(Box::new(Call {
            envelope: Envelope::parse(request.build()).map_err(bad)?,
            edits: Edits::new(),
            client: Arc::clone(&self.client),
            method: name.into(),
            name: Some(task.into()),
            progress: None,
            param_headers: None,
            era: self.era,
            log_level: self.log_level,
            round: None,
            trace: None,
            tries: 0,
            awaits_sign_in: false,
        })))
    }

    /// Returns the call, which must be judged again before it may reach a backend.
    #[must_use]
    pub fn into_call(self) -> Box<Call> {
        self.0
    }

    /// Marks the call as having waited for a sign-in, or about to.
    pub fn await_sign_in(&mut self) {
        self.0.awaits_sign_in = true;
    }

    /// Counts one more attempt.
    pub fn retried(&mut self) {
        self.0.tries += 1;
    }

    /// Returns the same call without the answers and the state of an earlier round.
    #[must_use]
    pub fn without_round(mut self) -> Self {
        let call = &mut *self.0;
        call.round = None;
        if let Some(params) = call.envelope.params_span() {
            for key in ["inputResponses", "requestState"] {
                call.edits.remove_member(call.envelope.bytes(), params, key);
            }
        }
        self
    }

    /// Gives the back machine mutable access, to adapt a call to the revision of its backend.
    pub(crate) fn fitting(&mut self) -> &mut Call {
        &mut self.0
    }

    /// Wraps an unjudged call, for tests of the back machine.
    #[cfg(test)]
    pub(crate) fn unjudged(call: Call) -> Self {
        Self(Box::new(call))
    }
}

impl Deref for AuthorizedCall {
    type Target = Call;

    #[inline]
    fn deref(&self) -> &Call {
        &self.0
    }
}

/// Resources and tasks that a listen request may follow, as (backend, the backend's URI or id). Each of them was
/// judged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuthorizedFollow {
    resources: Vec<(Arc<str>, Box<str>)>,
    tasks: Vec<(Arc<str>, Box<str>)>,
}

impl AuthorizedFollow {
    pub(super) fn resource(&mut self, route: &Route) {
        self.resources.push((Arc::clone(&route.backend), route.name.clone()));
    }

    pub(super) fn task(&mut self, route: &Route) {
        self.tasks.push((Arc::clone(&route.backend), route.name.clone()));
    }

    /// Returns the resources to follow.
    #[must_use]
    pub fn resources(&self) -> &[(Arc<str>, Box<str>)] {
        &self.resources
    }

    /// Returns the tasks to follow.
    #[must_use]
    pub fn tasks(&self) -> &[(Arc<str>, Box<str>)] {
        &self.tasks
    }

    /// Returns true if there is nothing to follow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.tasks.is_empty()
    }
}
