//! The runtime's end of a WebSocket.

use signalbox_engine::back::Outbound;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::Link;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

/// Most messages that wait for a backend to read them.
pub(super) const QUEUE: usize = 1024;
/// Most bytes that wait for a backend to read them; a single message may be larger.
pub(super) const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub(super) struct WsLink {
    pub(super) name: Arc<str>,
    /// Becomes true, or loses its sender, when the connection is to end.
    pub(super) closing: watch::Sender<bool>,
    pub(super) queue: mpsc::Sender<Outbound>,
    /// Bytes that are queued.
    pub(super) waiting: Arc<AtomicUsize>,
    /// Why the connection has ended, once it has.
    pub(super) ended: Arc<OnceLock<String>>,
}

impl WsLink {
    fn overloaded(&self) -> Fault {
        let text = format!("backend `{}` does not read fast enough: too many messages already wait for it", self.name);
        Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name)
    }

    /// Down rather than died: this message has surely not reached the backend.
    fn down(&self) -> Fault {
        let why = self.ended.get().map_or("is being closed", String::as_str);
        let text = format!("backend `{}` is not connected: it {why}", self.name);
        Fault::new(FaultKind::BackendDown, text).with_str("backend", &self.name)
    }
}

impl Link for WsLink {
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
}
