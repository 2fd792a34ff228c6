//! Ports through which the machine sees the rest of the program.

use super::EndpointFace;
use crate::backend_user::BackendUser;
use crate::caller::Caller;
use crate::catalog::{CallerView, EntryRef, ListKind, NameStyle, Offer, Route, Selector, Snapshot};
use crate::chain::Chain;
use crate::dialect::DialectPorts;
use crate::fault::{ErrorDetail, Fault};
use crate::keys::Numbers;
use crate::operations::Operations;
use crate::question_origin::Asker;
use crate::read_cache::Generation;
use crate::task_calls::TaskCalls;
use crate::trace;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Everything a machine may look at while it handles an event.
pub struct Context<'a> {
    /// Time of the event.
    pub now: Instant,
    /// Wall-clock time in milliseconds since 1970, for timestamps shown to clients.
    pub unix_ms: &'a dyn Fn() -> u64,
    /// Snapshot of the lists and names.
    pub catalog: &'a Snapshot,
    /// Sender of the message, if it is not the opener of the session.
    pub caller: Option<&'a Caller>,
    /// User that backends take the caller for.
    pub user: &'a BackendUser,
    /// Reason to refuse the message before the interceptors run, such as an invalid signature.
    pub refusal: Option<&'a Fault>,
    /// Rounds that clients may continue.
    pub operations: &'a Operations,
    /// Calls that created the tasks clients ask about.
    pub task_calls: &'a TaskCalls,
    /// Counters for new exchanges and messages.
    pub numbers: &'a Numbers,
    /// Interceptors that judge messages.
    pub chain: &'a Chain,
    /// Session id given to the client, if any.
    pub session: Option<&'a str>,
    /// Time the session began.
    pub session_started: Instant,
    /// Presentation of the gateway on a secondary endpoint; `None` on the main one.
    pub face: Option<&'a EndpointFace>,
    /// The gateway's own `serverInfo` object.
    pub server_info: &'a str,
    /// Id of the gateway, by which it recognises a connection to itself.
    pub instance: &'a str,
    /// The gateway's own instructions, shown before those of its backends. May be empty.
    pub instructions: &'a str,
    /// Maximum number of requests in flight per session.
    pub max_in_flight: usize,
    /// Time limit for the client's answers to one round of questions.
    pub round_timeout: Duration,
    /// Returns the generation of a resource, given its backend and the backend's URI.
    pub changes: &'a dyn Fn(&str, &str) -> Generation,
    /// Ports of the governed dialect; `None` where it is not served.
    pub dialect: Option<&'a DialectPorts<'a>>,
    /// Amount of fault detail shown to the client.
    pub error_detail: ErrorDetail,
    /// True if message facts are wanted.
    pub message_facts: bool,
    /// Starts the trace of a request, if tracing is on.
    pub trace: Option<&'a trace::Begin<'a>>,
    /// Returns the backend that hosts the caller's task with this id, if known.
    pub task_home: &'a dyn Fn(&str) -> Option<Arc<str>>,
    /// Returns the current time, which is later than `now` after work on the event.
    pub clock: &'a dyn Fn() -> Instant,
    /// Part of the catalog visible to the caller; `None` for all of it.
    pub sight: Option<&'a CallerView<'a>>,
    /// Returns true if the lists for this kind of client are known, or the wait for them is over.
    pub lists_ready: &'a dyn Fn(&Selector) -> bool,
    /// Returns the backends that need a sign-in before they show the caller anything, each with the fault that says
    /// where.
    pub sign_ins: &'a dyn Fn() -> Vec<(Arc<str>, Fault)>,
}

impl Context<'_> {
    /// Returns the backend in the form shown to clients when it asks them something.
    pub(super) fn asker<'b>(&self, backend: &'b str) -> Asker<'b> {
        Asker { backend, several: self.catalog.backends().len() > 1, client: None }
    }

    /// Returns true if the caller may know of the entry that the route leads to.
    pub(super) fn sees(&self, kind: ListKind, route: &Route) -> bool {
        self.catalog.is_listed_for(kind, route, self.user)
            && self.sight.is_none_or(|sight| sight.reveals(&self.catalog.entry_of(kind, route, self.user)))
    }

    /// Returns true if the caller may continue what it began with the entry of this name on this backend.
    pub(super) fn keeps(&self, kind: ListKind, backend: &Arc<str>, own: &str) -> bool {
        let route = || Route { backend: Arc::clone(backend), name: own.into(), renamed: false };
        self.sight.is_none_or(|sight| sight.keeps(&self.catalog.entry_of(kind, &route(), self.user)))
    }

    /// Returns true if the caller may continue what it began with any tool of this backend.
    pub(super) fn keeps_all_tools(&self, backend: &Arc<str>) -> bool {
        let Some(sight) = self.sight else { return true };
        let entry = self.catalog.backends().iter().find(|entry| entry.name == *backend);
        let mut views = entry.into_iter().flat_map(|entry| entry.views_for(Some(self.user)));
        views.all(|(_, view)| {
            view.list(ListKind::Tools).iter().all(|item| {
                let definition = Some(&*item.raw);
                sight.keeps(&EntryRef { kind: ListKind::Tools, backend, name: &item.key, definition })
            })
        })
    }

    /// Returns the visible backends at which the caller has yet to sign in before they list anything.
    pub(super) fn behind_sign_ins(&self) -> Vec<(Arc<str>, Fault)> {
        let mut wanted = (self.sign_ins)();
        wanted.retain(|(backend, _)| self.sees_backend(backend));
        wanted
    }

    /// Returns a route for an entry that is in no list because the caller has yet to sign in: to the backend in its
    /// qualified name, else to the first one that needs a sign-in. That backend then asks the caller to sign in, even
    /// if it shows other callers no such entry.
    pub(super) fn behind_sign_in(&self, style: NameStyle, exposed: &str) -> Option<Route> {
        let wanted = self.behind_sign_ins();
        let named = style.divide(exposed).and_then(|(backend, own)| {
            let (backend, _) = wanted.iter().find(|(name, _)| **name == *backend)?;
            Some(Route { backend: Arc::clone(backend), name: own.into(), renamed: true })
        });
        let first = || Some(Route { backend: Arc::clone(&wanted.first()?.0), name: exposed.into(), renamed: false });
        named.or_else(first)
    }

    /// Returns the route of a tool. A caller that sees a single backend uses that backend's own tool names.
    pub(super) fn tool(&self, exposed: &str) -> Option<Route> {
        match self.sight.and_then(CallerView::sole) {
            Some(sole) => self.catalog.own_tool(sole, exposed),
            None => self.catalog.tool(exposed),
        }
    }

    /// Returns the capabilities offered to the caller.
    pub(super) fn offer(&self, selector: &Selector) -> Offer {
        self.face.map_or_else(|| self.catalog.offer(selector, self.sight), |face| face.offer)
    }

    /// Returns the `serverInfo` object shown to the caller.
    pub(super) fn server_info(&self) -> &str {
        self.face.map_or(self.server_info, |face| &face.server_info)
    }

    /// Returns the backends of which the caller sees no part.
    pub(super) fn hidden_backends(&self) -> Vec<Arc<str>> {
        let all = self.catalog.backends().iter().filter(|_| self.sight.is_some());
        all.map(|entry| &entry.name).filter(|name| !self.sees_backend(name)).cloned().collect()
    }

    /// Returns true if the caller sees any part of this backend.
    pub(super) fn sees_backend(&self, backend: &str) -> bool {
        self.sight.is_none_or(|sight| sight.backend(backend))
    }
}
