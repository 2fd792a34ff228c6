//! Open questions of an old backend. While one is open, the calls that may have caused it wait for a client and not for
//! the backend, so their time-outs are extended.

use super::outbound::Draft;
use super::{BackMachine, Purpose};
use bytes::Bytes;
use signalbox_wire::{Envelope, Kind, RawId, json, method};
use std::time::Instant;

/// Maximum number of open questions remembered per connection.
pub const MAX_QUESTIONS: usize = 256;

/// Question without an answer.
#[derive(Debug)]
struct Question {
    id: RawId,
    /// Call on whose stream the question came; `None` if the transport does not tell, so that it may be any call in
    /// flight.
    about: Option<u64>,
    for_roots: bool,
}

/// Open questions of one connection.
#[derive(Default, Debug)]
pub(super) struct Questions(Vec<Question>);

impl Questions {
    /// Returns true if this call may be waiting for the answer to an open question.
    fn hold(&self, key: u64) -> bool {
        self.0.iter().any(|one| one.about.is_none_or(|about| about == key))
    }
}

impl<O: Clone> BackMachine<O> {
    /// Registers a question, and extends the time-outs of the calls that it may be about.
    pub(super) fn question_opened(&mut self, message: &Envelope, about: Option<u64>, now: Instant) {
        let Some(id) = message.id().filter(|_| self.questions.0.len() < MAX_QUESTIONS) else { return };
        let for_roots = message.method() == Some(method::ROOTS_LIST);
        self.questions.0.push(Question { id, about, for_roots });
        for key in self.call_keys() {
            if about.is_none_or(|about| about == key) {
                self.calls.hold(key, now + self.offer.question_timeout);
            }
        }
    }

    /// Handles the backend's cancellation of a question.
    pub(super) fn question_cancelled(&mut self, params: &[u8], now: Instant) {
        if let Some(span) = json::member(params, "requestId") {
            self.question_closed(&RawId::from_token(Bytes::copy_from_slice(span.of(params))), now);
        }
    }

    /// Inspects a message that is about to leave. Returns true if it answers a question.
    pub fn replies(&mut self, draft: &Draft, now: Instant) -> bool {
        if self.questions.0.is_empty() || !draft.method.is_empty() {
            return false;
        }
        let reply = Envelope::parse(draft.bytes.clone()).ok();
        let reply = reply.filter(|message| matches!(message.kind(), Kind::Response | Kind::Error));
        reply.and_then(|message| message.id()).is_some_and(|id| self.question_closed(&id, now))
    }

    /// Closes a question. The calls that no other question holds get their ordinary time-outs back.
    pub fn question_closed(&mut self, id: &RawId, now: Instant) -> bool {
        let Some(at) = self.questions.0.iter().position(|one| one.id == *id) else { return false };
        let closed = self.questions.0.remove(at);
        for key in self.call_keys() {
            if closed.about.is_none_or(|about| about == key) && !self.questions.hold(key) {
                self.calls.release(key, now);
            }
        }
        true
    }

    /// Returns true while the backend waits for the client's roots.
    #[must_use]
    pub fn waits_for_roots(&self) -> bool {
        self.questions.0.iter().any(|one| one.for_roots)
    }

    fn call_keys(&self) -> Vec<u64> {
        let calls = self.calls.iter().filter(|(_, pending)| matches!(pending.origin, Purpose::Call { .. }));
        calls.map(|(key, _)| key).collect()
    }
}
