//! Calls and answers that wait until they are recorded, and the end of that wait at shutdown.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// Counter of waiting answers, and switch that ends all waits.
#[derive(Debug)]
pub(crate) struct Unwritten {
    answers: AtomicUsize,
    given_up: watch::Sender<bool>,
}

impl Default for Unwritten {
    fn default() -> Self {
        Self { answers: AtomicUsize::new(0), given_up: watch::Sender::new(false) }
    }
}

impl Unwritten {
    /// Waits for `written`. Returns false if [`Self::give_up`] comes first.
    pub fn in_time<F>(&self, written: F) -> impl Future<Output = bool> + Send + use<F>
    where
        F: Future<Output = bool> + Send,
    {
        let mut given_up = self.given_up.subscribe();
        async move {
            tokio::select! {
                biased;
                kept = written => kept,
                _ = given_up.wait_for(|given_up| *given_up) => false,
            }
        }
    }

    /// Counts further waiting answers.
    pub fn add(&self, answers: usize) {
        self.answers.fetch_add(answers, Ordering::AcqRel);
    }

    /// Counts answers that no longer wait.
    pub fn done(&self, answers: usize) {
        self.answers.fetch_sub(answers, Ordering::AcqRel);
    }

    /// Returns true if no answer waits.
    pub fn is_empty(&self) -> bool {
        self.answers.load(Ordering::Acquire) == 0
    }

    /// Ends all waits. What is not recorded by now counts as not recorded.
    pub fn give_up(&self) {
        self.given_up.send_replace(true);
    }
}
