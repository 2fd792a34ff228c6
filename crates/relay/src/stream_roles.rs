//! Roles of event streams. Pages and clients share one URL in earlier systems, so an undeclared role is inferred from
//! what the peer posts.

use signalbox_engine::lock::LockResultExt as _;
use std::collections::HashMap;
use std::sync::Mutex;
use tokio::sync::watch;

/// Maximum number of peers to remember.
const MAX_PEERS: usize = 10_000;

/// Role of an event stream.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum StreamRole {
    /// Carries requests to a page.
    Worker,
    /// Carries results to a client.
    Client,
}

/// Kinds of messages that a peer has posted in a session.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
struct PeerActivity {
    requests: bool,
    answers: bool,
}

/// A session, by its mark, and a peer, by address and name.
type Sender = (Box<str>, Box<str>);

/// Roles of peers by session. A classroom behind one address has a session per pupil, so an observation in one session
/// says nothing about another.
#[derive(Debug)]
pub struct StreamRoles {
    seen: Mutex<HashMap<Sender, PeerActivity>>,
    changes: watch::Sender<u64>,
}

impl Default for StreamRoles {
    fn default() -> Self {
        Self { seen: Mutex::default(), changes: watch::Sender::new(0) }
    }
}

impl StreamRoles {
    /// Records the role that a peer, by address and name, has shown in this session.
    pub fn note(&self, session: &str, peer: &str, role: StreamRole) {
        let mut seen = self.seen.lock().unpoisoned();
        if seen.len() >= MAX_PEERS {
            seen.clear();
        }
        let posted = seen.entry((session.into(), peer.into())).or_default();
        let before = *posted;
        match role {
            StreamRole::Client => posted.requests = true,
            StreamRole::Worker => posted.answers = true,
        }
        let changed = before != *posted;
        drop(seen);
        if changed {
            self.changes.send_modify(|changes| *changes = changes.wrapping_add(1));
        }
    }

    /// Returns the role that a peer has shown in this session. `None` if a page and a client share address and name.
    #[must_use]
    pub fn of(&self, session: &str, peer: &str) -> Option<StreamRole> {
        let posted = self.seen.lock().unpoisoned().get(&(session.into(), peer.into())).copied()?;
        match posted {
            PeerActivity { requests: true, answers: false } => Some(StreamRole::Client),
            PeerActivity { requests: false, answers: true } => Some(StreamRole::Worker),
            _ => None,
        }
    }

    /// Returns a receiver that is notified when a peer's role changes.
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
        roles.note("s", "a", StreamRole::Client);
        assert!(changes.has_changed().unwrap());
        changes.mark_unchanged();
        roles.note("s", "a", StreamRole::Client);
        assert!(!changes.has_changed().unwrap(), "nothing new");
        assert_eq!((roles.of("s", "a"), roles.of("s", "b")), (Some(StreamRole::Client), None));
    }

    #[test]
    fn what_is_posted_in_one_session_says_nothing_about_another() {
        let roles = StreamRoles::default();
        roles.note("one", "school", StreamRole::Client);
        roles.note("two", "school", StreamRole::Worker);
        assert_eq!(roles.of("one", "school"), Some(StreamRole::Client));
        assert_eq!(roles.of("two", "school"), Some(StreamRole::Worker));
        assert_eq!(roles.of("three", "school"), None);
        roles.note("one", "school", StreamRole::Worker);
        assert_eq!(roles.of("one", "school"), None, "a page and a client of one address and name");
    }
}
