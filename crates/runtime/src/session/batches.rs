//! Batches (JSON arrays of messages, revision 2025-03-26) in a session, and how their answers are written.

use super::handling::Facts;
use super::{ReceiveError, Session, SessionState, StreamReader};
use crate::batch::{Batch, CancelOutcome};
use signalbox_engine::front::Mode;
use signalbox_engine::{Carrier, Event, StreamId};
use signalbox_wire::Era;
use std::sync::Arc;

impl Session {
    /// Handles the messages of one batch. Their answers go to `stream`, which ends after the last of them. A pipe never
    /// ends: there the answers leave together, as one array, once all are there.
    pub fn receive_batch(self: &Arc<Self>, stream: &StreamReader, batch: Batch) {
        self.take_batch(stream.id(), batch);
    }

    /// Handles a batch of a client that gets all answers on the general stream.
    ///
    /// # Errors
    /// If that stream has ended, or is too full for another answer.
    pub fn receive_batch_on_general(self: &Arc<Self>, batch: Batch) -> Result<(), ReceiveError> {
        let stream = self.general_for(batch.answers() > 0)?;
        self.take_batch(stream, batch);
        Ok(())
    }

    fn take_batch(self: &Arc<Self>, stream: StreamId, batch: Batch) {
        self.touch();
        let caller = batch.caller.clone();
        let (messages, refusals, answers) = batch.into_parts();
        let id = {
            let mut inner = self.lock();
            let id = match self.mode {
                Mode::Pipe => {
                    inner.next_stream += 1;
                    StreamId(inner.next_stream - 1)
                }
                Mode::Session | Mode::Stateless => stream,
            };
            inner.batches.open(id, stream, answers);
            id
        };
        for (to, fault) in refusals {
            self.handle(Event::Unreadable { stream: id, id: to, era: Era::Legacy, fault });
        }
        for message in messages {
            let carrier = Carrier { connection_caller: caller.as_ref(), ..Carrier::default() };
            self.handle_at(Event::Received { stream: id, message }, carrier, crate::clock::now());
        }
    }

    /// Ends the stream of a cancelled call, unless other answers of its batch are still due.
    pub(super) fn end(&self, inner: &mut SessionState, stream: StreamId, facts: &mut Facts) {
        match inner.batches.cancelled(stream) {
            CancelOutcome::Pending => {}
            CancelOutcome::Complete(to, out) => self.write(inner, to, out, false, facts),
            CancelOutcome::EndStream => {
                if let Some(outbox) = inner.streams.remove(&stream) {
                    outbox.close();
                }
            }
        }
    }
}
