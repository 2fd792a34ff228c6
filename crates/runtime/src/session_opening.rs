//! Opening of sessions: limits, the principal they act for, and the face that the gateway shows them.

use crate::counters::Counters;
use crate::credential_registry;
use crate::gateway::{Gateway, TransportFace};
use crate::session::Session;
use signalbox_engine::front::{EndpointFace, Mode};
use signalbox_engine::{Caller, Fault, FaultKind, Principal, SessionKey};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Idle time after which a session may be closed in favour of another of its caller.
const IDLE: Duration = Duration::from_secs(60);

impl Gateway {
    /// Returns the face that this caller is shown, or `None` for the usual one.
    pub(crate) fn face(&self, caller: &Caller) -> Option<&EndpointFace> {
        let TransportFace { transport, face } = self.face.as_ref()?;
        (caller.identity().transport == *transport).then_some(face)
    }

    /// Opens a session. `external` is the id that the client will hold, `via` the name of the transport. A stateless
    /// session is not entered in the table.
    ///
    /// # Errors
    /// If there are too many sessions, or the gateway is shutting down.
    pub fn open_session(
        self: &Arc<Self>,
        caller: Caller,
        mode: Mode,
        external: &str,
        via: &'static str,
    ) -> Result<Arc<Session>, Fault> {
        let principal = caller.principal().clone();
        self.open_session_for(caller, principal, mode, external, via)
    }

    /// Opens a session that acts for another principal than its caller's, such as one of several secondary endpoints of
    /// the caller.
    ///
    /// # Errors
    /// If there are too many sessions, or the gateway is shutting down.
    pub fn open_session_for(
        self: &Arc<Self>,
        caller: Caller,
        principal: Principal,
        mode: Mode,
        external: &str,
        via: &'static str,
    ) -> Result<Arc<Session>, Fault> {
        if mode != Mode::Stateless {
            self.may_open(&caller)?;
            let (waiting, own_waiting) = self.dormant_sessions(&principal);
            let each = self.settings().max_sessions_each;
            if self.sessions.len_of(&principal) + own_waiting >= each && !self.end_idlest(&principal) {
                Counters::add(&self.counters.sessions_refused);
                let text = format!(
                    "this caller has {each} sessions open, which is the limit, and none of them is idle; end one first"
                );
                return Err(Fault::new(FaultKind::Overloaded, text));
            }
            let most = self.settings().max_sessions;
            if self.sessions.len() + waiting >= most && !self.end_idlest(&principal) {
                Counters::add(&self.counters.sessions_refused);
                let text = format!("{most} sessions are open, which is the limit, and none of this caller is idle");
                return Err(Fault::new(FaultKind::Overloaded, text));
            }
        } else if self.is_draining() {
            return Err(draining());
        }
        Ok(self.begin_session(caller, principal, mode, external, via))
    }

    /// Ends the longest idle session of this principal, so that a client that never ends its sessions can open another.
    /// A session with an open stream or a call in flight is not idle. Sessions of an earlier process that their clients
    /// have not resumed go first. Returns `false` if there is none.
    fn end_idlest(&self, principal: &Principal) -> bool {
        if self.forget_idlest(principal, IDLE) {
            return true;
        }
        let own = self.sessions.all().into_iter().filter(|session| session.principal == *principal);
        let idle = own.filter(|session| session.mode == Mode::Session && !session.is_ended());
        let longest = idle.map(|session| (session.idle(), session)).max_by_key(|(idle, _)| *idle);
        let Some((_, session)) = longest.filter(|(idle, _)| *idle >= IDLE) else { return false };
        tracing::info!(session = %session.key, "ended an idle session: its caller opened another at its limit");
        session.close();
        true
    }

    /// Returns a fault if this caller may not open a session that outlives its request.
    pub(crate) fn may_open(&self, caller: &Caller) -> Result<(), Fault> {
        if self.is_draining() {
            return Err(draining());
        }
        if self.must_still_prove(caller) {
            return Err(Fault::new(FaultKind::Unauthenticated, "a session needs a caller that has proved who it is"));
        }
        Ok(())
    }

    pub(crate) fn begin_session(
        self: &Arc<Self>,
        caller: Caller,
        principal: Principal,
        mode: Mode,
        external: &str,
        via: &'static str,
    ) -> Arc<Session> {
        let key = SessionKey(self.next_session.fetch_add(1, Ordering::Relaxed));
        let session = Session::new(Arc::clone(self), key, caller, principal, mode, external.into(), via);
        if mode != Mode::Stateless {
            session.record_introduction();
            Counters::add(&self.counters.sessions_opened);
            self.sessions.insert(&session);
        } else if credential_registry::credential_of(&session.caller).is_some() {
            self.ending.follow(&session);
        }
        session
    }
}

fn draining() -> Fault {
    Fault::new(FaultKind::Draining, "the gateway is shutting down")
}
