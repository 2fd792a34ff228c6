//! Sessions of the gateway that outlive its process.

use super::Gateway;
use crate::session::Session;
use crate::session_store::{DeclaredClient, SessionStore};
use signalbox_engine::front::Mode;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{Caller, ClientProfile, Fault, Principal};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

impl Gateway {
    /// Forgets the sessions of an earlier process for which `is_gone` returns true. It gets the name of the principal
    /// and the time of the last use.
    pub fn forget_sessions(&self, is_gone: impl Fn(&str, SystemTime) -> bool) {
        if let Some(store) = &self.session_store {
            store.forget(is_gone);
        }
    }

    /// Returns the number of sessions of an earlier process that were not resumed: all, and those of this principal.
    pub(crate) fn dormant_sessions(&self, principal: &Principal) -> (usize, usize) {
        self.session_store.as_ref().map_or((0, 0), |store| store.dormant_of(principal))
    }

    /// Removes the session of an earlier process that has been idle longest for this principal, and for at least
    /// `idle`. Returns false if there is none.
    pub(crate) fn forget_idlest(&self, principal: &Principal, idle: Duration) -> bool {
        self.session_store.as_ref().is_some_and(|store| store.forget_idlest(principal, idle, SystemTime::now()))
    }

    /// Reopens the session of this id that an earlier process stored for this caller. Returns `None` if there is none,
    /// or it belongs to another caller.
    ///
    /// # Errors
    /// If no session can be opened now.
    pub fn resume_session(
        self: &Arc<Self>,
        external: &str,
        caller: Caller,
        principal: Principal,
    ) -> Result<Option<Arc<Session>>, Fault> {
        let proved = !self.must_still_prove(&caller);
        let Some(store) = self.session_store.as_ref().filter(|_| proved) else { return Ok(None) };
        let owner = principal.clone();
        store.resume(external, &owner, self.settings().session_timeout, |declared| {
            // The store is locked, so a concurrent request has either not begun, or has put its session into the table.
            if let Some(session) = self.sessions.get(external) {
                return Ok(Some(session));
            }
            let Some(DeclaredClient { client, level }) = declared else { return Ok(None) };
            self.may_open(&caller)?;
            let session = self.begin_session(caller, principal, Mode::Session, external, "http");
            session.restore(client, level);
            tracing::info!(session = %session.key, principal = %session.principal, "a session of an earlier process goes on");
            Ok(Some(session))
        })
    }

    /// Stores what the client of a session has declared.
    pub(crate) fn store_session(&self, session: &Session, client: &Arc<ClientProfile>, level: Option<LogLevel>) {
        let Some(store) = self.store_of(session) else { return };
        let declared = DeclaredClient { client: Arc::clone(client), level };
        if !store.write(&session.external, &session.principal, &declared) {
            self.counters.dropped("session_store");
        }
    }

    /// Removes a session that has ended, unless it ended because of the shutdown.
    pub(crate) fn unstore_session(&self, session: &Session) {
        let Some(store) = self.store_of(session).filter(|_| !self.is_draining()) else { return };
        if !store.remove(&session.external) {
            self.counters.dropped("session_store");
        }
    }

    fn store_of(&self, session: &Session) -> Option<&SessionStore> {
        self.session_store.as_ref().filter(|_| session.mode() == Mode::Session)
    }

    /// Touches the sessions that were used since `since`, and removes expired ones that were not resumed.
    pub(crate) fn sweep_sessions(&self, since: Instant) {
        let Some(store) = self.session_store.as_ref() else { return };
        let (now, at) = (SystemTime::now(), crate::clock::now());
        for session in self.sessions.all() {
            let seen = if session.is_connected() { at } else { session.last_seen() };
            if session.mode() == Mode::Session && seen >= since {
                let used = now.checked_sub(at.saturating_duration_since(seen)).unwrap_or(now);
                store.touch(&session.external, used);
            }
        }
        store.sweep(self.settings().session_timeout, now);
    }

    /// Waits until all changes are written.
    pub(crate) async fn flush_sessions(&self) {
        if let Some(store) = &self.session_store {
            store.flush().await;
        }
    }
}
