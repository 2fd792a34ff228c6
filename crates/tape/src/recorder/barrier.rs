//! Waiting until what happened so far is on disk.

use signalbox_engine::lock::LockResultExt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Why the facts before a barrier are not on disk.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotRecorded {
    /// The store cannot write.
    #[error("the tape cannot be written")]
    Store,
    /// Some of the facts had no room in the queue.
    #[error("the recorder's queue was full")]
    Lost,
    /// The recorder has ended.
    #[error("the recorder has stopped")]
    Closed,
    /// Too many wait for it.
    #[error("too many answers wait for the tape")]
    Busy,
    /// It was not known in time.
    #[error("the tape was not written in time")]
    Late,
}

#[derive(Default, Debug)]
struct Shared {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default, Debug)]
struct State {
    outcome: Option<Result<(), NotRecorded>>,
    waker: Option<Waker>,
}

impl Shared {
    fn resolve(&self, outcome: Result<(), NotRecorded>) {
        let mut state = self.state.lock().unpoisoned();
        state.outcome.get_or_insert(outcome);
        let waker = state.waker.take();
        drop(state);
        self.done.notify_all();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The side of a barrier that resolves it. Dropping it unresolved, say because its thread has panicked, fails the barrier, so
/// that nobody waits for ever.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<Shared>);

impl Waiting {
    /// Both sides of a barrier.
    pub(crate) fn new() -> (Self, Barrier) {
        let shared = Arc::new(Shared::default());
        (Self(Arc::clone(&shared)), Barrier(shared))
    }

    /// True while the other side is there.
    pub(crate) fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Resolves the barrier. Only the first outcome counts.
    pub(crate) fn resolve(&self, outcome: Result<(), NotRecorded>) {
        self.0.resolve(outcome);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.resolve(Err(NotRecorded::Closed));
    }
}

/// Becomes ready when every fact that was there when it was made is on disk, or will not come there. A future for any
/// runtime; a thread may [`Barrier::wait`].
#[derive(Debug)]
pub struct Barrier(Arc<Shared>);

impl Barrier {
    /// Waits on this thread, at most this long.
    ///
    /// # Errors
    /// Why the facts are not on disk.
    pub fn wait(&self, within: Duration) -> Result<(), NotRecorded> {
        let state = self.0.state.lock().unpoisoned();
        let waited = self.0.done.wait_timeout_while(state, within, |state| state.outcome.is_none());
        let (state, _) = waited.unpoisoned();
        state.outcome.unwrap_or(Err(NotRecorded::Late))
    }
}

impl Future for Barrier {
    type Output = Result<(), NotRecorded>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.0.state.lock().unpoisoned();
        match state.outcome {
            Some(outcome) => Poll::Ready(outcome),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}
