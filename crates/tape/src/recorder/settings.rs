//! What is recorded, and what happens when it cannot be.

use super::filter::Filter;
use super::priority::Priorities;
use super::sampling::Sampling;
use super::session_hash::SessionHash;
use crate::seal::SealSettings;
use std::time::Duration;

/// What happens to a fact for which the queue has no room.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OnFull {
    /// It is left out; the tape says how many are missing.
    Gap,
    /// It is left out as well, but those who take messages from outside wait from half of the bounds on, at most this long.
    /// Nobody waits while the store cannot write at all.
    Wait(Duration),
}

/// How a recorder works.
#[derive(Clone, Debug)]
pub struct RecorderSettings {
    /// Most facts that wait.
    pub queue_facts: usize,
    /// Most bytes of facts that wait.
    pub queue_bytes: usize,
    /// What happens when there are more.
    pub on_full: OnFull,
    /// True if every append is to be on disk before it counts.
    pub strict: bool,
    /// Most entries in one append.
    pub batch: usize,
    /// How long facts are gathered for one append.
    pub gather: Duration,
    /// How often the store may do what can wait, at least.
    pub idle_every: Duration,
    /// The longest pause between two tries to write.
    pub retry_at_most: Duration,
    /// Which exchanges are kept.
    pub sampling: Sampling,
    /// Which of them have a share of their own.
    pub priorities: Priorities,
    /// Which exchanges are looked at in the first place.
    pub filter: Filter,
    /// False if only the outlines of messages are kept.
    pub bodies: bool,
    /// The largest body that is kept; of larger ones only the length is.
    pub max_body: usize,
    /// An exchange without an end is forgotten when nothing was heard of it for this long.
    pub orphan_after: Duration,
    /// How long, and within how many bytes, entries wait in memory to know whether their exchange is kept.
    pub hold: Hold,
    /// Hashes the ids of sessions, which are credentials. Without it they are left out.
    pub session_hash: Option<SessionHash>,
    /// Seals the tape.
    pub seal: Option<SealSettings>,
}

/// How much may wait for the verdict of sampling.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Hold {
    /// Most entries.
    pub entries: usize,
    /// Most bytes of messages.
    pub bytes: usize,
    /// An exchange that is still open after this time is kept (or, in a ring, let go).
    pub open_for: Duration,
}

impl RecorderSettings {
    /// What is kept, in the words of the head of a tape.
    #[must_use]
    pub fn sampling_words(&self) -> String {
        let mut words = self.priorities.words();
        words.push(self.sampling.words());
        words.join("; ")
    }
}

impl Default for RecorderSettings {
    fn default() -> Self {
        Self {
            queue_facts: 65_536,
            queue_bytes: 64 << 20,
            on_full: OnFull::Gap,
            strict: false,
            batch: 500,
            gather: Duration::from_millis(20),
            idle_every: Duration::from_secs(2),
            retry_at_most: Duration::from_secs(5),
            sampling: Sampling::All,
            priorities: Priorities::default(),
            filter: Filter::default(),
            bodies: true,
            max_body: 16 << 20,
            orphan_after: Duration::from_secs(3600),
            hold: Hold { entries: 200_000, bytes: 64 << 20, open_for: Duration::from_secs(30) },
            session_hash: None,
            seal: None,
        }
    }
}
