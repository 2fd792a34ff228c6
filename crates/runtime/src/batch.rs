//! Batches (2025-03-26): the messages of one array, and the answers that are still due to such arrays.

use crate::outbox::Out;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::{Caller, Fault, StreamId};
use signalbox_wire::{Envelope, Kind, RawId};

/// The messages of one array.
#[derive(Debug, Default)]
pub struct Batch {
    /// The sender, if it differs from the opener of the session.
    pub(crate) caller: Option<Caller>,
    messages: Vec<Envelope>,
    refusals: Vec<Refusal>,
}

/// An element of an array that is refused: its id, if that could be read, and why.
pub type Refusal = (Option<RawId>, Fault);

impl Batch {
    /// These messages, and the refusals of elements that are not messages.
    #[must_use]
    pub fn new(messages: Vec<Envelope>, refusals: Vec<Refusal>) -> Self {
        Self { caller: None, messages, refusals }
    }

    /// Sets the sender, if it differs from the opener of the session.
    #[must_use]
    pub fn with_caller(self, caller: Option<Caller>) -> Self {
        Self { caller, ..self }
    }

    /// How many answers the client is due.
    #[must_use]
    pub fn answers(&self) -> usize {
        self.refusals.len() + self.messages.iter().filter(|message| message.kind() == Kind::Request).count()
    }

    pub(crate) fn into_parts(self) -> (Vec<Envelope>, Vec<Refusal>, usize) {
        let answers = self.answers();
        (self.messages, self.refusals, answers)
    }
}

/// The answers that an array is still due.
#[derive(Debug)]
struct Owed {
    /// Where its messages go.
    to: StreamId,
    left: usize,
    /// The answers so far, if they go out together.
    gathered: Option<Vec<Out>>,
}

impl Owed {
    /// All answers as one array, once the last is there.
    fn whole(&mut self) -> Option<Out> {
        let gathered = self.gathered.as_mut().filter(|all| self.left == 0 && !all.is_empty())?;
        Some(Out::joined(std::mem::take(gathered)))
    }
}

/// What follows when a call of a batch was cancelled.
#[derive(Debug)]
pub(crate) enum Cancelled {
    /// Nothing: other answers are due, or none was given.
    Waits,
    /// All other answers are there and go out together.
    Whole(StreamId, Out),
    /// The stream is over.
    Ends,
}

/// The arrays of one session that are still due answers. There are no more of them than requests in flight.
#[derive(Debug, Default)]
pub(crate) struct Batches(KeyMap<StreamId, Owed>);

impl Batches {
    /// Notes an array whose calls have `stream` and whose messages go out on `to`. If these differ, its answers go out together.
    pub(crate) fn open(&mut self, stream: StreamId, to: StreamId, answers: usize) {
        if answers > 0 {
            let gathered = (stream != to).then(Vec::new);
            self.0.insert(stream, Owed { to, left: answers, gathered });
        }
    }

    /// Takes a message, and returns what is to be written now and to which stream.
    pub(crate) fn pass(&mut self, stream: StreamId, mut out: Out) -> Option<(StreamId, Out)> {
        let Some(owed) = self.0.get_mut(&stream) else { return Some((stream, out)) };
        let to = owed.to;
        if !out.last {
            return Some((to, out));
        }
        owed.left = owed.left.saturating_sub(1);
        let over = owed.left == 0;
        let written = match &mut owed.gathered {
            None => {
                out.last = over;
                Some(out)
            }
            Some(all) => {
                all.push(out);
                owed.whole()
            }
        };
        if over {
            self.0.remove(&stream);
        }
        written.map(|out| (to, out))
    }

    /// Notes that one answer on this stream is no longer due.
    pub(crate) fn cancelled(&mut self, stream: StreamId) -> Cancelled {
        let Some(owed) = self.0.get_mut(&stream) else { return Cancelled::Ends };
        owed.left = owed.left.saturating_sub(1);
        if owed.left > 0 {
            return Cancelled::Waits;
        }
        let (to, whole, together) = (owed.to, owed.whole(), owed.gathered.is_some());
        self.0.remove(&stream);
        match whole {
            Some(out) => Cancelled::Whole(to, out),
            None if together => Cancelled::Waits,
            None => Cancelled::Ends,
        }
    }

    /// Forgets the arrays of a stream that nobody reads any more.
    pub(crate) fn forget(&mut self, stream: StreamId) {
        self.0.retain(|id, owed| *id != stream && owed.to != stream);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALLS: StreamId = StreamId(5);
    const PIPE: StreamId = StreamId(1);

    fn answer(text: &'static str) -> Out {
        Out::for_test(text, true)
    }

    fn note() -> Out {
        Out::for_test("note", false)
    }

    /// What is written, as `STREAM TEXT`, with `!` behind the last of a stream.
    fn pass(batches: &mut Batches, out: Out) -> String {
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
        assert!(matches!(batches.cancelled(CALLS), Cancelled::Waits));
        assert_eq!(pass(&mut batches, answer("a")), "5 a!");
        batches.open(CALLS, CALLS, 2);
        assert_eq!(pass(&mut batches, answer("a")), "5 a");
        assert!(matches!(batches.cancelled(CALLS), Cancelled::Ends));

        batches.open(CALLS, PIPE, 2);
        assert_eq!(pass(&mut batches, answer("1")), "");
        let Cancelled::Whole(PIPE, out) = batches.cancelled(CALLS) else { panic!("the other answer waits") };
        assert_eq!(out.bytes(), "[1]");
        batches.open(CALLS, PIPE, 1);
        assert!(matches!(batches.cancelled(CALLS), Cancelled::Waits));
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
