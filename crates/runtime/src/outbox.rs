//! Queue between a front machine and the connection that writes to a client.
//!
//! Pushing never waits. Answers are always queued, since there are no more of them than requests in flight. Progress
//! and log messages are dropped and counted once the bound is reached.

use bytes::Bytes;
use signalbox_engine::budget::{Share, WEIGHED};
use signalbox_engine::front::ToClient;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Fault, FaultKind};
use signalbox_wire::{Envelope, Era, batch, single_line};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Maximum number of messages queued for a slow reader before droppable ones are dropped.
pub const OUTBOX_BOUND: usize = 256;
/// Maximum number of messages of any kind queued for a reader. Beyond it the stream is closed.
pub const OUTBOX_LIMIT: usize = 16 * OUTBOX_BOUND;
/// Maximum number of bytes queued for a reader that is away, not counting answers.
pub const AWAY_BYTES: usize = 256 * 1024;

/// A message on its way to a client. Only a front machine can create one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OutgoingMessage {
    bytes: Bytes,
    /// Set for the last message of its stream.
    pub last: bool,
    /// HTTP status, used if the message is the whole response.
    pub status: u16,
    /// Set for a marker that is not a message: the stream closes for now, and the client resumes it later.
    pub part: bool,
    /// Delay before the client may resume, if the backend named one.
    pub retry: Option<Duration>,
    number: u64,
    /// Fact numbers of the other answers in a batch.
    others: Vec<u64>,
}

impl OutgoingMessage {
    /// Wraps a message of a front machine.
    #[must_use]
    pub fn new(message: ToClient) -> Self {
        let (last, status, number) = (message.is_last(), message.status(), message.number());
        Self { bytes: message.into_bytes(), last, status, part: false, retry: None, number, others: Vec::new() }
    }

    /// Joins several answers into one array.
    #[must_use]
    pub fn joined(answers: Vec<Self>) -> Self {
        let numbers: Vec<u64> = answers.iter().flat_map(Self::numbers).collect();
        let bytes: Vec<Bytes> = answers.into_iter().map(|answer| on_one_line(answer.bytes)).collect();
        let (number, others) = numbers.split_first().map_or((0, &[][..]), |(first, others)| (*first, others));
        let others = others.to_vec();
        Self { bytes: batch::join(&bytes), last: true, status: 200, part: false, retry: None, number, others }
    }

    /// Creates the marker that closes a stream for now.
    #[must_use]
    pub fn parting(retry: Option<Duration>) -> Self {
        Self { bytes: Bytes::new(), last: false, status: 200, part: true, retry, number: 0, others: Vec::new() }
    }

    /// Returns the message or array.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the message or array.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Charges the message to its session's memory budget for as long as any copy of it lives.
    pub(crate) fn charge(&mut self, share: &Arc<Share>) {
        self.bytes = share.hold_anyway(std::mem::take(&mut self.bytes));
    }

    /// Returns true if the message is large enough to be charged.
    pub(crate) fn is_weighed(&self) -> bool {
        self.bytes.len() >= WEIGHED
    }

    /// Returns true for several answers in one array.
    pub(crate) fn is_joined(&self) -> bool {
        !self.others.is_empty()
    }

    /// Returns the fact numbers of its messages.
    pub fn numbers(&self) -> impl Iterator<Item = u64> {
        std::iter::once(self.number).chain(self.others.iter().copied()).filter(|number| *number != 0)
    }

    #[cfg(test)]
    pub(crate) fn for_test(text: &'static str, last: bool) -> Self {
        let bytes = Bytes::from_static(text.as_bytes());
        Self { bytes, last, status: 200, part: false, retry: None, number: 0, others: Vec::new() }
    }
}

/// Replaces an answer that contains a line break with an error, because it would break the array.
fn on_one_line(bytes: Bytes) -> Bytes {
    let Err(error) = single_line(&bytes) else { return bytes };
    let id = Envelope::parse(bytes).ok().and_then(|message| message.id());
    Fault::new(FaultKind::BackendGarbage, format!("the answer is not JSON: {error}")).reply(id.as_ref(), Era::Legacy)
}

#[derive(Debug, Default)]
struct OutboxState {
    /// Head of the queue, since most streams have only one message. `queue` is empty if this is `None`.
    first: Option<OutgoingMessage>,
    queue: VecDeque<OutgoingMessage>,
    bytes: usize,
    /// Number of messages ever queued.
    taken: u64,
    /// Number of messages queued before the newest dropped one.
    gap: Option<u64>,
    away: Away,
    closed: bool,
    waker: Option<Waker>,
}

/// Presence of a reader, and the bounds that apply without one.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub enum Away {
    /// The reader is present.
    #[default]
    Here,
    /// The reader may come back. Droppable messages are bounded in bytes too.
    Bounded,
    /// The reader may come back. All messages are bounded in bytes.
    AllBounded,
}

impl OutboxState {
    fn is_full(&self, out: &OutgoingMessage, droppable: bool) -> bool {
        let many = self.len() >= OUTBOX_BOUND;
        let large = self.away != Away::Here && self.bytes + out.bytes.len() > AWAY_BYTES;
        let bounded = droppable || self.away == Away::AllBounded;
        (bounded && (many || large)) || self.len() >= OUTBOX_LIMIT
    }

    fn pop(&mut self) -> Option<OutgoingMessage> {
        let out = self.first.take()?;
        self.first = self.queue.pop_front();
        self.bytes -= out.bytes.len();
        Some(out)
    }

    fn push(&mut self, out: OutgoingMessage) {
        match self.first {
            None => self.first = Some(out),
            Some(_) => self.queue.push_back(out),
        }
    }

    fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.queue.len()
    }
}

/// Bounded queue of messages for one reader.
#[derive(Debug, Default)]
pub struct Outbox(Mutex<OutboxState>);

/// Outcome of pushing a message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum PushOutcome {
    /// The message is queued.
    Taken,
    /// The message was dropped because the reader is too slow.
    Dropped,
    /// The stream is closed.
    Closed,
}

impl Outbox {
    /// Queues a message. Never blocks.
    pub fn push(&self, out: OutgoingMessage, droppable: bool) -> PushOutcome {
        let mut inner = self.lock();
        if inner.closed {
            return PushOutcome::Closed;
        }
        if inner.is_full(&out, droppable) {
            inner.gap = Some(inner.taken);
            return PushOutcome::Dropped;
        }
        inner.taken += u64::from(!out.part);
        inner.bytes += out.bytes.len();
        inner.push(out);
        wake(inner);
        PushOutcome::Taken
    }

    /// Ends the stream after the messages that are queued.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        wake(inner);
    }

    /// Returns the next message, or `None` once the stream has ended.
    pub async fn next(&self) -> Option<OutgoingMessage> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// Polls for the next message.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<OutgoingMessage>> {
        let mut inner = self.lock();
        if let Some(out) = inner.pop() {
            if out.last {
                inner.closed = true;
            }
            return Poll::Ready(Some(out));
        }
        if inner.closed {
            return Poll::Ready(None);
        }
        match &mut inner.waker {
            Some(known) => known.clone_from(cx.waker()),
            none => *none = Some(cx.waker().clone()),
        }
        Poll::Pending
    }

    /// Returns the next message, if one is queued.
    pub fn try_next(&self) -> Option<OutgoingMessage> {
        self.lock().pop()
    }

    /// Removes all queued messages and returns their fact numbers.
    pub fn drain(&self) -> Vec<u64> {
        let mut inner = self.lock();
        let mut numbers = Vec::new();
        while let Some(out) = inner.pop() {
            numbers.extend(out.numbers());
        }
        numbers
    }

    /// Sets whether the reader is present.
    pub fn set_away(&self, away: Away) {
        self.lock().away = away;
    }

    /// Returns the number of messages queued before the newest dropped one, if one was dropped.
    pub fn gap(&self) -> Option<u64> {
        self.lock().gap
    }

    /// Wakes the waiting reader, so that it notices that another has replaced it.
    pub fn nudge(&self) {
        wake(self.lock());
    }

    /// Returns true if the queue accepts no further message.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Returns the number of queued messages.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Returns true if no message is queued.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, OutboxState> {
        self.0.lock().unpoisoned()
    }
}

/// Wakes the reader after releasing the lock, so that the reader does not block on it.
fn wake(mut inner: MutexGuard<'_, OutboxState>) {
    let waker = inner.waker.take();
    drop(inner);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(text: &'static str, last: bool) -> OutgoingMessage {
        OutgoingMessage::for_test(text, last)
    }

    #[tokio::test]
    async fn a_full_stream_drops_progress_and_never_an_answer() {
        let outbox = Outbox::default();
        for _ in 0..OUTBOX_BOUND {
            assert_eq!(outbox.push(out("progress", false), true), PushOutcome::Taken);
        }
        assert_eq!(outbox.push(out("progress", false), true), PushOutcome::Dropped);
        assert_eq!(outbox.push(out("answer", true), false), PushOutcome::Taken);
        for _ in 0..OUTBOX_BOUND {
            assert_eq!(outbox.next().await.unwrap().bytes, "progress");
        }
        assert_eq!(outbox.next().await.unwrap().bytes, "answer");
        assert_eq!(outbox.next().await, None);
        assert_eq!(outbox.push(out("late", false), false), PushOutcome::Closed);
    }

    #[test]
    fn what_waits_for_a_reader_that_is_away_is_bounded_in_bytes_and_the_gap_is_known() {
        let large = || OutgoingMessage { bytes: Bytes::from(vec![b'x'; AWAY_BYTES / 2]), ..out("", false) };
        let outbox = Outbox::default();
        for _ in 0..4 {
            assert_eq!(outbox.push(large(), true), PushOutcome::Taken);
        }
        outbox.set_away(Away::Bounded);
        assert_eq!((outbox.push(large(), true), outbox.gap()), (PushOutcome::Dropped, Some(4)));
        assert_eq!(outbox.push(large(), false), PushOutcome::Taken);
        outbox.set_away(Away::AllBounded);
        assert_eq!((outbox.push(large(), false), outbox.gap()), (PushOutcome::Dropped, Some(5)));
        outbox.set_away(Away::Here);
        assert_eq!(outbox.push(large(), true), PushOutcome::Taken);
        for left in (0..6).rev() {
            assert!(outbox.try_next().is_some());
            assert_eq!(outbox.len(), left);
        }
        outbox.set_away(Away::AllBounded);
        assert_eq!(outbox.push(large(), false), PushOutcome::Taken, "what was read no longer counts");
    }
}
