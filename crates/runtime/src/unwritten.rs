//! Calls and answers that wait until they are written down, and the end of that wait when the gateway ends.

use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

/// Those that wait.
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
    /// Whether `written` says in time that all is written down.
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

    /// So many answers wait from now on.
    pub fn add(&self, answers: usize) {
        self.answers.fetch_add(answers, Ordering::AcqRel);
    }

    /// So many have left, or never will.
    pub fn done(&self, answers: usize) {
        self.answers.fetch_sub(answers, Ordering::AcqRel);
    }

    /// True where no answer waits.
    pub fn is_empty(&self) -> bool {
        self.answers.load(Ordering::Acquire) == 0
    }

    /// Nothing waits any longer: what is not written down now counts as not written.
    pub fn give_up(&self) {
        self.given_up.send_replace(true);
    }
}
