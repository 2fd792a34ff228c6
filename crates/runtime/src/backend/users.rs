//! Users, as a backend distinguishes them: not at all, by principal, or by token.

use super::Backend;
use super::state::BackendState;
use super::subscriptions::Follow;
use crate::session::Session;
use signalbox_engine::catalog::ListChanges;
use signalbox_engine::{BackendUser, Event, ExchangeId, Fault, FaultKind, Principal};
use std::sync::Arc;

/// Maximum number of connections of a principal's other tokens when one is opened. The one unused longest is closed.
const MAX_OTHER_TOKENS: usize = 32;

impl Backend {
    /// Returns the user as this backend distinguishes it.
    pub(crate) fn known_as(&self, user: &BackendUser) -> BackendUser {
        if self.is_per_caller() { user.clone() } else { user.without_token() }
    }

    /// Returns the user of a session. With exchanged tokens, that is the sender of its last request.
    pub(crate) fn user(&self, session: &Session) -> BackendUser {
        if self.is_per_caller() { session.user() } else { session.principal.clone().into() }
    }

    /// Returns the user of one request of a session. May lock the session, so the caller must not hold a backend lock.
    pub(crate) fn user_of(&self, session: &Session, exchange: ExchangeId) -> BackendUser {
        if self.is_per_caller() { session.user_of(exchange) } else { session.principal.clone().into() }
    }

    /// Returns the owner of the lists that this user sees. `None` if all users see the same lists.
    pub(crate) fn lists_of(&self, user: &BackendUser) -> Option<BackendUser> {
        let shared = || self.list_owners().and_then(|owners| owners.owner(user.principal()));
        self.is_per_user().then(|| shared().map_or_else(|| self.known_as(user), BackendUser::from))
    }

    /// Returns true if tokens are exchanged here and this user has no valid one.
    pub(super) fn lacks_token(&self, user: Option<&BackendUser>) -> bool {
        let is_good = |user: &BackendUser| user.has_token() && !user.has_lapsed(crate::clock::unix_millis());
        self.is_per_caller() && !user.is_some_and(is_good)
    }

    /// Returns the fault for a caller that has no token to exchange. It does not count against the backend.
    pub(super) fn no_token(&self) -> Fault {
        let text = format!("there is no credential for backend `{}`: no token of this caller to exchange", self.name);
        Fault::new(FaultKind::Refused, text).with_str("backend", &self.name)
    }

    /// Closes a connection of another token of the same principal if there are too many, so that a client with a new
    /// token for each request cannot fill the memory.
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

    /// Keeps the watches of a session that continues with another token.
    pub(crate) fn user_changed(&self, session: &Session, user: &BackendUser) {
        if self.is_per_caller() {
            self.lock().subscriptions.set_user(session.key, user);
        }
    }

    /// Closes the connections of a principal and drops its lists, so that a later principal of the same name sees
    /// nothing of them and meets no server state of its predecessor.
    pub(crate) fn forget_principal(&self, principal: &Principal) -> ListChanges {
        let own = self.lock().connections.of_users(|user| user.principal() == principal);
        for peer in own {
            peer.close();
        }
        self.drop_lists_of(principal)
    }

    /// Drops the lists that only this principal sees.
    pub(crate) fn drop_lists_of(&self, principal: &Principal) -> ListChanges {
        if !self.is_per_user() {
            return ListChanges::default();
        }
        self.lock().lists.forget(principal);
        self.gateway().map(|gateway| gateway.catalog.forget_views_of(self, principal)).unwrap_or_default()
    }

    /// Forgets a principal whose token for this backend is gone, and tells its clients to request their lists again.
    pub fn signed_out(&self, principal: &Principal) {
        let changed = self.forget_principal(principal);
        let Some(gateway) = self.gateway().filter(|_| changed.any()) else { return };
        gateway.reads.forget_principal(principal);
        for session in gateway.sessions.all().into_iter().filter(|session| session.principal == *principal) {
            session.handle(Event::ListsChanged { changed });
        }
    }

    /// Closes the connections of users whose token has expired or was revoked. A connection that still works on a call
    /// or a task is closed later: that work ends with the token of the caller that asked for it.
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
        // No more changes would arrive on them, so their clients must listen again with the next token.
        for (session, exchange) in follows {
            let fault = Fault::new(FaultKind::Unauthenticated, "the caller's credential has ended");
            session.handle(Event::Failed { exchange, fault });
        }
        for peer in lapsed.into_iter().filter(|peer| !peer.has_calls() && !self.works_on_task(peer)) {
            peer.close_because(&self.no_token());
        }
    }
}
