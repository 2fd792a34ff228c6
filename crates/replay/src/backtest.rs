//! Evaluates a rule set against recorded messages: which ones it would now block, change, hold, answer or pass.
//!
//! The replay is open loop: recorded messages and times are fixed. The state of limiters, caches and mock lists is
//! recomputed message by message. Webhook responses, approval decisions and random numbers come from the tape. A
//! verdict that needs information the tape does not have is *unknown*, and so is everything that depends on it.
//!
//! ```
//! use signalbox_replay::backtest::{Backtest, Class};
//! use signalbox_engine::record::{TapeInfo, TapeKind};
//! use signalbox_rules::RuleSet;
//!
//! let rules = RuleSet::parse("rules.toml", "[[rules]]\nid = \"no\"\nthen = { block = \"no\" }").unwrap();
//! let mut backtest = Backtest::new(rules, 3);
//! let tape = TapeInfo::new("t".into(), TapeKind::Serve, String::new(), 0);
//! backtest.tape(&tape, &mut std::iter::empty()).unwrap();
//! assert_eq!(backtest.report().count(Class::Blocked), 0);
//! ```

mod class;
mod evaluator;
mod event;
mod event_reader;
mod image;
mod open_exchange;
mod order;
mod outcome;
mod progress;
mod report;
mod rule_pass;
mod tape_context;
#[cfg(test)]
mod tests;

pub use class::{Class, Reason};
pub use report::{BacktestExample, BacktestReport, Group, TapeNote};

use event_reader::EventReader;
use signalbox_engine::record::{Entry, StoreError, TapeInfo};
use signalbox_rules::RuleSet;

/// Evaluates a rule set against tapes.
#[derive(Debug)]
pub struct Backtest {
    set: RuleSet,
    report: BacktestReport,
}

impl Backtest {
    /// Creates a backtest that lists at most `examples` examples for each kind of difference.
    #[must_use]
    pub fn new(set: RuleSet, examples: usize) -> Self {
        Self { set, report: BacktestReport::new(examples) }
    }

    /// Evaluates every message of a tape. A tape is one run of a process, so limiters and caches start out empty.
    ///
    /// # Errors
    /// If the tape cannot be read to its end. Entries read before the error still count.
    pub fn tape(
        &mut self,
        info: &TapeInfo,
        entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>,
    ) -> Result<(), StoreError> {
        let mut intake = EventReader::new(&self.set, info, &mut self.report);
        let mut read = Ok(());
        for entry in entries {
            match entry {
                Ok(entry) => intake.entry(&entry),
                Err(error) => {
                    read = Err(error);
                    break;
                }
            }
        }
        intake.end();
        read
    }

    /// Returns the results so far.
    #[must_use]
    pub fn report(&self) -> &BacktestReport {
        &self.report
    }
}
