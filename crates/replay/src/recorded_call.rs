//! One call of a tape, as one side of the gateway saw it.

use crate::match_key::MatchKey;
use bytes::Bytes;
use serde_json::Value;
use signalbox_wire::{Envelope, Era, Kind};
use std::sync::Arc;

/// A request, what came before its answer, and the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedCall {
    /// The number of its exchange.
    pub number: u64,
    /// Its session, if it has one.
    pub session: Option<u64>,
    /// The place of its request in the tape.
    pub seq: u64,
    /// The place of its last message.
    pub last: u64,
    /// When it began, in nanoseconds since 1970.
    pub began: u64,
    /// The era that its request speaks.
    pub era: Era,
    /// Its method.
    pub method: Arc<str>,
    /// The tool, prompt or URI.
    pub subject: Option<Arc<str>>,
    /// The request; none if its body was left out.
    pub request: Option<Bytes>,
    /// What it is found by; none if its body was left out or is not JSON.
    pub key: Option<MatchKey>,
    /// What came back before the answer, in order.
    pub steps: Vec<Step>,
    /// The answer; none if the tape has none.
    pub answer: Option<Said>,
    /// What came after the answer and belongs to no later call.
    pub afterwards: Vec<Step>,
    /// True if the request was redacted, so that it equals no live request.
    pub redacted: bool,
}

impl RecordedCall {
    /// True if it can be found and answered.
    #[must_use]
    pub fn is_playable(&self) -> bool {
        self.key.is_some() && self.answer.as_ref().is_some_and(|answer| answer.bytes.is_some())
    }

    /// True if it was answered with a result, not with an error.
    #[must_use]
    pub fn has_result(&self) -> bool {
        let answer = self.answer.as_ref().and_then(|said| said.bytes.clone());
        let envelope = answer.and_then(|bytes| Envelope::parse(bytes).ok());
        envelope.is_some_and(|envelope| envelope.kind() == Kind::Response)
    }

    /// The result that answered it; none if there is an error or nothing.
    pub(crate) fn result(&self) -> Option<Value> {
        let answer = serde_json::from_slice::<Value>(self.answer.as_ref()?.bytes.as_ref()?).ok();
        answer?.get_mut("result").map(Value::take)
    }

    /// About how many bytes it takes up.
    #[must_use]
    pub fn weight(&self) -> usize {
        let said = |said: &Said| said.bytes.as_ref().map_or(0, Bytes::len) + 64;
        let step = |step: &Step| said(&step.said) + step.answer.as_ref().map_or(0, said);
        let steps = self.steps.iter().chain(&self.afterwards).map(step).sum::<usize>();
        256 + self.request.as_ref().map_or(0, Bytes::len) + self.answer.as_ref().map_or(0, said) + steps
    }
}

/// A notification or a question of the server.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// What the server said.
    pub said: Said,
    /// True if it wants an answer.
    pub asks: bool,
    /// What the client answered, where that is on the tape.
    pub answer: Option<Said>,
}

/// A message of a tape.
#[derive(Clone, PartialEq, Debug)]
pub struct Said {
    /// When, in nanoseconds since 1970.
    pub at: u64,
    /// Its body; none if it was left out.
    pub bytes: Option<Bytes>,
    /// True if something was redacted.
    pub redacted: bool,
}
