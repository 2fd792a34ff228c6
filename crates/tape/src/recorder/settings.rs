//! Settings of a recorder.

use super::filter::Filter;
use super::priority::Priorities;
use super::sampling::Sampling;
use super::session_hash::SessionHash;
use crate::seal::SealSettings;
use std::time::Duration;

/// Treatment of a fact that does not fit into the queue.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum OnFull {
    /// The fact is dropped; the tape states how many are missing.
    Gap,
    /// The fact is dropped as well, but threads that read messages from clients and backends wait once half of the
    /// bounds is used, for at most this long. They never wait while the store fails.
    Wait(Duration),
}

/// Settings of a recorder.
#[derive(Clone, Debug)]
pub struct RecorderSettings {
    /// Maximum number of facts in the queue.
    pub queue_facts: usize,
    /// Maximum number of bytes of facts in the queue.
    pub queue_bytes: usize,
    /// Treatment of facts beyond that.
    pub on_full: OnFull,
    /// True if every append must be on disk before it counts.
    pub strict: bool,
    /// Maximum number of entries per append.
    pub batch: usize,
    /// Time for which facts are gathered for one append.
    pub gather: Duration,
    /// Maximum interval between background tasks of the store.
    pub idle_every: Duration,
    /// Maximum pause between two attempts to write.
    pub retry_at_most: Duration,
    pub sampling: Sampling,
    /// Rules that give exchanges a share of their own.
    pub priorities: Priorities,
    /// Filter that is applied before sampling.
    pub filter: Filter,
    /// False if only the outlines of messages are kept.
    pub bodies: bool,
    /// Maximum size of a recorded body; of larger ones only the length is kept.
    pub max_body: usize,
    /// Time without facts after which an exchange without an end is forgotten.
    pub orphan_after: Duration,
    /// Bounds on the entries that wait in memory for the decision about their exchange.
    pub hold: HoldLimits,
    /// Hash for session ids, which are credentials. Without it they are left out.
    pub session_hash: Option<SessionHash>,
    /// Settings of the seal, if the tape is sealed.
    pub seal: Option<SealSettings>,
}

/// Bounds on the entries that wait for the decision of sampling.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct HoldLimits {
    pub entries: usize,
    /// Maximum number of bytes of messages.
    pub bytes: usize,
    /// Time after which an exchange that is still open is kept (or dropped, with a ring).
    pub open_for: Duration,
}

impl RecorderSettings {
    /// Describes priorities and sampling for the head of a tape.
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
            hold: HoldLimits { entries: 200_000, bytes: 64 << 20, open_for: Duration::from_secs(30) },
            session_hash: None,
            seal: None,
        }
    }
}
