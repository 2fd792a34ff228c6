//! Calls that wait while a person signs in at the backend.
//!
//! The credential provider knows whether a sign-in is in progress (`Connector::sign_in_end`) and bounds the wait. A
//! call that waits here is in no queue: if its session cancels it meanwhile, it is dropped at the end of the wait.

use super::Backend;
use super::state::Home;
use crate::session::Session;
use signalbox_engine::catalog::ListChanges;
use signalbox_engine::{AuthorizedCall, Event, ExchangeId, Fault, FaultKind};
use std::sync::Arc;

impl Backend {
    /// Accepts a call whose client has agreed to sign in, after the sign-in has ended or timed out.
    pub(super) fn accept_after_sign_in(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: AuthorizedCall,
    ) {
        let user = self.user_of(session, exchange);
        let Some(end) = self.connector.sign_in_end(&user, true) else {
            self.retry_for_sign_in();
            return self.admit(session, exchange, call);
        };
        let (backend, session) = (Arc::clone(self), Arc::clone(session));
        tokio::spawn(async move {
            end.await;
            backend.retry_for_sign_in();
            if session.waits_for(exchange) {
                backend.admit(&session, exchange, call);
            }
        });
    }

    /// Fails a call for which no connection can be opened. If the reason is a missing sign-in that is in progress in a
    /// browser, waits for its end once and redispatches the call.
    pub(super) fn refuse_or_await_sign_in(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        fault: Fault,
        mut call: AuthorizedCall,
    ) {
        let is_first = fault.kind == FaultKind::SignInNeeded && !call.awaits_sign_in;
        let end = is_first.then(|| self.connector.sign_in_end(&self.user_of(session, exchange), false)).flatten();
        let Some(end) = end else { return self.refuse_call(session, exchange, fault, call) };
        call.await_sign_in();
        let (backend, session) = (Arc::clone(self), Arc::clone(session));
        tokio::spawn(async move {
            end.await;
            backend.retry_for_sign_in();
            if session.waits_for(exchange) {
                backend.dispatch(&session, exchange, call);
            }
        });
    }

    /// Retries a backend that is down because of a missing sign-in, and lets calls wait for that attempt: the address
    /// in the previous fault may be used up.
    fn retry_for_sign_in(&self) {
        {
            let mut state = self.lock();
            if !matches!(&state.home, Home::Down(fault) if fault.kind == FaultKind::SignInNeeded) {
                return;
            }
            state.home = Home::Restarting;
        }
        self.try_now();
    }

    /// Retries a backend that was down because of a missing sign-in, now that a person has signed in, and tells the
    /// users that saw nothing for that reason to request their lists again.
    pub fn signed_in(&self) {
        self.retry_for_sign_in();
        self.try_now();
        let waiting = self.lock().lists.take_sign_ins();
        let Some(gateway) = self.gateway() else { return };
        let changed = ListChanges { tools: true, prompts: true, resources: true };
        for session in
            gateway.sessions.all().into_iter().filter(|session| waiting.iter().any(|user| session.is_user(user)))
        {
            session.handle(Event::ListsChanged { changed });
        }
    }

    /// Gets a new sign-in address for callers, because the last one was used without success.
    pub fn sign_in_failed(&self) {
        self.retry_for_sign_in();
    }
}
