//! What the machine may look at while it handles an event: the ports through which it sees the rest of the program.

use crate::caller::Caller;
use crate::catalog::{ListKind, Route, Selector, Sight, Snapshot};
use crate::chain::Chain;
use crate::keys::Numbers;
use crate::operations::Operations;
use crate::read_cache::Generation;
use crate::task_calls::TaskCalls;
use crate::trace;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a machine may look at while it handles an event.
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// The time as milliseconds since 1970, for what clients are told of moments.
    pub unix_ms: &'a dyn Fn() -> u64,
    /// The lists and names.
    pub catalog: &'a Snapshot,
    /// Who sent the message, where that is not whoever opened the session.
    pub caller: Option<&'a Caller>,
    /// The rounds that clients may go on with.
    pub operations: &'a Operations,
    /// The calls of the tasks that clients ask about.
    pub task_calls: &'a TaskCalls,
    /// Numbers for what is new.
    pub numbers: &'a Numbers,
    /// The interceptors.
    pub chain: &'a Chain,
    /// The id that the client of this session was given, where it was.
    pub session: Option<&'a str>,
    /// When the session began.
    pub session_started: Instant,
    /// Our own `serverInfo` object.
    pub server_info: &'a str,
    /// What the gateway itself has to tell a model, before what its backends say; empty for nothing.
    pub instructions: &'a str,
    /// Most requests in flight in one session.
    pub max_in_flight: usize,
    /// How long a client may take to answer what a backend wants to know.
    pub round_timeout: Duration,
    /// What is known of the changes of a resource, as (backend, its URI).
    pub changes: &'a dyn Fn(&str, &str) -> Generation,
    /// True where somebody wants message facts.
    pub message_facts: bool,
    /// The trace that a request belongs to, where somebody follows traces.
    pub trace: Option<&'a trace::Begin<'a>>,
    /// The backend at which the caller has a task of this id, as far as the gateway knows.
    pub task_home: &'a dyn Fn(&str) -> Option<Arc<str>>,
    /// The time at this very moment, which is later than `now` by as long as the event has been worked on.
    pub clock: &'a dyn Fn() -> Instant,
    /// What the caller sees of the catalog; everything where it is none.
    pub sight: Option<&'a Sight<'a>>,
    /// Says whether the lists this kind of client needs are known, or have been waited for long enough.
    pub lists_ready: &'a dyn Fn(&Selector) -> bool,
}

impl Context<'_> {
    /// True where the caller sees what the route leads to.
    pub(super) fn sees(&self, kind: ListKind, route: &Route) -> bool {
        self.sight.is_none_or(|sight| sight.entry(kind, &route.backend, &route.name))
    }

    /// True where the caller sees anything of this backend.
    pub(super) fn sees_backend(&self, backend: &str) -> bool {
        self.sight.is_none_or(|sight| sight.backend(backend))
    }
}
