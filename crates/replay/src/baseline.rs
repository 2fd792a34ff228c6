//! Compares live traffic with a recorded tape, the baseline.
//!
//! ```text
//! workers ──facts──► queue (bounded) ──► thread `baseline`: finds the recorded call, compares the answers
//!                      │ full                       │
//!                      ▼                            ├─ counts: same, differs, unknown
//!                   dropped                         └─ a decision by `baseline` for each call that is not the same
//! ```
//!
//! A [`Baseline`] is a [`FactSink`], not an interceptor: the client has its answer before the comparison runs.
//!
//! Invariants:
//! - sending a fact never blocks, and no message is changed or delayed;
//! - every call that is compared or skipped is counted exactly once;
//! - a decision is emitted after the facts that it refers to, so the gateway must list the baseline after the sinks
//!   that receive its decisions ([`Baseline::start`]).

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

/// Time that a drop without [`Baseline::stop`] waits for the remaining comparisons.
const DROP_WITHIN: Duration = Duration::from_secs(1);

/// Settings that decide what counts as a difference.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct BaselineSettings {
    /// Paths left out of the comparison. They apply to requests, to find the recorded call, and to answers.
    pub ignored: Paths,
    /// Largest difference between equal numbers; see [`Comparison::tolerance`].
    pub tolerance: f64,
}

/// Reasons why a baseline cannot start.
#[derive(Debug, thiserror::Error)]
pub enum BaselineError {
    /// The tape cannot be read.
    #[error(transparent)]
    Tape(#[from] StoreError),
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(std::io::Error),
}

/// Compares live calls with those of a tape. See the [module](self).
#[derive(Debug)]
pub struct Baseline {
    tape: Arc<str>,
    holes: Holes,
    queue: Arc<FactQueue>,
    counters: Arc<Counters>,
}

impl Baseline {
    /// Starts the comparison thread. Differences go to the sinks in `sinks` as decisions.
    ///
    /// # Errors
    /// If the tape cannot be read, or the thread cannot be started.
    pub fn start(
        source: TapeSource,
        settings: BaselineSettings,
        sinks: Vec<Arc<dyn FactSink>>,
    ) -> Result<Self, BaselineError> {
        let tape: Arc<str> = source.info().id.as_str().into();
        let masks = Masks::of_rules(&source.info().redaction);
        // A live call may occur more often than it was recorded. Compare the surplus with the last recorded answer.
        let repeat = Repeat::Last;
        let player = PlayerSettings { ignored: settings.ignored.clone(), repeat, ..PlayerSettings::default() };
        let player = TapePlayer::open(source, player)?;
        let mut ignored = settings.ignored;
        for path in checker::MINTED_IN_ANSWERS {
            // Fails if the user's paths fill the set. At worst, that adds a false difference.
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
            let _ended = work.end_guard();
            compare_all(&work, checker, &sinks);
        };
        std::thread::Builder::new().name("baseline".to_owned()).spawn(run).map_err(BaselineError::Thread)?;
        Ok(Self { tape, holes, queue, counters })
    }

    /// Returns the name of the recorded tape.
    #[must_use]
    pub fn tape(&self) -> &str {
        &self.tape
    }

    /// Returns the gaps found so far in the part of the tape that has been read.
    #[must_use]
    pub fn holes(&self) -> &Holes {
        &self.holes
    }

    /// Returns the counts so far.
    #[must_use]
    pub fn stats(&self) -> BaselineStats {
        self.counters.read()
    }

    /// Stops accepting facts, then waits up to `within` until the queued ones are compared.
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

fn compare_all(queue: &FactQueue, mut checker: Checker, sinks: &[Arc<dyn FactSink>]) {
    while let Some(batch) = queue.take() {
        for fact in batch.facts {
            if queue.is_given_up() {
                return;
            }
            if let Some(decision) = checker.take(&fact) {
                let decision = Fact::Decision(Arc::new(decision));
                sinks.iter().for_each(|sink| sink.fact(&decision));
            }
        }
        batch.missed.into_iter().for_each(|exchange| checker.drop_exchange(exchange));
    }
}
