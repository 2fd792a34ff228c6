//! Counts of what was dropped or refused at a backend's children.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts over all children of one backend.
#[derive(Debug, Default)]
pub struct ChildCounts {
    /// Lines on standard output that cannot be a message, such as banners.
    pub not_json: AtomicU64,
    /// Lines on standard output that were longer than allowed.
    pub too_long: AtomicU64,
    /// Lines on standard error that were not logged because too many came at once.
    pub unlogged: AtomicU64,
    /// Messages refused because the child does not read fast enough.
    pub refused: AtomicU64,
    /// Messages refused because they cannot be put on one line.
    pub unsendable: AtomicU64,
}

impl ChildCounts {
    /// Each under its word in metrics.
    pub(super) fn all(&self) -> [(&'static str, u64); 5] {
        [
            ("not_json", &self.not_json),
            ("line_too_long", &self.too_long),
            ("stderr_unlogged", &self.unlogged),
            ("queue_full", &self.refused),
            ("not_one_line", &self.unsendable),
        ]
        .map(|(word, count)| (word, count.load(Ordering::Relaxed)))
    }

    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
