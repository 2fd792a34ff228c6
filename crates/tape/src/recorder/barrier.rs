//! Barriers that resolve when the preceding facts are on disk.

use signalbox_engine::lock::LockResultExt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Reason why the facts before a barrier are not on disk.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BarrierError {
    /// The store cannot write.
    #[error("the tape cannot be written")]
    Store,
    /// Some of the facts did not fit into the queue.
    #[error("the recorder's queue was full")]
    Lost,
    /// The recorder has stopped.
    #[error("the recorder has stopped")]
    Closed,
    /// Too many barriers are waiting.
    #[error("too many answers wait for the tape")]
    Busy,
    /// The barrier was not resolved in time.
    #[error("the tape was not written in time")]
    Late,
}

#[derive(Default, Debug)]
struct BarrierInner {
    state: Mutex<State>,
    done: Condvar,
}

#[derive(Default, Debug)]
struct State {
    outcome: Option<Result<(), BarrierError>>,
    waker: Option<Waker>,
}

impl BarrierInner {
    fn resolve(&self, outcome: Result<(), BarrierError>) {
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

/// Resolving side of a barrier. Dropping it unresolved, for example because its thread has panicked, fails the barrier,
/// so that no waiter hangs.
#[derive(Debug)]
pub(crate) struct Waiting(Arc<BarrierInner>);

impl Waiting {
    /// Creates both sides of a barrier.
    pub(crate) fn new() -> (Self, Barrier) {
        let shared = Arc::new(BarrierInner::default());
        (Self(Arc::clone(&shared)), Barrier(shared))
    }

    /// Returns true while the waiting side exists.
    pub(crate) fn is_awaited(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Resolves the barrier. Later outcomes are ignored.
    pub(crate) fn resolve(&self, outcome: Result<(), BarrierError>) {
        self.0.resolve(outcome);
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.resolve(Err(BarrierError::Closed));
    }
}

/// Resolves when every fact that preceded its creation is on disk, or cannot get there. It is a future for any runtime;
/// a thread may use [`Barrier::wait`].
#[derive(Debug)]
pub struct Barrier(Arc<BarrierInner>);

impl Barrier {
    /// Blocks this thread until the barrier resolves, for at most `within`.
    ///
    /// # Errors
    /// Returns the reason why the facts are not on disk.
    pub fn wait(&self, within: Duration) -> Result<(), BarrierError> {
        let state = self.0.state.lock().unpoisoned();
        let waited = self.0.done.wait_timeout_while(state, within, |state| state.outcome.is_none());
        let (state, _) = waited.unpoisoned();
        state.outcome.unwrap_or(Err(BarrierError::Late))
    }
}

impl Future for Barrier {
    type Output = Result<(), BarrierError>;

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
