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

/// What a sender has posted in a session.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct Posted {
    requests: bool,
    answers: bool,
}

/// A session, by its mark, and who posted in it, by address and name.
type Sender = (Box<str>, Box<str>);

/// Who posted what, by session. Behind one address a class has a session for each pupil, so nothing that is seen in one session
/// says anything about another.
#[derive(Debug)]
pub struct StreamRoles {
    seen: Mutex<HashMap<Sender, Posted>>,
    changes: watch::Sender<u64>,
}

impl Default for StreamRoles {
    fn default() -> Self {
        Self { seen: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl StreamRoles {
    /// Notes what a sender, by address and name, has shown to be in this session.
    pub fn note(&self, session: &str, peer: &str, role: Role) {
        let mut seen = self.seen.lock().unpoisoned();
        if seen.len() >= MAX_PEERS {
            seen.clear();
        }
        let posted = seen.entry((session.into(), peer.into())).or_default();
        let before = *posted;
        match role {
            Role::Client => posted.requests = true,
            Role::Worker => posted.answers = true,
        }
        let changed = before != *posted;
        drop(seen);
        if changed {
            self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        }
    }

    /// What a sender has shown to be in this session. Where a page and a client share address and name, it is not known.
    #[must_use]
    pub fn of(&self, session: &str, peer: &str) -> Option<Role> {
        let posted = self.seen.lock().unpoisoned().get(&(session.into(), peer.into())).copied()?;
        match posted {
            Posted { requests: true, answers: false } => Some(Role::Client),
            Posted { requests: false, answers: true } => Some(Role::Worker),
            _ => None,
        }
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
        assert_eq!(roles.of("s", "a"), None);
        roles.note("s", "a", Role::Client);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        roles.note("s", "a", Role::Client);
        assert!(!changes.has_changed().unwrap(), "nothing new");
        assert_eq!((roles.of("s", "a"), roles.of("s", "b")), (Some(Role::Client), None));
    }

    /// Issue 31, point 13.
    #[test]
    fn what_is_posted_in_one_session_says_nothing_about_another() {
        let roles = StreamRoles::default();
        roles.note("one", "school", Role::Client);
        roles.note("two", "school", Role::Worker);
        assert_eq!(roles.of("one", "school"), Some(Role::Client));
        assert_eq!(roles.of("two", "school"), Some(Role::Worker));
        assert_eq!(roles.of("three", "school"), None);
        roles.note("one", "school", Role::Worker);
        assert_eq!(roles.of("one", "school"), None, "a page and a client of one address and name");
    }
}
