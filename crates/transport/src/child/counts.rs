//! Counts of what was dropped or refused at a backend's children.

use std::collections::BTreeMap;
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
    /// What was dropped or refused, by reason.
    pub(super) fn dropped(&self) -> BTreeMap<&'static str, u64> {
        let all = [
            ("line_too_long", &self.too_long),
            ("stderr_unlogged", &self.unlogged),
            ("queue_full", &self.refused),
            ("not_one_line", &self.unsendable),
        ];
        all.into_iter().map(|(why, count)| (why, count.load(Ordering::Relaxed))).collect()
    }

    pub(super) fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
