//! The count of spans that reached nobody.

use signalbox_runtime::Gateway;
use std::sync::{OnceLock, Weak};

/// A span that found the queue full.
pub(super) const QUEUE_FULL: &str = "span_queue_full";
/// A span that the collector did not take.
pub(super) const NOT_EXPORTED: &str = "span_not_exported";

/// Counts among all that the gateway drops, once there is one.
#[derive(Default)]
pub(super) struct Lost(OnceLock<Weak<Gateway>>);

impl Lost {
    /// From here on, this gateway's counters are used.
    pub(super) fn count_at(&self, gateway: Weak<Gateway>) {
        let _ = self.0.set(gateway);
    }

    pub(super) fn count(&self, reason: &'static str, spans: usize) {
        if let Some(gateway) = self.0.get().and_then(Weak::upgrade) {
            (0..spans).for_each(|_| gateway.counters.dropped(reason));
        }
    }
}
