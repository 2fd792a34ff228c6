//! Compares live traffic with a recorded tape, the baseline, as it flows.
//!
//! ```text
//! workers ──facts──► queue (bounded) ──► thread `baseline`: finds the recorded call, compares the answers
//!                      │ full                       │
//!                      ▼                            ├─ counts: same, differs, unknown
//!                   dropped                         └─ a decision by `baseline` for each call that is not the same
//! ```
//!
//! A [`Baseline`] is a [`FactSink`], not an interceptor: an answer has left for its client before it is compared here.
//!
//! Invariants:
//! - nobody who tells a fact waits, and no message is changed or held up;
//! - every call that is compared or had to be left out is counted exactly once;
//! - a decision is told only after the facts that it is about: the gateway must list the baseline after the sinks that it
//!   tells ([`Baseline::start`]).

mod checker;
mod counters;
mod fact_queue;
#[cfg(test)]
mod tests;

pub use counters::BaselineStats;
pub use fact_queue::{MAX_BYTES, MAX_FACTS};

use crate::diff::{Comparison, Masks};
use crate::holes::Holes;
use crate::paths::Paths;
use crate::tape_player::{PlayerSettings, Repeat, TapePlayer};
use checker::Checker;
use counters::Counters;
use fact_queue::FactQueue;
use signalbox_engine::record::StoreError;
use signalbox_engine::{Fact, FactSink};
use signalbox_tape::TapeSource;
use std::sync::Arc;
use std::time::Duration;

/// How long a baseline that is dropped without [`Baseline::stop`] may take to compare what it has.
const DROP_WITHIN: Duration = Duration::from_secs(1);

/// What counts as a difference.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct BaselineSettings {
    /// Places that do not count: those of requests when the recorded call is looked for, those of answers when they are compared.
    pub ignored: Paths,
    /// How far two numbers may be apart; see [`Comparison::tolerance`].
    pub tolerance: f64,
}

/// Why traffic cannot be compared with a tape.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The tape cannot be read.
    #[error(transparent)]
    Tape(#[from] StoreError),
    /// The system gives no thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Compares calls with those of a tape. See the module.
#[derive(Debug)]
pub struct Baseline {
    tape: Arc<str>,
    holes: Holes,
    queue: Arc<FactQueue>,
    counters: Arc<Counters>,
}

impl Baseline {
    /// Begins to compare with this tape, and tells these sinks what differs.
    ///
    /// # Errors
    /// If the tape cannot be read, or no thread can be had.
    pub fn start(
        source: TapeSource,
        settings: BaselineSettings,
        told: Vec<Arc<dyn FactSink>>,
    ) -> Result<Self, BaselineError> {
        let tape: Arc<str> = source.info().id.as_str().into();
        let masks = Masks::of_rules(&source.info().redaction);
        // A live call may be made more often than it was recorded; the last recorded answer stands for the further ones.
        let repeat = Repeat::Last;
        let player = PlayerSettings { ignored: settings.ignored.clone(), repeat, ..PlayerSettings::default() };
        let player = TapePlayer::open(source, player)?;
        let mut ignored = settings.ignored;
        for path in checker::MINTED_IN_ANSWERS {
            // Too many paths of the user leave no room for it, which is at worst a difference too much.
            let _ = ignored.add(path);
        }
        let tolerance = settings.tolerance;
        let comparison = Comparison { ignored, tolerance, json_in_text: true, ..Comparison::default() };
        let counters = Arc::new(Counters::default());
        let queue = Arc::new(FactQueue::new(Arc::clone(&counters)));
        let holes = player.holes();
        let checker = Checker::new(Arc::clone(&tape), player, comparison, masks, Arc::clone(&counters));
        let work = Arc::clone(&queue);
        let run = move || {
            let _ended = work.ends_with_this();
            compare_all(&work, checker, &told);
        };
        std::thread::Builder::new().name("baseline".to_owned()).spawn(run).map_err(BaselineError::Thread)?;
        Ok(Self { tape, holes, queue, counters })
    }

    /// The name of the recorded tape.
    #[must_use]
    pub fn tape(&self) -> &str {
        &self.tape
    }

    /// What the part of the tape that was read first lacks.
    #[must_use]
    pub fn holes(&self) -> &Holes {
        &self.holes
    }

    /// The counts so far.
    #[must_use]
    pub fn stats(&self) -> BaselineStats {
        self.counters.read()
    }

    /// Takes no more facts, and waits at most this long until those it has are compared.
    pub fn stop(&self, within: Duration) {
        self.queue.close();
        self.queue.wait_for_end(within);
    }
}

impl FactSink for Baseline {
    fn wants_messages(&self) -> bool {
        true
    }

    fn fact(&self, fact: &Fact) {
        self.queue.push(std::slice::from_ref(fact));
    }

    fn facts(&self, facts: &[Fact]) {
        self.queue.push(facts);
    }
}

impl Drop for Baseline {
    fn drop(&mut self) {
        self.stop(DROP_WITHIN);
    }
}

fn compare_all(queue: &FactQueue, mut checker: Checker, told: &[Arc<dyn FactSink>]) {
    while let Some(batch) = queue.take() {
        for fact in batch.facts {
            if queue.is_given_up() {
                return;
            }
            if let Some(decision) = checker.take(&fact) {
                let decision = Fact::Decision(Arc::new(decision));
                told.iter().for_each(|sink| sink.fact(&decision));
            }
        }
        batch.missed.into_iter().for_each(|exchange| checker.missed(exchange));
    }
}
