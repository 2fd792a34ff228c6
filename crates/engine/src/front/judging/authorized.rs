//! Requests that may reach a backend.

use crate::catalog::Route;
use crate::chain::Chain;
use crate::exchange::Call;
use crate::fault::{Fault, FaultKind};
use signalbox_wire::{Edits, Envelope, builder};
use std::ops::Deref;
use std::sync::Arc;

/// A request of a client as the interceptors let it through. Only the module that asks them makes one.
#[derive(Debug)]
pub(in crate::front) struct Cleared(Envelope);

impl Cleared {
    /// A request that passed, or about which no interceptor has anything to say.
    pub(super) fn judged(message: Envelope) -> Self {
        Self(message)
    }

    #[inline]
    pub(in crate::front) fn message(&self) -> &Envelope {
        &self.0
    }

    /// The call that leaves with it.
    #[inline]
    pub(in crate::front) fn authorize(self, call: impl FnOnce(Envelope) -> Call) -> Authorized {
        Authorized(Box::new(call(self.0)))
    }
}

/// Proof that no interceptor has anything to say, so that a request need not be prepared for them.
#[derive(Debug)]
pub(in crate::front) struct NobodyToAsk(());

impl NobodyToAsk {
    /// It, if that is so.
    #[inline]
    pub(in crate::front) fn now(chain: &Chain) -> Option<Self> {
        chain.is_idle().then_some(Self(()))
    }

    /// A request that comes at this moment.
    #[inline]
    pub(in crate::front) fn clear(self, message: Envelope) -> Cleared {
        Cleared(message)
    }
}

/// A call that may reach a backend, because the interceptors were asked about it. Every command that sends a client's request to a
/// backend holds one, connections take nothing else, and only the module that asks the interceptors can make one: a call that was
/// not judged does not compile.
///
/// ```
/// use signalbox_engine::{Authorized, Call, Command};
///
/// fn what_leaves(command: &Command) -> Option<&Authorized> {
///     match command {
///         Command::Forward { call, .. } | Command::Fork { call, .. } | Command::Errand { call, .. } => Some(call),
///         Command::Watch(watch) => Some(&watch.call),
///         _ => None,
///     }
/// }
///
/// fn name(call: &Authorized) -> Option<&str> {
///     let call: &Call = call;
///     call.name.as_deref()
/// }
/// ```
///
/// Nobody else can make one of a call:
///
/// ```compile_fail,E0423
/// use signalbox_engine::{Authorized, Call};
///
/// fn forge(call: Box<Call>) -> Authorized {
///     Authorized(call)
/// }
/// ```
///
/// Nor send a call that is none:
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
/// Nor put another call into one:
///
/// ```compile_fail,E0594
/// use signalbox_engine::{Authorized, Call};
///
/// fn swap(authorized: &mut Authorized, call: Call) {
///     **authorized = call;
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Authorized(Box<Call>);

impl Authorized {
    /// A call that was judged as it stands.
    pub(super) fn judged(call: Box<Call>) -> Self {
        Self(call)
    }

    /// The gateway's own request about the task that this call made, or asks about.
    pub(in crate::front) fn about_task(
        &self,
        name: &'static str,
        task: &str,
        responses: Option<&[u8]>,
    ) -> Result<Self, Fault> {
        let mut request = builder::Request::new(name).param_str("taskId", task);
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

    /// The call, which has to be judged before it may reach a backend again.
    #[must_use]
    pub fn into_call(self) -> Box<Call> {
        self.0
    }

    /// Notes that the call has waited for a sign-in, or is about to.
    pub fn await_sign_in(&mut self) {
        self.0.awaits_sign_in = true;
    }

    /// Counts one more try.
    pub fn retried(&mut self) {
        self.0.tries += 1;
    }

    /// The same call without the answers and the state of an earlier round.
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

    /// For the back machine alone, which fits a call to the revision of its backend.
    pub(crate) fn fitting(&mut self) -> &mut Call {
        &mut self.0
    }

    /// A call that nobody judged, for tests of the back machine.
    #[cfg(test)]
    pub(crate) fn unjudged(call: Call) -> Self {
        Self(Box::new(call))
    }
}

impl Deref for Authorized {
    type Target = Call;

    #[inline]
    fn deref(&self) -> &Call {
        &self.0
    }
}

/// The resources and tasks that a listen request may follow, as (backend, URI or id of the backend). Each of them was judged.
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

    /// The resources.
    #[must_use]
    pub fn resources(&self) -> &[(Arc<str>, Box<str>)] {
        &self.resources
    }

    /// The tasks.
    #[must_use]
    pub fn tasks(&self) -> &[(Arc<str>, Box<str>)] {
        &self.tasks
    }

    /// True if there is nothing to follow.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.tasks.is_empty()
    }
}
