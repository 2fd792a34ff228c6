//! The ports through which the machine sees the rest of the program.

use crate::caller::Caller;
use crate::catalog::{ListKind, Route, Selector, Sight, Snapshot};
use crate::chain::Chain;
use crate::fault::Fault;
use crate::keys::Numbers;
use crate::operations::Operations;
use crate::read_cache::Generation;
use crate::task_calls::TaskCalls;
use crate::trace;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Everything a machine may look at while it handles an event.
pub struct Context<'a> {
    /// The time.
    pub now: Instant,
    /// The wall-clock time in milliseconds since 1970, for timestamps that clients see.
    pub unix_ms: &'a dyn Fn() -> u64,
    /// The lists and names.
    pub catalog: &'a Snapshot,
    /// The sender of the message, if it is not the opener of the session.
    pub caller: Option<&'a Caller>,
    /// Why the message is refused before anybody looks at it, if it is: its signature does not hold.
    pub refusal: Option<&'a Fault>,
    /// The rounds that clients may continue.
    pub operations: &'a Operations,
    /// The calls that made the tasks clients ask about.
    pub task_calls: &'a TaskCalls,
    /// Counters for new exchanges and messages.
    pub numbers: &'a Numbers,
    /// The interceptors.
    pub chain: &'a Chain,
    /// The session id that the client was given, if any.
    pub session: Option<&'a str>,
    /// When the session began.
    pub session_started: Instant,
    /// Our own `serverInfo` object.
    pub server_info: &'a str,
    /// The gateway's own instructions, shown before those of its backends; may be empty.
    pub instructions: &'a str,
    /// Maximum number of requests in flight per session.
    pub max_in_flight: usize,
    /// How long a client may take to answer a round of questions.
    pub round_timeout: Duration,
    /// The generation of a resource, by backend and its URI.
    pub changes: &'a dyn Fn(&str, &str) -> Generation,
    /// True if message facts are wanted.
    pub message_facts: bool,
    /// Starts the trace of a request, if tracing is on.
    pub trace: Option<&'a trace::Begin<'a>>,
    /// The backend that has the caller's task of this id, if known.
    pub task_home: &'a dyn Fn(&str) -> Option<Arc<str>>,
    /// The current time, which is later than `now` once the event has been worked on.
    pub clock: &'a dyn Fn() -> Instant,
    /// The part of the catalog that the caller sees; `None` for all of it.
    pub sight: Option<&'a Sight<'a>>,
    /// True if the lists for this kind of client are known, or the wait for them is over.
    pub lists_ready: &'a dyn Fn(&Selector) -> bool,
}

impl Context<'_> {
    /// True if the caller sees the entry that the route leads to.
    pub(super) fn sees(&self, kind: ListKind, route: &Route) -> bool {
        self.sight.is_none_or(|sight| sight.entry(kind, &route.backend, &route.name))
    }

    /// True if the caller sees anything of this backend.
    pub(super) fn sees_backend(&self, backend: &str) -> bool {
        self.sight.is_none_or(|sight| sight.backend(backend))
    }
}
