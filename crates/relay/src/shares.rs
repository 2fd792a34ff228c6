//! Memory shares of the relay's messages. Messages are charged to the caller if it is authenticated, otherwise to its
//! address, and within that to the session. So neither one address nor one session can exhaust `gateway.memory` with a
//! code, which any client can obtain.

use bytes::Bytes;
use signalbox_engine::budget::{Budget, OverBudget, Share};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::rate::address_key;
use signalbox_engine::{Caller, Principal, Proof};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Number of session shares above which unused ones are dropped.
const MAX_SHARES: usize = 1_024;

/// Session, by its mark, and the principal that is charged.
type SessionHolder = (Box<str>, Principal);

/// Shares of all sessions and pages.
#[derive(Debug, Default)]
pub struct Shares {
    budget: OnceLock<Arc<Budget>>,
    sessions: Mutex<HashMap<SessionHolder, Weak<Share>>>,
    /// Share of messages between the gateway and pages.
    pages: OnceLock<Arc<Share>>,
}

/// Returns the principal that a request is charged to: its caller if authenticated, otherwise its address.
#[must_use]
pub fn holder(caller: &Caller) -> Principal {
    let identity = caller.identity();
    match identity.proof {
        Proof::Unproved => Principal::named(&format!("relay-{}", address_key(identity.address.map(|at| at.ip())))),
        _ => identity.principal.clone(),
    }
}

impl Shares {
    /// Charges messages to this budget from now on.
    pub fn attach(&self, budget: &Arc<Budget>) {
        let _ = self.budget.set(Arc::clone(budget));
        let _ = self.pages.set(budget.backend());
    }

    /// Returns the share for reading one request.
    #[must_use]
    pub fn request(&self, holder: &Principal) -> Option<Arc<Share>> {
        self.budget.get().map(|budget| budget.connection(holder))
    }

    /// Charges a message that is kept for a session.
    ///
    /// # Errors
    /// If the session or the holder has reached its share.
    pub fn hold(&self, session: &str, holder: &Principal, message: Bytes) -> Result<Bytes, OverBudget> {
        let Some(budget) = self.budget.get() else { return Ok(message) };
        let mut sessions = self.sessions.lock().unpoisoned();
        let key = (Box::from(session), holder.clone());
        let known = sessions.get(&key).and_then(Weak::upgrade);
        let share = known.unwrap_or_else(|| {
            if sessions.len() >= MAX_SHARES {
                sessions.retain(|_, share| share.strong_count() > 0);
            }
            let share = budget.session(holder);
            sessions.insert(key, Arc::downgrade(&share));
            share
        });
        drop(sessions);
        share.hold(message)
    }

    /// Charges a message on its way to or from a page. One message at a time is accepted even without room, so that
    /// other traffic can never starve a page.
    ///
    /// # Errors
    /// If pages have reached their share.
    pub fn hold_for_page(&self, message: Bytes) -> Result<Bytes, OverBudget> {
        match self.pages.get() {
            None => Ok(message),
            Some(pages) if pages.used() == 0 => Ok(pages.hold_anyway(message)),
            Some(pages) => pages.hold(message),
        }
    }
}
