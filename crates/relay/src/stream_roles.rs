//! Whether an event stream is a page's or a client's. Earlier systems had one address for both, so who does not say is known by what
//! it posts.

use signalbox_engine::lock::LockResultExt as _;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::watch;

/// Who posted is remembered of so many.
const MAX_PEERS: usize = 10_000;

/// What a stream is for.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Role {
    /// It carries requests to a page.
    Worker,
    /// It carries results to a client.
    Client,
}

/// Who posted what.
#[derive(Debug)]
pub struct StreamRoles {
    seen: Mutex<HashMap<Box<str>, Role>>,
    changes: watch::Sender<u64>,
}

impl Default for StreamRoles {
    fn default() -> Self {
        Self { seen: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl StreamRoles {
    /// Notes what somebody, by address and name, has shown to be.
    pub fn note(&self, peer: &str, role: Role) {
        let mut seen = self.seen.lock().unpoisoned();
        if seen.get(peer) == Some(&role) {
            return;
        }
        if seen.len() >= MAX_PEERS {
            seen.clear();
        }
        seen.insert(peer.into(), role);
        drop(seen);
        self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
    }

    /// What somebody has shown to be.
    #[must_use]
    pub fn of(&self, peer: &str) -> Option<Role> {
        self.seen.lock().unpoisoned().get(peer).copied()
    }

    /// Tells when somebody has shown something else.
    #[must_use]
    pub fn follow(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_posts_requests_is_a_client_and_who_posts_answers_a_page() {
        let roles = StreamRoles::default();
        let mut changes = roles.follow();
        assert_eq!(roles.of("a"), None);
        roles.note("a", Role::Client);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        roles.note("a", Role::Client);
        assert!(!changes.has_changed().unwrap(), "nothing new");
        assert_eq!((roles.of("a"), roles.of("b")), (Some(Role::Client), None));
    }
}
