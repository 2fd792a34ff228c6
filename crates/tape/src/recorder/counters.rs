//! What the recorder did and what it lost, for metrics and for people.

use signalbox_engine::lock::LockResultExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why facts are missing.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum GapReason {
    /// They came faster than they could be written.
    QueueFull,
    /// The store could not write.
    Disk,
    /// The store refused just this entry.
    Refused,
}

impl GapReason {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::QueueFull, Self::Disk, Self::Refused];

    /// The word for it on tapes and in metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::QueueFull => "queue_full",
            Self::Disk => "disk",
            Self::Refused => "refused",
        }
    }
}

/// The live numbers of a recorder.
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

/// Whether the tape can be written.
#[derive(Clone, Default, Debug)]
struct Health {
    /// The store was tried at least once.
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

    /// The store could not do what was asked. True if it could until now.
    pub(crate) fn error(&self, error: String, advice: &str) -> bool {
        self.store_errors.fetch_add(1, Relaxed);
        let mut health = self.health.lock().unpoisoned();
        health.tried = true;
        let failing = format!("{error}; {advice}");
        health.last_error = Some(error);
        health.failing.replace(failing).is_none()
    }

    /// The store has done what was asked. True if it could not before.
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

/// The numbers of a recorder at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecorderStats {
    /// Entries that the store has kept.
    pub entries: u64,
    /// Bytes of messages in them.
    pub bytes: u64,
    /// Facts that are missing, by reason.
    pub gaps: [(GapReason, u64); 3],
    /// Facts that sampling and filters left out.
    pub sampled_out: u64,
    /// How often the store could not do what was asked.
    pub store_errors: u64,
    /// Exchanges whose end was not seen.
    pub orphans: u64,
    /// Messages in which something was taken out.
    pub redacted: u64,
    /// Messages whose body was left out since it could not be told safely.
    pub withheld: u64,
    /// Entries that the index for text search is behind.
    pub unindexed: u64,
    /// Facts that wait.
    pub queue_depth: u64,
    /// Bytes of facts that wait.
    pub queue_bytes: u64,
    /// The store was tried at least once.
    pub tried: bool,
    /// Why nothing can be written now, and what to do about it.
    pub failing: Option<String>,
    /// What the store said last when it could not.
    pub last_error: Option<String>,
}

impl RecorderStats {
    /// How many facts are missing for this reason.
    #[must_use]
    pub fn lost(&self, reason: GapReason) -> u64 {
        self.gaps.iter().find(|(known, _)| *known == reason).map_or(0, |(_, facts)| *facts)
    }
}
