//! The queue between a machine and the connection that writes to a client.
//!
//! Pushing never waits. Answers are always taken, since there are no more of them than requests in flight; progress and
//! log messages are dropped, and counted, once the bound is reached.

use bytes::Bytes;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// Most messages that wait for one slow reader before droppable ones are dropped.
pub const OUTBOX_BOUND: usize = 256;
/// Most messages of any kind that wait for one reader that never reads; beyond it the stream is given up.
pub const OUTBOX_LIMIT: usize = 16 * OUTBOX_BOUND;

/// A message on its way out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Out {
    /// The message.
    pub bytes: Bytes,
    /// True where nothing follows.
    pub last: bool,
    /// The HTTP status, if it goes out as the whole answer.
    pub status: u16,
    /// No message at all: the stream closes for now, and its client comes back for the rest.
    pub part: bool,
}

impl Out {
    /// The sign that a stream closes for now.
    #[must_use]
    pub fn parting() -> Self {
        Self { bytes: Bytes::new(), last: false, status: 200, part: true }
    }
}

#[derive(Debug, Default)]
struct Inner {
    queue: VecDeque<Out>,
    closed: bool,
    waker: Option<Waker>,
}

/// The queue.
#[derive(Debug, Default)]
pub struct Outbox(Mutex<Inner>);

/// What became of a pushed message.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Pushed {
    /// It will be written.
    Taken,
    /// The reader is too slow for it.
    Dropped,
    /// Nobody reads any more.
    Closed,
}

impl Outbox {
    /// Queues a message.
    pub fn push(&self, out: Out, droppable: bool) -> Pushed {
        let mut inner = self.lock();
        if inner.closed {
            return Pushed::Closed;
        }
        if (droppable && inner.queue.len() >= OUTBOX_BOUND) || inner.queue.len() >= OUTBOX_LIMIT {
            return Pushed::Dropped;
        }
        inner.queue.push_back(out);
        wake(inner);
        Pushed::Taken
    }

    /// Ends the stream after what is already queued.
    pub fn close(&self) {
        let mut inner = self.lock();
        inner.closed = true;
        wake(inner);
    }

    /// The next message; `None` once the stream is over.
    pub async fn next(&self) -> Option<Out> {
        std::future::poll_fn(|cx| self.poll_next(cx)).await
    }

    /// The next message, as a poll.
    pub fn poll_next(&self, cx: &mut Context<'_>) -> Poll<Option<Out>> {
        let mut inner = self.lock();
        if let Some(out) = inner.queue.pop_front() {
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

    /// The next message, if one is there.
    pub fn try_next(&self) -> Option<Out> {
        self.lock().queue.pop_front()
    }

    /// True where nothing more is taken.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// How many messages wait.
    pub fn len(&self) -> usize {
        self.lock().queue.len()
    }

    /// True where none waits.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Wakes the reader after the lock is gone, so that it does not run into it.
fn wake(mut inner: MutexGuard<'_, Inner>) {
    let waker = inner.waker.take();
    drop(inner);
    if let Some(waker) = waker {
        waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn out(text: &'static str, last: bool) -> Out {
        Out { bytes: Bytes::from_static(text.as_bytes()), last, status: 200, part: false }
    }

    #[tokio::test]
    async fn a_full_stream_drops_progress_and_never_an_answer() {
        let outbox = Outbox::default();
        for _ in 0..OUTBOX_BOUND {
            assert_eq!(outbox.push(out("progress", false), true), Pushed::Taken);
        }
        assert_eq!(outbox.push(out("progress", false), true), Pushed::Dropped);
        assert_eq!(outbox.push(out("answer", true), false), Pushed::Taken);
        for _ in 0..OUTBOX_BOUND {
            assert_eq!(outbox.next().await.unwrap().bytes, "progress");
        }
        assert_eq!(outbox.next().await.unwrap().bytes, "answer");
        assert_eq!(outbox.next().await, None);
        assert_eq!(outbox.push(out("late", false), false), Pushed::Closed);
    }
}
