//! Queue of messages to a backend, for links that write one message after the other.

use signalbox_engine::back::ToBackend;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

/// Maximum number of queued messages.
pub const QUEUE: usize = 1024;
/// Maximum number of queued bytes; a single message may be larger.
pub const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// Reasons why a message is not queued. It has then certainly not reached the backend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum QueueError {
    /// The queue is full.
    Full,
    /// The connection is ending or has ended.
    Ended,
}

/// The link's end of the queue. Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Becomes `true`, or is dropped, when the connection must end. Declared above the queue so that it is dropped
    /// first; otherwise the end of the queue would look like a broken pipe.
    pub closing: watch::Sender<bool>,
    pub queue: mpsc::Sender<ToBackend>,
    /// Bytes that are queued or being written.
    pub waiting: Arc<AtomicUsize>,
    /// Reason why the connection ended, once it has.
    pub ended: Arc<OnceLock<String>>,
}

impl SendQueue {
    /// Queues a message without waiting.
    pub fn send(&self, message: ToBackend) -> Result<(), QueueError> {
        if *self.closing.borrow() || self.ended.get().is_some() {
            return Err(QueueError::Ended);
        }
        let size = message.bytes().len();
        let before = self.waiting.fetch_add(size, Ordering::AcqRel);
        let sent = if before > 0 && before.saturating_add(size) > QUEUE_BYTES {
            Err(QueueError::Full)
        } else {
            self.queue.try_send(message).map_err(|error| match error {
                TrySendError::Full(_) => QueueError::Full,
                TrySendError::Closed(_) => QueueError::Ended,
            })
        };
        if sent.is_err() {
            self.waiting.fetch_sub(size, Ordering::AcqRel);
        }
        sent
    }

    /// Ends the connection. Messages queued before are still written.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Returns the reason why the connection ended, once it has.
    pub fn why(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }
}

/// Waits until the link is closed, or dropped together with the sender. Cancel-safe.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}
