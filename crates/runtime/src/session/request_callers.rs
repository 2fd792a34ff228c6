//! Callers of the requests of a session. All have the same principal, but each request may carry a credential with
//! fewer rights than that of the opener.

use super::Session;
use crate::outbox::Outbox;
use signalbox_engine::front::Mode;
use signalbox_engine::{BackendUser, Caller, Event, ExchangeId, Fault, FaultKind, Identity, Proof, StreamId};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Session {
    /// Returns the caller of a request if its credential has other rights than that of the opener. Does not evaluate
    /// `caller` if the opener is unproved: its rights depend on no credential.
    pub fn distinct_caller(&self, caller: impl FnOnce() -> Caller) -> Option<Caller> {
        let opener = self.caller.identity();
        if opener.proof == Proof::Unproved {
            return None;
        }
        Some(caller()).filter(|caller| !is_alike(caller.identity(), opener))
    }

    /// Returns true if two callers of one principal have the same rights and are the same user to backends, so that one
    /// may receive what was meant for the other.
    #[must_use]
    pub fn are_alike(one: &Caller, other: &Caller) -> bool {
        one.is_same(other) || is_alike(one.identity(), other.identity())
    }

    /// Returns true if a caller has the rights of the session, by which it is decided what the stream for messages that
    /// belong to no call gets.
    #[must_use]
    pub fn lets_hear(&self, caller: &Caller) -> bool {
        let (holder, caller) = (self.holder(), caller.identity());
        holder.identity().proof == Proof::Unproved || holder.identity().has_rights_of(caller)
    }

    /// Returns the caller whose rights apply outside any request: the opener while its credential is valid, then its
    /// successor.
    pub(crate) fn holder(&self) -> Caller {
        self.successor.load().as_deref().unwrap_or(&self.caller).clone()
    }

    /// Lets the next valid caller replace this one, whose credential has ended.
    pub(crate) fn await_successor(&self) {
        self.awaits_successor.store(true, Ordering::Relaxed);
    }

    /// Returns true while the session waits for a successor of its caller.
    pub(crate) fn awaits_successor(&self) -> bool {
        self.awaits_successor.load(Ordering::Relaxed)
    }

    /// Returns the backend user that stands for the sender of the last request.
    pub(crate) fn user(&self) -> BackendUser {
        BackendUser::clone(&self.user.load())
    }

    /// Returns the backend user that stands for the sender of this request.
    pub(crate) fn user_of(&self, exchange: ExchangeId) -> BackendUser {
        match self.caller_of(Some(exchange)) {
            Some(caller) => BackendUser::of(self.principal.clone(), &caller),
            None => self.user(),
        }
    }

    /// Returns true if messages that a backend sends to `user` belong to this session.
    pub(crate) fn is_user(&self, user: &BackendUser) -> bool {
        *user.principal() == self.principal && (!user.has_token() || **self.user.load() == *user)
    }

    /// Records the sender of a GET. Returns false if its token differs from that of the previous request.
    pub fn is_used_by(&self, caller: &Caller) -> bool {
        let before = self.user.load_full();
        Arc::ptr_eq(&before, &self.used_by(caller))
    }

    /// Records the sender of a request. If its token differs from that of the previous request, closes the general
    /// stream, which was opened with the other token; the client opens it again. A pipe keeps the user of its opener as
    /// long as the opener's token is valid.
    pub(super) fn used_by(&self, caller: &Caller) -> Arc<BackendUser> {
        if self.awaits_successor.load(Ordering::Relaxed)
            && caller.credential_fault(crate::clock::unix_millis()).is_none()
        {
            self.successor.store(Some(Arc::new(caller.clone())));
            self.awaits_successor.store(false, Ordering::Relaxed);
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

    /// Ends the calls and streams of a client whose credential has become invalid for the reason `word`. A session
    /// stays open, so that the client can return with another credential; a pipe or a single request ends entirely.
    /// Returns false if there was nothing to end.
    pub(crate) fn end_streams(self: &Arc<Self>, word: &'static str) -> bool {
        // Only the first reason matters: a pipe ends with it.
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

    /// Returns why the calls and streams of the caller were ended: its credential expired, was revoked, or has other
    /// rights by now.
    #[must_use]
    pub fn lapse(&self) -> Option<&'static str> {
        self.lapse.get().copied()
    }

    /// Ends the calls for whose caller `end_of` gives a reason: a lost credential or lost rights. A call may have a
    /// caller of its own, with another credential of the principal or the signature of its message. Returns false if no
    /// call was ended.
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

    /// Registers a stateless session to be ended with the credential of its caller, if the opener's credential cannot
    /// end.
    pub(super) fn follow_credential(self: &Arc<Self>, caller: &Caller) {
        if self.mode == Mode::Stateless && caller.can_end() && !self.caller.can_end() {
            self.gateway.ending.follow(self);
        }
    }

    /// Returns the caller of an exchange. `None` if the exchange is over, unless the session is a single request.
    pub(crate) fn caller_of(&self, exchange: Option<ExchangeId>) -> Option<Caller> {
        let inner = self.lock();
        let exchange = exchange.and_then(|exchange| inner.machine.exchange(exchange));
        let opener = || (self.mode == Mode::Stateless).then(|| self.caller.clone());
        exchange.map(|exchange| exchange.caller.clone()).or_else(opener)
    }
}

/// Returns true if two callers of one principal have the same rights and are the same user to backends. Requests with
/// one credential share its standing.
fn is_alike(one: &Identity, other: &Identity) -> bool {
    let token = |identity: &Identity| {
        let credential = identity.standing.as_ref().and_then(|standing| standing.credential.as_ref());
        credential.and_then(|credential| credential.token.clone())
    };
    one.has_rights_of(other) && token(one) == token(other)
}
