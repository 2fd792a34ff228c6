//! What a session tells those who keep what happens, and answers that leave only once they have.

use super::Session;
use crate::outbox::Out;
use bytes::Bytes;
use signalbox_engine::fact::SessionFact;
use signalbox_engine::front::Mode;
use signalbox_engine::{Fact, StreamId};
use signalbox_wire::{Envelope, builder, codes};
use std::sync::Arc;
use std::time::Instant;

impl Session {
    /// True for a session that lasts longer than one request.
    pub(crate) fn is_kept(&self) -> bool {
        self.mode != Mode::Stateless
    }

    /// Tells who keeps what happens of the session, as far as it is known.
    pub(crate) fn tell_of_itself(&self) {
        if self.gateway.message_facts() && self.is_kept() {
            let fact = Fact::Session(Arc::new(SessionFact {
                at: Instant::now(),
                session: self.key,
                caller: self.caller.clone(),
                external: (!self.external.is_empty()).then(|| Arc::from(&*self.external)),
                transport: self.via,
                client: self.client(),
            }));
            self.gateway.note(self, [fact]);
        }
    }

    /// Sends answers when they, and all that led to them, are written down.
    pub(super) fn send_once_written(self: &Arc<Self>, answers: Vec<(StreamId, Out, bool)>) {
        let Some(durable) = &self.gateway.durable else { return };
        let (session, written) = (Arc::clone(self), durable.written());
        tokio::spawn(async move {
            let kept = written.await;
            let mut inner = session.lock();
            for (stream, mut out, droppable) in answers {
                if !kept {
                    session.gateway.counters.dropped("not_recorded");
                    out.bytes = not_recorded(out.bytes);
                }
                session.send(&mut inner, stream, out, droppable);
            }
        });
    }
}

/// What a client gets in place of an answer that could not be written down, and that must not leave without.
fn not_recorded(answer: Bytes) -> Bytes {
    let id = Envelope::parse(answer).ok().and_then(|message| message.id());
    let text = "the answer could not be recorded, and is not given without; the call may have been carried out";
    builder::error(id.as_ref(), codes::INTERNAL_ERROR, text, Some(br#"{"reason":"not_recorded"}"#))
}
