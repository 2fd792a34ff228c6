//! Table of open client sessions, by number and by the id that the client holds.

use crate::session::Session;
use signalbox_engine::keys::{KeyMap, TextMap};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Principal, SessionKey};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock, Weak};

/// Table of open client sessions.
#[derive(Default)]
pub struct SessionTable {
    by_external: RwLock<TextMap<Box<str>, Arc<Session>>>,
    by_key: RwLock<KeyMap<SessionKey, Weak<Session>>>,
    /// Number of open sessions of each principal.
    each: Mutex<HashMap<Principal, usize>>,
}

impl SessionTable {
    /// Returns the session whose client holds this id.
    #[must_use]
    pub fn get(&self, external: &str) -> Option<Arc<Session>> {
        self.by_external.read().unpoisoned().get(external).cloned()
    }

    /// Returns the session of this number.
    #[must_use]
    pub fn by_key(&self, key: SessionKey) -> Option<Arc<Session>> {
        self.by_key.read().unpoisoned().get(&key).and_then(Weak::upgrade)
    }

    /// Adds a session, which stays until it is removed.
    pub fn insert(&self, session: &Arc<Session>) {
        let external = session.external.clone();
        self.by_external.write().unpoisoned().insert(external, Arc::clone(session));
        *self.each.lock().unpoisoned().entry(session.principal.clone()).or_default() += 1;
        self.follow(session);
    }

    /// Adds a session to those that are notified of changes, without keeping it alive.
    pub fn follow(&self, session: &Arc<Session>) {
        let mut table = self.by_key.write().unpoisoned();
        table.insert(session.key, Arc::downgrade(session));
        // Stateless requests that are over leave a dead entry behind.
        if table.len().is_power_of_two() {
            table.retain(|_, session| session.strong_count() > 0);
        }
    }

    pub fn remove(&self, session: &Session) {
        let kept = self.by_external.write().unpoisoned().remove(&session.external).is_some();
        if kept {
            let mut each = self.each.lock().unpoisoned();
            if let Some(count) = each.get_mut(&session.principal) {
                *count -= 1;
                if *count == 0 {
                    each.remove(&session.principal);
                }
            }
        }
        self.by_key.write().unpoisoned().remove(&session.key);
    }

    /// Returns the number of open sessions of a principal.
    #[must_use]
    pub fn len_of(&self, principal: &Principal) -> usize {
        self.each.lock().unpoisoned().get(principal).copied().unwrap_or(0)
    }

    /// Returns the number of open sessions.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_external.read().unpoisoned().len()
    }

    /// Returns true if no session is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns every session that is notified of changes, ordered by number.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Session>> {
        let table = self.by_key.read().unpoisoned();
        let mut all: Vec<_> = table.values().filter_map(Weak::upgrade).collect();
        all.sort_by_key(|session| session.key);
        all
    }
}
