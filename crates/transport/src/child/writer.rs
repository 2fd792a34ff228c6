//! The only writer of a child's standard input.

use super::ChildCounts;
use crate::line_writer::LineWriter;
use crate::send_queue::closed;
use bytes::Bytes;
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::LinkEvents;
use signalbox_wire::framing::single_line;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::AsyncWrite;
use tokio::sync::{mpsc, watch};

/// Maximum number of messages joined in one write.
const BATCH: usize = 64;

/// State of the writing task.
pub(super) struct Writer {
    pub(super) name: Arc<str>,
    pub(super) queue: mpsc::Receiver<ToBackend>,
    pub(super) waiting: Arc<AtomicUsize>,
    pub(super) closing: watch::Receiver<bool>,
    pub(super) events: Arc<dyn LinkEvents>,
    pub(super) counts: Arc<ChildCounts>,
}

impl Writer {
    /// Writes messages until the link closes, then those queued before. Returning closes the pipe.
    pub(super) async fn run(mut self, pipe: impl AsyncWrite + Unpin) {
        if let Err(error) = self.write_all(pipe).await {
            tracing::debug!(backend = %self.name, %error, "the child no longer reads its input");
        }
    }

    async fn write_all(&mut self, pipe: impl AsyncWrite + Unpin) -> io::Result<()> {
        let mut batch = Vec::with_capacity(BATCH);
        let mut lines = LineWriter::new(pipe);
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                () = closed(&mut self.closing), if open => {
                    open = false;
                    self.queue.close();
                }
                taken = self.queue.recv_many(&mut batch, BATCH) => {
                    if taken == 0 {
                        return Ok(());
                    }
                    let size = batch.iter().map(|message| message.bytes().len()).sum();
                    for message in batch.drain(..) {
                        if let Some(line) = self.line(&message) {
                            lines.add(line).await?;
                        }
                    }
                    lines.flush().await?;
                    self.waiting.fetch_sub(size, Ordering::AcqRel);
                }
            }
        }
    }

    fn line(&self, message: &ToBackend) -> Option<Bytes> {
        match single_line(message.bytes()) {
            Ok(line) => Some(line),
            Err(error) => {
                ChildCounts::add(&self.counts.unsendable);
                tracing::warn!(backend = %self.name, %error, "a message cannot be put on one line and was not sent");
                if let Some(key) = message.key() {
                    let text = format!("the message cannot be sent to backend `{}`: {error}", self.name);
                    let fault = Fault::new(FaultKind::InvalidRequest, text);
                    self.events.failed(key, fault.with_str("backend", &self.name));
                }
                None
            }
        }
    }
}
