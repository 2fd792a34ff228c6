//! Counters of a baseline comparison.

use std::sync::atomic::{AtomicU64, Ordering};

/// Outcome of the calls compared with a baseline.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BaselineStats {
    /// Calls whose answer matched the recording.
    pub same: u64,
    /// Calls whose answer differed.
    pub differs: u64,
    pub unknown: u64,
    /// Calls that were not compared because the queue was full or a message too large.
    pub dropped: u64,
}

impl BaselineStats {
    /// Returns each count with its name in metrics.
    #[must_use]
    pub fn each(&self) -> [(&'static str, u64); 4] {
        [("same", self.same), ("differs", self.differs), ("unknown", self.unknown), ("dropped", self.dropped)]
    }
}

#[derive(Default, Debug)]
pub(super) struct Counters {
    same: AtomicU64,
    differs: AtomicU64,
    unknown: AtomicU64,
    dropped: AtomicU64,
}

impl Counters {
    pub(super) fn same(&self) {
        self.same.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn differs(&self) {
        self.differs.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn unknown(&self) {
        self.unknown.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn dropped(&self) {
        self.dropped.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> BaselineStats {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        BaselineStats {
            same: read(&self.same),
            differs: read(&self.differs),
            unknown: read(&self.unknown),
            dropped: read(&self.dropped),
        }
    }
}
