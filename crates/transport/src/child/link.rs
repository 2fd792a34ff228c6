//! The runtime's end of a child.

use super::counts::ChildCounts;
use signalbox_engine::back::Outbound;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::Link;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

/// Most messages that wait for a child to read them.
pub(super) const QUEUE: usize = 1024;
/// Most bytes that wait for a child to read them; a single message may be larger.
pub(super) const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// An open child. Dropping it closes it.
#[derive(Debug)]
pub(super) struct ChildLink {
    pub(super) name: Arc<str>,
    pub(super) pid: u32,
    /// Becomes true, or loses its sender, when the child is to end. Above the queue, so that it is dropped first and
    /// the end of the queue is not taken for a broken pipe.
    pub(super) closing: watch::Sender<bool>,
    pub(super) queue: mpsc::Sender<Outbound>,
    /// Bytes that are queued or being written.
    pub(super) waiting: Arc<AtomicUsize>,
    /// Why the child has ended, once it has.
    pub(super) ended: Arc<OnceLock<String>>,
    pub(super) counts: Arc<ChildCounts>,
}

impl ChildLink {
    fn overloaded(&self) -> Fault {
        ChildCounts::add(&self.counts.refused);
        let text = format!(
            "backend `{}` does not read its input fast enough: too many messages already wait for it",
            self.name
        );
        Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name)
    }

    /// Down rather than died: this message has surely not reached the child.
    fn down(&self) -> Fault {
        let why = self.ended.get().map_or("is ending", String::as_str);
        let text = format!("backend `{}` is not running: it {why}", self.name);
        Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name)
    }
}

impl Link for ChildLink {
    fn send(&self, message: Outbound) -> Result<(), Fault> {
        if *self.closing.borrow() || self.ended.get().is_some() {
            return Err(self.down());
        }
        let size = message.bytes.len();
        let before = self.waiting.fetch_add(size, Ordering::AcqRel);
        let sent = if before > 0 && before.saturating_add(size) > QUEUE_BYTES {
            Err(self.overloaded())
        } else {
            self.queue.try_send(message).map_err(|error| match error {
                TrySendError::Full(_) => self.overloaded(),
                TrySendError::Closed(_) => self.down(),
            })
        };
        if sent.is_err() {
            self.waiting.fetch_sub(size, Ordering::AcqRel);
        }
        sent
    }

    fn close(&self) {
        self.closing.send_replace(true);
    }

    fn pid(&self) -> Option<u32> {
        Some(self.pid)
    }
}
