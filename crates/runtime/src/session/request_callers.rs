//! The caller of each request of a session. All are of one principal, but each request may come with a credential that
//! is good for less than that of the opener.

use super::Session;
use crate::outbox::Outbox;
use signalbox_engine::front::Mode;
use signalbox_engine::standing::Standing;
use signalbox_engine::{BackendUser, Caller, Event, ExchangeId, Fault, FaultKind, Identity, Proof, StreamId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Session {
    /// The caller of a request of this session, if its credential is good for something else than that of the opener.
    /// `caller` is not asked where the opener has proved nothing: what it may do depends on no credential.
    pub fn distinct_caller(&self, caller: impl FnOnce() -> Caller) -> Option<Caller> {
        let opener = self.caller.identity();
        if opener.proof == Proof::Unproved {
            return None;
        }
        Some(caller()).filter(|caller| !is_alike(caller.identity(), opener))
    }

    /// True if two callers of one principal may do the same here and are the same to backends, so that one may be told
    /// what was meant for the other.
    #[must_use]
    pub fn are_alike(one: &Caller, other: &Caller) -> bool {
        one.is_same(other) || is_alike(one.identity(), other.identity())
    }

    /// The caller whose rights count for what belongs to no request: the opener, for as long as its credential is good.
    pub(crate) fn holder(&self) -> Caller {
        self.successor.load().as_deref().unwrap_or(&self.caller).clone()
    }

    /// Has the next caller that comes take the place of this one, whose credential has ended.
    pub(crate) fn outlive(&self) {
        self.outlived.store(true, Ordering::Relaxed);
    }

    /// True while the next caller is awaited.
    pub(crate) fn is_outlived(&self) -> bool {
        self.outlived.load(Ordering::Relaxed)
    }

    /// The user that backends take the sender of the last request for.
    pub(crate) fn user(&self) -> BackendUser {
        BackendUser::clone(&self.user.load())
    }

    /// The user that backends take the sender of this request for.
    pub(crate) fn user_of(&self, exchange: ExchangeId) -> BackendUser {
        match self.caller_of(Some(exchange)) {
            Some(caller) => BackendUser::of(self.principal.clone(), &caller),
            None => self.user(),
        }
    }

    /// True if what a backend tells this user is for this session.
    pub(crate) fn is_user(&self, user: &BackendUser) -> bool {
        *user.principal() == self.principal && (!user.has_token() || **self.user.load() == *user)
    }

    /// Notes the sender of a GET. False if its token is another than that of the request before.
    pub fn is_used_by(&self, caller: &Caller) -> bool {
        let before = self.user.load_full();
        Arc::ptr_eq(&before, &self.used_by(caller))
    }

    /// Notes the sender of a request. If its token is another than that of the request before, the stream for messages
    /// that belong to no call is closed, since it was opened with the other one; the client opens it again. A
    /// connection that is the session stays with its opener for as long as that one's token is good.
    pub(super) fn used_by(&self, caller: &Caller) -> Arc<BackendUser> {
        if self.outlived.load(Ordering::Relaxed) && caller.credential_fault(crate::clock::unix_millis()).is_none() {
            self.successor.store(Some(Arc::new(caller.clone())));
            self.outlived.store(false, Ordering::Relaxed);
        }
        let before = self.user.load_full();
        if before.is_shown_by(caller) {
            return before;
        }
        let user = Arc::new(BackendUser::of(self.principal.clone(), caller));
        if self.mode == Mode::Pipe && before.has_token() && !before.has_lapsed(crate::clock::unix_millis()) {
            return user;
        }
        self.user.store(Arc::clone(&user));
        for backend in self.gateway.backends().iter() {
            backend.user_changed(self, &user);
        }
        if self.mode == Mode::Session {
            let mut inner = self.lock();
            let general = inner.general.take().and_then(|id| inner.streams.remove(&id));
            drop(inner);
            if let Some(general) = general {
                general.close();
            }
        }
        user
    }

    /// Ends the calls and streams of a client whose credential is no longer good, for the reason in this `word`. Its
    /// session stays, so that the client can come back with another credential; a pipe and a single request end as a
    /// whole. False if there was nothing to end.
    pub(crate) fn end_streams(self: &Arc<Self>, word: &'static str) -> bool {
        // Only the first reason is of use: a connection that is the session ends with it.
        let _ = self.lapse.set(word);
        let calls = self.end_calls(|_| Some(word));
        let streams: Vec<(StreamId, Arc<Outbox>)> =
            self.lock().streams.iter().map(|(id, outbox)| (*id, Arc::clone(outbox))).collect();
        for (_, outbox) in &streams {
            outbox.close();
        }
        if self.mode != Mode::Session {
            self.close();
        }
        calls || !streams.is_empty()
    }

    /// The reason for which its caller lost what it had open: a credential that expired, was revoked, or has
    /// other rights by now.
    #[must_use]
    pub fn lapse(&self) -> Option<&'static str> {
        self.lapse.get().copied()
    }

    /// Ends the calls whose callers have lost their credential or their rights, for the reason that `end_of` names. A
    /// call may have a caller of its own: another credential of the principal, or the signer of its message. False if
    /// there was none to end.
    pub(crate) fn end_calls(self: &Arc<Self>, end_of: impl Fn(&Caller) -> Option<&'static str>) -> bool {
        let calls: Vec<(ExchangeId, Caller)> = {
            let inner = self.lock();
            inner.machine.exchanges().into_iter().map(|exchange| (exchange.id, exchange.caller.clone())).collect()
        };
        let mut ended = false;
        for (exchange, caller) in calls {
            if let Some(word) = end_of(&caller) {
                let text = format!("the caller's credential is {word}");
                self.handle(Event::Failed { exchange, fault: Fault::new(FaultKind::Unauthenticated, text) });
                ended = true;
            }
        }
        ended
    }

    /// Has the gateway end a single request with the credential of its caller, where that is another than the opener.
    pub(super) fn follow_credential(self: &Arc<Self>, caller: &Caller) {
        if self.mode == Mode::Stateless && caller.can_end() && !self.caller.can_end() {
            self.gateway.ending.follow(self);
        }
    }

    /// The caller of an exchange. `None` if that is over, unless the whole session is one request.
    pub(crate) fn caller_of(&self, exchange: Option<ExchangeId>) -> Option<Caller> {
        let inner = self.lock();
        let exchange = exchange.and_then(|exchange| inner.machine.exchange(exchange));
        let opener = || (self.mode == Mode::Stateless).then(|| self.caller.clone());
        exchange.map(|exchange| exchange.caller.clone()).or_else(opener)
    }
}

/// True if two callers of one principal may do the same and are the same to backends. Requests with one
/// credential share its standing.
fn is_alike(one: &Identity, other: &Identity) -> bool {
    let token = |identity: &Identity| {
        let credential = identity.standing.as_ref().and_then(|standing| standing.credential.as_ref());
        credential.and_then(|credential| credential.token.clone())
    };
    has_same_rights(one, other) && token(one) == token(other)
}

/// True if two callers of one principal may do the same at this gateway, whatever the lifetime of their credentials: a
/// token that was refreshed is as good as the one before it.
pub(crate) fn has_same_rights(one: &Identity, other: &Identity) -> bool {
    let equal = |one: &Standing, other: &Standing| {
        one.trust == other.trust
            && one.roles == other.roles
            && one.groups == other.groups
            && one.scopes == other.scopes
            && one.resources == other.resources
    };
    one.proof == other.proof
        && match (&one.standing, &other.standing) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || equal(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
}
