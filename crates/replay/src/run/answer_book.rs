use crate::recorded_call::RecordedCall;
use serde_json::Value;
use std::collections::VecDeque;

/// Recorded client's answers to the server requests of one call, in order.
pub(super) struct AnswerBook(VecDeque<(String, Option<Value>)>);

impl AnswerBook {
    pub(super) fn new(call: &RecordedCall) -> Self {
        let asked = call.steps.iter().filter(|step| step.asks).filter_map(|step| {
            let question: Value = serde_json::from_slice(step.said.bytes.as_ref()?).ok()?;
            let answer = step.answer.as_ref().filter(|answer| !answer.redacted);
            let answer = answer.and_then(|answer| serde_json::from_slice(answer.bytes.as_ref()?).ok());
            Some((question.get("method")?.as_str()?.to_owned(), answer))
        });
        Self(asked.collect())
    }

    /// Creates an empty book, for a request that is not on the tape.
    pub(super) fn empty() -> Self {
        Self(VecDeque::new())
    }

    /// Takes the answer to the next server request of this method. The outer `None` means the recorded call had no such
    /// request. The inner one means the tape has no answer to it.
    pub(super) fn answer(&mut self, method: &str) -> Option<Option<Value>> {
        let place = self.0.iter().position(|(asked, _)| asked == method)?;
        self.0.remove(place).map(|(_, answer)| answer)
    }
}
