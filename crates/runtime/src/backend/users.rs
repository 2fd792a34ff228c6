//! The users that a backend takes callers for: none, principals, or single tokens.

use super::Backend;
use super::state::BackendState;
use super::subscriptions::Follow;
use crate::session::Session;
use signalbox_engine::catalog::Changed;
use signalbox_engine::{BackendUser, Event, ExchangeId, Fault, FaultKind, Principal};
use std::sync::Arc;

/// Most connections that other tokens of a principal may have when one is opened. The one that was
/// unused longest is closed.
const MAX_OTHER_TOKENS: usize = 32;

impl Backend {
    /// This user as the backend knows it.
    pub(crate) fn known_as(&self, user: &BackendUser) -> BackendUser {
        if self.is_per_caller() { user.clone() } else { user.without_token() }
    }

    /// The user of a session. Where tokens are exchanged, that is the sender of its last request.
    pub(crate) fn user(&self, session: &Session) -> BackendUser {
        if self.is_per_caller() { session.user() } else { session.principal.clone().into() }
    }

    /// The user of one request of a session. May lock the session, so that no backend may be locked.
    pub(crate) fn user_of(&self, session: &Session, exchange: ExchangeId) -> BackendUser {
        if self.is_per_caller() { session.user_of(exchange) } else { session.principal.clone().into() }
    }

    /// Whose lists this user is shown here, if not all users are shown the same.
    pub(crate) fn lists_of(&self, user: &BackendUser) -> Option<BackendUser> {
        let shared = || self.list_owners().and_then(|owners| owners.owner(user.principal()));
        self.is_per_user().then(|| shared().map_or_else(|| self.known_as(user), BackendUser::from))
    }

    /// True if tokens are exchanged here and this user has none that is good.
    pub(super) fn lacks_token(&self, user: Option<&BackendUser>) -> bool {
        let is_good = |user: &BackendUser| user.has_token() && !user.has_lapsed(crate::clock::unix_millis());
        self.is_per_caller() && !user.is_some_and(is_good)
    }

    /// Refuses a caller that has no token to exchange. That says nothing of the backend.
    pub(super) fn no_token(&self) -> Fault {
        let text = format!("there is no credential for backend `{}`: no token of this caller to exchange", self.name);
        Fault::new(FaultKind::Refused, text).with_str("backend", &self.name)
    }

    /// Closes a connection of another token of the user's principal, if these have too many: a client that gets a
    /// token for each request must not fill the memory.
    pub(super) fn limit_tokens(&self, state: &mut BackendState, user: &BackendUser) {
        if !self.is_per_caller() {
            return;
        }
        let of_others = |one: &BackendUser| one.principal() == user.principal() && one != user;
        let others = state.connections.of_users(of_others);
        if others.len() < MAX_OTHER_TOKENS {
            return;
        }
        let now = crate::clock::now();
        let idle = others.into_iter().filter(|peer| !peer.has_calls() && !self.works_on_task(peer));
        let idlest = idle.filter(|peer| !state.connections.is_home(peer)).max_by_key(|peer| peer.unused_since(now));
        if let Some(peer) = idlest.filter(|peer| peer.give_way()) {
            state.connections.remove(&peer);
            tokio::spawn(async move { peer.close() });
        }
    }

    /// Has a session that goes on with another token keep what it watches.
    pub(crate) fn user_changed(&self, session: &Session, user: &BackendUser) {
        if self.is_per_caller() {
            self.lock().subscriptions.set_user(session.key, user);
        }
    }

    /// Closes the connections of a principal and drops its lists, so that no later one of the same name meets what a
    /// server remembers of it or is shown what was for it alone.
    pub(crate) fn forget_principal(&self, principal: &Principal) -> Changed {
        let own = self.lock().connections.of_users(|user| user.principal() == principal);
        for peer in own {
            peer.close();
        }
        self.drop_lists_of(principal)
    }

    /// Drops the lists that this principal alone was shown.
    pub(crate) fn drop_lists_of(&self, principal: &Principal) -> Changed {
        if !self.is_per_user() {
            return Changed::default();
        }
        self.lock().lists.forget(principal);
        self.gateway().map(|gateway| gateway.catalog.forget_views_of(self, principal)).unwrap_or_default()
    }

    /// Forgets a principal whose token for this backend is gone, and has its clients ask for their lists again.
    pub fn signed_out(&self, principal: &Principal) {
        let changed = self.forget_principal(principal);
        let Some(gateway) = self.gateway().filter(|_| changed.any()) else { return };
        gateway.reads.forget_principal(principal);
        for session in gateway.sessions.all().into_iter().filter(|session| session.principal == *principal) {
            session.handle(Event::ListsChanged { changed });
        }
    }

    /// Closes the connections of users whose token has expired or was revoked. One that still works on a call or a
    /// task is closed later: what belongs to that goes with the token of the caller that asks for it.
    pub(crate) fn end_lapsed(self: &Arc<Self>, now: u64) {
        if !self.is_per_caller() {
            return;
        }
        let (lapsed, follows) = {
            let state = self.lock();
            let follows = state.subscriptions.follows().filter(|follow| follow.user.has_lapsed(now));
            let follows: Vec<_> = follows.map(Follow::waiter).collect();
            (state.connections.of_users(|user| user.has_lapsed(now)), follows)
        };
        // Nothing would be told on them any more, so their clients ask again with the next token.
        for (session, exchange) in follows {
            let fault = Fault::new(FaultKind::Unauthenticated, "the caller's credential has ended");
            session.handle(Event::Failed { exchange, fault });
        }
        for peer in lapsed.into_iter().filter(|peer| !peer.has_calls() && !self.works_on_task(peer)) {
            peer.close_because(&self.no_token());
        }
    }
}
