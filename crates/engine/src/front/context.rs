//! The ports through which the machine sees the rest of the program.

use super::Face;
use crate::backend_user::BackendUser;
use crate::caller::Caller;
use crate::catalog::{EntryRef, ListKind, Offer, Route, Selector, Sight, Snapshot, Style};
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
    /// The time.
    pub now: Instant,
    /// The wall-clock time in milliseconds since 1970, for timestamps that clients see.
    pub unix_ms: &'a dyn Fn() -> u64,
    /// The lists and names.
    pub catalog: &'a Snapshot,
    /// The sender of the message, if it is not the opener of the session.
    pub caller: Option<&'a Caller>,
    /// The user that backends take the caller for.
    pub user: &'a BackendUser,
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
    /// What the gateway shows itself as to callers who come this way, if that is something else.
    pub face: Option<&'a Face>,
    /// Our own `serverInfo` object.
    pub server_info: &'a str,
    /// The id of the gateway, by which it recognises a connection to itself.
    pub instance: &'a str,
    /// The gateway's own instructions, shown before those of its backends; may be empty.
    pub instructions: &'a str,
    /// Maximum number of requests in flight per session.
    pub max_in_flight: usize,
    /// How long a client may take to answer a round of questions.
    pub round_timeout: Duration,
    /// The generation of a resource, by backend and its URI.
    pub changes: &'a dyn Fn(&str, &str) -> Generation,
    /// What the governed dialect needs; `None` where it is not served.
    pub dialect: Option<&'a DialectPorts<'a>>,
    /// What decides how much of a fault the client is told.
    pub error_detail: ErrorDetail,
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
    /// The backends that show the caller nothing before it has signed in there, each with the fault that says where.
    pub sign_ins: &'a dyn Fn() -> Vec<(Arc<str>, Fault)>,
}

impl Context<'_> {
    /// The backend as clients see it when it asks them something.
    pub(super) fn asker<'b>(&self, backend: &'b str) -> Asker<'b> {
        Asker { backend, several: self.catalog.backends().len() > 1, client: None }
    }

    /// True unless the entry that the route leads to is as good as unknown to the caller.
    pub(super) fn sees(&self, kind: ListKind, route: &Route) -> bool {
        self.catalog.is_listed_for(kind, route, self.user)
            && self.sight.is_none_or(|sight| sight.reveals(&self.catalog.entry_of(kind, route, self.user)))
    }

    /// True if the caller may go on with what it began with the entry that this backend calls so.
    pub(super) fn keeps(&self, kind: ListKind, backend: &Arc<str>, own: &str) -> bool {
        let route = || Route { backend: Arc::clone(backend), name: own.into(), renamed: false };
        self.sight.is_none_or(|sight| sight.keeps(&self.catalog.entry_of(kind, &route(), self.user)))
    }

    /// True if it may do so with any tool of this backend.
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

    /// The backends that the caller has yet to sign in at before it is shown anything of them.
    pub(super) fn behind_sign_ins(&self) -> Vec<(Arc<str>, Fault)> {
        let mut wanted = (self.sign_ins)();
        wanted.retain(|(backend, _)| self.sees_backend(backend));
        wanted
    }

    /// The route of an entry that no list has because the caller has yet to sign in: to the backend in its
    /// qualified name, else to the first that wants a sign-in. That backend then has the caller asked, whatever
    /// others are shown of it.
    pub(super) fn behind_sign_in(&self, style: Style, exposed: &str) -> Option<Route> {
        let wanted = self.behind_sign_ins();
        let named = style.divide(exposed).and_then(|(backend, own)| {
            let (backend, _) = wanted.iter().find(|(name, _)| **name == *backend)?;
            Some(Route { backend: Arc::clone(backend), name: own.into(), renamed: true })
        });
        let first = || Some(Route { backend: Arc::clone(&wanted.first()?.0), name: exposed.into(), renamed: false });
        named.or_else(first)
    }

    /// The tool that the caller means by this name. Who sees one backend alone calls its tools by their own names.
    pub(super) fn tool(&self, exposed: &str) -> Option<Route> {
        match self.sight.and_then(Sight::sole) {
            Some(sole) => self.catalog.own_tool(sole, exposed),
            None => self.catalog.tool(exposed),
        }
    }

    /// What the caller is told that it can use.
    pub(super) fn offer(&self, selector: &Selector) -> Offer {
        self.face.map_or_else(|| self.catalog.offer(selector, self.sight), |face| face.offer)
    }

    /// Our own `serverInfo` object.
    pub(super) fn server_info(&self) -> &str {
        self.face.map_or(self.server_info, |face| &face.server_info)
    }

    /// True if the caller sees anything of this backend.
    pub(super) fn sees_backend(&self, backend: &str) -> bool {
        self.sight.is_none_or(|sight| sight.backend(backend))
    }
}
