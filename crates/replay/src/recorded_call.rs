//! Call of a tape as seen from one side of the gateway.

use crate::match_key::MatchKey;
use bytes::Bytes;
use serde_json::Value;
use signalbox_wire::{Envelope, Era, Kind};
use std::sync::Arc;

/// Request with the messages up to its answer, and the answer.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedCall {
    /// Number of its exchange.
    pub number: u64,
    pub session: Option<u64>,
    /// Position of the request on the tape.
    pub seq: u64,
    /// Position of the last message on the tape.
    pub last: u64,
    /// Time of the request, in nanoseconds since 1970.
    pub began: u64,
    /// Era of the request.
    pub era: Era,
    pub method: Arc<str>,
    /// Tool, prompt or URI.
    pub subject: Option<Arc<str>>,
    /// Request body, or `None` if it was not recorded.
    pub request: Option<Bytes>,
    /// Lookup key, or `None` if the request was redacted, not recorded or is not JSON.
    pub key: Option<MatchKey>,
    /// Messages from the server before the answer, in order.
    pub steps: Vec<Step>,
    /// Answer, or `None` if the tape has none.
    pub answer: Option<RecordedMessage>,
    /// Messages after the answer that belong to no later call.
    pub afterwards: Vec<Step>,
    /// Set if the request was redacted and so cannot equal a live one.
    pub redacted: bool,
}

impl RecordedCall {
    /// Returns `true` if the call can be found and answered.
    #[must_use]
    pub fn is_playable(&self) -> bool {
        self.key.is_some() && self.answer.as_ref().is_some_and(|answer| answer.bytes.is_some())
    }

    /// Returns `true` if the answer is a result and not an error.
    #[must_use]
    pub fn has_result(&self) -> bool {
        let answer = self.answer.as_ref().and_then(|said| said.bytes.clone());
        let envelope = answer.and_then(|bytes| Envelope::parse(bytes).ok());
        envelope.is_some_and(|envelope| envelope.kind() == Kind::Response)
    }

    /// Returns the result, or `None` for an error or no answer.
    pub(crate) fn result(&self) -> Option<Value> {
        let answer = serde_json::from_slice::<Value>(self.answer.as_ref()?.bytes.as_ref()?).ok();
        answer?.get_mut("result").map(Value::take)
    }

    /// Estimates the memory use in bytes.
    #[must_use]
    pub fn weight(&self) -> usize {
        let said = |said: &RecordedMessage| said.bytes.as_ref().map_or(0, Bytes::len) + 64;
        let step = |step: &Step| said(&step.said) + step.answer.as_ref().map_or(0, said);
        let steps = self.steps.iter().chain(&self.afterwards).map(step).sum::<usize>();
        256 + self.request.as_ref().map_or(0, Bytes::len) + self.answer.as_ref().map_or(0, said) + steps
    }
}

/// Notification or request from the server.
#[derive(Clone, PartialEq, Debug)]
pub struct Step {
    /// Message from the server.
    pub said: RecordedMessage,
    /// Set for a request, which expects an answer.
    pub asks: bool,
    /// Client's answer, if recorded.
    pub answer: Option<RecordedMessage>,
}

/// Message on a tape.
#[derive(Clone, PartialEq, Debug)]
pub struct RecordedMessage {
    /// Time in nanoseconds since 1970.
    pub at: u64,
    /// Body, or `None` if it was not recorded.
    pub bytes: Option<Bytes>,
    /// Set if a part was redacted.
    pub redacted: bool,
}
