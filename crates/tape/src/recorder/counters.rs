//! Counters of recorded and lost facts, for metrics and status pages.

use signalbox_engine::lock::LockResultExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Reason why facts are missing.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum GapReason {
    /// The facts came faster than they could be written.
    QueueFull,
    /// The store could not write.
    Disk,
    /// The store refused only this entry.
    Refused,
}

impl GapReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [Self; 3] = [Self::QueueFull, Self::Disk, Self::Refused];

    /// Returns the name of the reason on tapes and in metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Disk => "disk",
            Self::Refused => "refused",
        }
    }
}

/// Live counters of a recorder.
#[derive(Default, Debug)]
pub(crate) struct Counters {
    pub(crate) entries: AtomicU64,
    pub(crate) bytes: AtomicU64,
    pub(crate) gaps: [AtomicU64; 3],
    pub(crate) sampled_out: AtomicU64,
    pub(crate) store_errors: AtomicU64,
    pub(crate) orphans: AtomicU64,
    pub(crate) redacted: AtomicU64,
    pub(crate) withheld: AtomicU64,
    pub(crate) unindexed: AtomicU64,
    health: Mutex<Health>,
}

/// Ability of the store to write.
#[derive(Clone, Default, Debug)]
struct Health {
    /// True if the store was tried at least once.
    tried: bool,
    failing: Option<String>,
    last_error: Option<String>,
}

impl Counters {
    pub(crate) fn lost(&self, reason: GapReason, facts: u64) {
        if let Some(counter) = self.gaps.get(reason as usize) {
            counter.fetch_add(facts, Relaxed);
        }
    }

    /// Notes a failure of the store. Returns true if the store worked until now.
    pub(crate) fn error(&self, error: String, advice: &str) -> bool {
        self.store_errors.fetch_add(1, Relaxed);
        let mut health = self.health.lock().unpoisoned();
        health.tried = true;
        let failing = format!("{error}; {advice}");
        health.last_error = Some(error);
        health.failing.replace(failing).is_none()
    }

    /// Notes a success of the store. Returns true if the store failed until now.
    pub(crate) fn fine(&self) -> bool {
        let mut health = self.health.lock().unpoisoned();
        health.tried = true;
        health.failing.take().is_some()
    }

    pub(crate) fn snapshot(&self) -> RecorderStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        let health = self.health.lock().unpoisoned().clone();
        RecorderStats {
            entries: read(&self.entries),
            bytes: read(&self.bytes),
            gaps: GapReason::ALL.map(|reason| (reason, self.gaps.get(reason as usize).map_or(0, read))),
            sampled_out: read(&self.sampled_out),
            store_errors: read(&self.store_errors),
            orphans: read(&self.orphans),
            redacted: read(&self.redacted),
            withheld: read(&self.withheld),
            unindexed: read(&self.unindexed),
            queue_depth: 0,
            queue_bytes: 0,
            tried: health.tried,
            failing: health.failing,
            last_error: health.last_error,
        }
    }
}

/// Statistics of a recorder at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecorderStats {
    /// Number of entries that the store has accepted.
    pub entries: u64,
    /// Bytes of messages in these entries.
    pub bytes: u64,
    /// Number of missing facts, by reason.
    pub gaps: [(GapReason, u64); 3],
    /// Number of facts that sampling and filters left out.
    pub sampled_out: u64,
    /// Number of failed operations of the store.
    pub store_errors: u64,
    /// Number of exchanges whose end was not seen.
    pub orphans: u64,
    /// Number of messages that were redacted.
    pub redacted: u64,
    /// Number of messages whose body was left out because it could not be redacted safely.
    pub withheld: u64,
    /// Number of entries that the index for text search has not processed yet.
    pub unindexed: u64,
    /// Number of facts in the queue.
    pub queue_depth: u64,
    /// Bytes of facts in the queue.
    pub queue_bytes: u64,
    /// True if the store was tried at least once.
    pub tried: bool,
    /// Reason why writing fails now, with advice.
    pub failing: Option<String>,
    /// Most recent error of the store.
    pub last_error: Option<String>,
}

impl RecorderStats {
    /// Returns the number of facts that are missing for this reason.
    #[must_use]
    pub fn lost(&self, reason: GapReason) -> u64 {
        self.gaps.iter().find(|(known, _)| *known == reason).map_or(0, |(_, facts)| *facts)
    }
}
