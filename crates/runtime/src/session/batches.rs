//! Arrays of messages in a session (2025-03-26), and what is written for their answers.

use super::handling::Facts;
use super::{NotTaken, Session, SessionState, StreamReader};
use crate::batch::{Batch, Cancelled};
use signalbox_engine::front::Mode;
use signalbox_engine::{Carrier, Event, StreamId};
use signalbox_wire::Era;
use std::sync::Arc;

impl Session {
    /// Takes the messages of one array. Their answers go to the stream, which ends with the last of them; on a pipe, which
    /// never ends, they go out together as one array once all are there.
    pub fn receive_batch(self: &Arc<Self>, stream: &StreamReader, batch: Batch) {
        self.take_batch(stream.id(), batch);
    }

    /// Takes the messages of one array from a client that gets all answers on the general stream.
    ///
    /// # Errors
    /// If that stream is gone, or its reader is so far behind that no answer should be added.
    pub fn receive_batch_on_general(self: &Arc<Self>, batch: Batch) -> Result<(), NotTaken> {
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

    /// Ends a stream whose call was cancelled, unless other answers of a batch are still due on it.
    pub(super) fn end(&self, inner: &mut SessionState, stream: StreamId, facts: &mut Facts) {
        match inner.batches.cancelled(stream) {
            Cancelled::Waits => {}
            Cancelled::Whole(to, out) => self.write(inner, to, out, false, facts),
            Cancelled::Ends => {
                if let Some(outbox) = inner.streams.remove(&stream) {
                    outbox.close();
                }
            }
        }
    }
}
