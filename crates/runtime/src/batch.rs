//! Batches (revision 2025-03-26): messages of one JSON array, and the answers that such arrays still await.

use crate::outbox::OutgoingMessage;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::{Caller, Fault, StreamId};
use signalbox_wire::{Envelope, Kind, RawId};

/// Messages of one JSON array.
#[derive(Debug, Default)]
pub struct Batch {
    /// Sender, if it differs from the opener of the session.
    pub(crate) caller: Option<Caller>,
    messages: Vec<Envelope>,
    refusals: Vec<RefusedElement>,
}

/// A refused element of an array: its id, if that could be read, and the reason.
pub type RefusedElement = (Option<RawId>, Fault);

impl Batch {
    /// Creates a batch of messages and of refusals for the elements that are not messages.
    #[must_use]
    pub fn new(messages: Vec<Envelope>, refusals: Vec<RefusedElement>) -> Self {
        Self { caller: None, messages, refusals }
    }

    /// Sets the sender, if it differs from the opener of the session.
    #[must_use]
    pub fn with_caller(self, caller: Option<Caller>) -> Self {
        Self { caller, ..self }
    }

    /// Returns the number of answers that the client expects.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.refusals.len() + self.messages.iter().filter(|message| message.kind() == Kind::Request).count()
    }

    pub(crate) fn into_parts(self) -> (Vec<Envelope>, Vec<RefusedElement>, usize) {
        let answers = self.answers();
        (self.messages, self.refusals, answers)
    }
}

/// Outstanding answers of one batch.
#[derive(Debug)]
struct OutstandingAnswers {
    /// Stream that the answers are written to.
    to: StreamId,
    left: usize,
    /// Answers so far, if they are to be sent together.
    collected: Option<Vec<OutgoingMessage>>,
}

impl OutstandingAnswers {
    /// Returns all answers as one array, once the last one is there.
    fn complete(&mut self) -> Option<OutgoingMessage> {
        let collected = self.collected.as_mut().filter(|all| self.left == 0 && !all.is_empty())?;
        Some(OutgoingMessage::joined(std::mem::take(collected)))
    }
}

/// Action after the cancellation of a call of a batch.
#[derive(Debug)]
pub(crate) enum CancelOutcome {
    /// None: other answers are outstanding, or no call of the batch was answered.
    Pending,
    /// Write the remaining answers, which are complete, as one array.
    Complete(StreamId, OutgoingMessage),
    /// End the stream after this message.
    EndStream,
}

/// Batches of one session with outstanding answers. There are no more of them than requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Batches(KeyMap<StreamId, OutstandingAnswers>);

impl Batches {
    /// Registers a batch whose calls use `stream` and whose answers are written to `to`. If these differ, its answers
    /// are sent together.
    pub(crate) fn open(&mut self, stream: StreamId, to: StreamId, answers: usize) {
        if answers > 0 {
            let collected = (stream != to).then(Vec::new);
            self.0.insert(stream, OutstandingAnswers { to, left: answers, collected });
        }
    }

    /// Handles an outgoing message. Returns what to write now, and to which stream.
    pub(crate) fn pass(&mut self, stream: StreamId, mut out: OutgoingMessage) -> Option<(StreamId, OutgoingMessage)> {
        let Some(outstanding) = self.0.get_mut(&stream) else { return Some((stream, out)) };
        let to = outstanding.to;
        if !out.last {
            return Some((to, out));
        }
        outstanding.left = outstanding.left.saturating_sub(1);
        let over = outstanding.left == 0;
        let written = match &mut outstanding.collected {
            None => {
                out.last = over;
                Some(out)
            }
            Some(all) => {
                all.push(out);
                outstanding.complete()
            }
        };
        if over {
            self.0.remove(&stream);
        }
        written.map(|out| (to, out))
    }

    /// Records that one answer on this stream is no longer expected.
    pub(crate) fn cancelled(&mut self, stream: StreamId) -> CancelOutcome {
        let Some(outstanding) = self.0.get_mut(&stream) else { return CancelOutcome::EndStream };
        outstanding.left = outstanding.left.saturating_sub(1);
        if outstanding.left > 0 {
            return CancelOutcome::Pending;
        }
        let (to, whole, together) = (outstanding.to, outstanding.complete(), outstanding.collected.is_some());
        self.0.remove(&stream);
        match whole {
            Some(out) => CancelOutcome::Complete(to, out),
            None if together => CancelOutcome::Pending,
            None => CancelOutcome::EndStream,
        }
    }

    /// Removes the batches of a stream that has ended.
    pub(crate) fn forget(&mut self, stream: StreamId) {
        self.0.retain(|id, outstanding| *id != stream && outstanding.to != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: StreamId = StreamId(5);
    const PIPE: StreamId = StreamId(1);

    fn answer(text: &'static str) -> OutgoingMessage {
        OutgoingMessage::for_test(text, true)
    }

    fn note() -> OutgoingMessage {
        OutgoingMessage::for_test("note", false)
    }

    /// What is written, as `STREAM TEXT`, with `!` behind the last of a stream.
    fn pass(batches: &mut Batches, out: OutgoingMessage) -> String {
        match batches.pass(CALLS, out) {
            Some((to, out)) => {
                let text = String::from_utf8_lossy(out.bytes()).into_owned();
                format!("{} {text}{}", to.0, if out.last { "!" } else { "" })
            }
            None => String::new(),
        }
    }

    #[test]
    fn on_a_stream_of_its_own_every_answer_goes_out_at_once_and_the_last_ends_it() {
        let mut batches = Batches::default();
        batches.open(CALLS, CALLS, 2);
        assert_eq!(pass(&mut batches, answer("a")), "5 a");
        assert_eq!(pass(&mut batches, note()), "5 note");
        assert_eq!(pass(&mut batches, answer("b")), "5 b!");
    }

    #[test]
    fn on_a_pipe_the_answers_go_out_together_and_the_rest_at_once() {
        let mut batches = Batches::default();
        batches.open(CALLS, PIPE, 2);
        assert_eq!(pass(&mut batches, answer("1")), "");
        assert_eq!(pass(&mut batches, note()), "1 note");
        assert_eq!(pass(&mut batches, answer("2")), "1 [1,2]!");
        assert!(batches.0.is_empty());
    }

    #[test]
    fn a_cancelled_call_is_not_waited_for() {
        let mut batches = Batches::default();
        batches.open(CALLS, CALLS, 2);
        assert!(matches!(batches.cancelled(CALLS), CancelOutcome::Pending));
        assert_eq!(pass(&mut batches, answer("a")), "5 a!");
        batches.open(CALLS, CALLS, 2);
        assert_eq!(pass(&mut batches, answer("a")), "5 a");
        assert!(matches!(batches.cancelled(CALLS), CancelOutcome::EndStream));

        batches.open(CALLS, PIPE, 2);
        assert_eq!(pass(&mut batches, answer("1")), "");
        let CancelOutcome::Complete(PIPE, out) = batches.cancelled(CALLS) else { panic!("the other answer waits") };
        assert_eq!(out.bytes(), "[1]");
        batches.open(CALLS, PIPE, 1);
        assert!(matches!(batches.cancelled(CALLS), CancelOutcome::Pending));
        assert!(batches.0.is_empty());
    }

    #[test]
    fn an_answer_that_fits_on_no_line_is_replaced_by_an_error_to_its_id() {
        let mut batches = Batches::default();
        batches.open(CALLS, PIPE, 2);
        pass(&mut batches, answer("{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{\"a\":\"x\ny\"}}"));
        let whole = pass(&mut batches, answer("2"));
        assert!(whole.starts_with(r#"1 [{"jsonrpc":"2.0","id":7,"error":"#) && whole.ends_with(",2]!"), "{whole}");
    }
}
