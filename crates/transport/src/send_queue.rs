//! What waits for a backend to read it, for links that write one message after the other.

use signalbox_engine::back::ToBackend;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{mpsc, watch};

/// Most messages that wait.
pub const QUEUE: usize = 1024;
/// Most bytes that wait; a single message may be larger.
pub const QUEUE_BYTES: usize = 64 * 1024 * 1024;

/// Why a message is not taken; it has then surely not reached the backend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum NotQueued {
    /// Too much waits already.
    Full,
    /// The connection is ending or has ended.
    Ended,
}

/// The link's end of the queue. Dropping it ends the connection.
#[derive(Debug)]
pub(crate) struct SendQueue {
    /// Becomes true, or loses its sender, when the connection is to end. Above the queue, so that it is dropped first and
    /// the end of the queue is not taken for a broken pipe.
    pub closing: watch::Sender<bool>,
    pub queue: mpsc::Sender<ToBackend>,
    /// Bytes that are queued or being written.
    pub waiting: Arc<AtomicUsize>,
    /// Why the connection has ended, once it has.
    pub ended: Arc<OnceLock<String>>,
}

impl SendQueue {
    /// Takes a message, without waiting.
    pub fn send(&self, message: ToBackend) -> Result<(), NotQueued> {
        if *self.closing.borrow() || self.ended.get().is_some() {
            return Err(NotQueued::Ended);
        }
        let size = message.bytes().len();
        let before = self.waiting.fetch_add(size, Ordering::AcqRel);
        let sent = if before > 0 && before.saturating_add(size) > QUEUE_BYTES {
            Err(NotQueued::Full)
        } else {
            self.queue.try_send(message).map_err(|error| match error {
                TrySendError::Full(_) => NotQueued::Full,
                TrySendError::Closed(_) => NotQueued::Ended,
            })
        };
        if sent.is_err() {
            self.waiting.fetch_sub(size, Ordering::AcqRel);
        }
        sent
    }

    /// Ends the connection.
    pub fn close(&self) {
        self.closing.send_replace(true);
    }

    /// Why the connection has ended, once it has.
    pub fn why(&self) -> Option<&str> {
        self.ended.get().map(String::as_str)
    }
}

/// Waits until the link is closed, or dropped with the sender in it. May be cancelled.
pub(crate) async fn closed(closing: &mut watch::Receiver<bool>) {
    let _ = closing.wait_for(|closing| *closing).await;
}
