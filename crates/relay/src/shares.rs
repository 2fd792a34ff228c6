//! Whom the relay's messages are charged to: the caller if it has proved who it is, else its address, and within that the
//! session. So neither one address nor one session uses up `gateway.memory`, with a code that anybody can get.

use bytes::Bytes;
use signalbox_engine::budget::{Budget, OverBudget, Share};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::rate::address_key;
use signalbox_engine::{Caller, Principal, Proof};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, Weak};

/// Number of sessions' shares that are kept before unused ones are forgotten.
const MAX_SHARES: usize = 1_024;

/// A session, by its mark, and who is charged.
type SessionHolder = (Box<str>, Principal);

/// The shares.
#[derive(Debug, Default)]
pub struct Shares {
    budget: OnceLock<Arc<Budget>>,
    sessions: Mutex<HashMap<SessionHolder, Weak<Share>>>,
    /// What goes to pages and comes from them by way of the gateway.
    pages: OnceLock<Arc<Share>>,
}

/// Who is charged for a request: its caller, if proved, or its address.
#[must_use]
pub fn holder(caller: &Caller) -> Principal {
    let identity = caller.identity();
    match identity.proof {
        Proof::Unproved => Principal::named(&format!("relay-{}", address_key(identity.address.map(|at| at.ip())))),
        _ => identity.principal.clone(),
    }
}

impl Shares {
    /// From now on messages are charged to this budget.
    pub fn attach(&self, budget: &Arc<Budget>) {
        let _ = self.budget.set(Arc::clone(budget));
        let _ = self.pages.set(budget.backend());
    }

    /// The share of one request that is being read.
    #[must_use]
    pub fn request(&self, holder: &Principal) -> Option<Arc<Share>> {
        self.budget.get().map(|budget| budget.connection(holder))
    }

    /// Charges a message that is kept for a session.
    ///
    /// # Errors
    /// If the session or the holder has as much as it may.
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

    /// Charges a message on its way to or from a page. One at a time is taken even if there is no room for it, so that a page is
    /// never kept from what others wait for.
    ///
    /// # Errors
    /// If pages have as much as they may.
    pub fn hold_for_page(&self, message: Bytes) -> Result<Bytes, OverBudget> {
        match self.pages.get() {
            None => Ok(message),
            Some(pages) if pages.used() == 0 => Ok(pages.hold_anyway(message)),
            Some(pages) => pages.hold(message),
        }
    }
}
