//! How many calls were compared, and with what result.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of the calls that were compared with a baseline.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct BaselineStats {
    /// Calls that were answered as recorded.
    pub same: u64,
    /// Calls that were answered otherwise.
    pub differs: u64,
    /// Calls that are not on the baseline.
    pub unknown: u64,
    /// Calls that were not compared because they came too fast or were too large.
    pub dropped: u64,
}

impl BaselineStats {
    /// Each count with its word in metrics.
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
