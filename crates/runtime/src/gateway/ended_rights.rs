//! Ends what callers hold open once their credentials, rights or accounts end.

use super::{Gateway, MessageProofs};
use signalbox_engine::{Caller, Principal};

impl Gateway {
    /// Records a caller that was identified by a credential that can end.
    pub fn identified(&self, caller: &Caller) {
        self.presence.note(caller);
    }

    /// Ends the streams and calls of callers whose credentials have expired or were revoked, and the sessions of those
    /// whose last credential was revoked. `now` is in milliseconds since 1970. Returns the number of affected sessions.
    pub fn end_lapsed(&self, now: u64) -> usize {
        if let Some(MessageProofs { proof, .. }) = &self.proof {
            proof.refresh();
        }
        let lapsed = self.presence.sweep(now);
        let end_of = |caller: &Caller| match caller.credential_fault(now) {
            Some("revoked") => Some("revoked"),
            Some(word) if !self.presence.has_equal(caller) => Some(word),
            _ => None,
        };
        let mut ended = 0;
        for session in self.sessions.all().into_iter().chain(self.ending.all()) {
            let holder = session.holder();
            let is_known = session.awaits_successor() && holder.credential_fault(now) != Some("revoked");
            let Some(word) = end_of(&holder).filter(|_| !is_known) else {
                ended += usize::from(session.end_calls(end_of));
                continue;
            };
            let had_streams = session.end_streams(word);
            session.await_successor();
            let is_over = word == "revoked" && !self.presence.is_there(holder.principal());
            if is_over {
                session.close();
            }
            ended += usize::from(had_streams || is_over);
        }
        self.parks.end(|principal| lapsed.contains(principal));
        for backend in self.backends().iter() {
            backend.end_lapsed(now);
        }
        ended
    }

    /// Removes everything that a later account of this principal's name could inherit: tasks, parked calls, cached
    /// reads, and connections to servers that remember it.
    pub fn forget_account(&self, principal: &Principal) {
        self.presence.record_removal(principal, crate::clock::unix_millis());
        self.tasks.forget(principal);
        self.task_calls.forget(principal);
        self.operations.forget(principal);
        self.reads.forget_principal(principal);
        self.parks.end(|of| of == principal);
        for backend in self.backends().iter() {
            backend.forget_principal(principal);
        }
    }

    /// Ends the streams, calls and connections of callers whose rights have changed; they are identified anew when they
    /// return. Returns the number of affected sessions.
    pub fn end_changed(&self, has_changed: impl Fn(&Caller) -> bool) -> usize {
        let sessions = self.sessions.all().into_iter().chain(self.ending.all());
        let (changed, others): (Vec<_>, Vec<_>) = sessions.partition(|session| has_changed(&session.holder()));
        self.parks.end(|principal| changed.iter().any(|session| session.caller.principal() == principal));
        let end_of = |caller: &Caller| has_changed(caller).then_some("outdated");
        let mut ended = 0;
        for session in &changed {
            ended += usize::from(session.end_streams("outdated"));
            session.await_successor();
        }
        ended + others.iter().filter(|session| session.end_calls(end_of)).count()
    }
}
