//! Rules tried on the past: which recorded messages they would now block, change, hold, answer or let through.
//!
//! Open loop: the recorded messages and times are fixed. What limiters, caches and lists of mock results remember is computed
//! anew, message by message; what webhooks and persons answered and which numbers were drawn comes from the tape. A verdict
//! that needs something the tape does not tell is *unknown*, and so is everything that would follow from it.
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

mod case;
mod class;
mod event;
mod image;
mod intake;
mod open;
mod order;
mod outcome;
mod progress;
mod report;
#[cfg(test)]
mod tests;
mod trial;
mod walk;

pub use class::{Class, Reason};
pub use report::{Example, Group, Report, TapeNote};

use intake::Intake;
use signalbox_engine::record::{Entry, StoreError, TapeInfo};
use signalbox_rules::RuleSet;

/// A set of rules that is tried on tapes.
#[derive(Debug)]
pub struct Backtest {
    set: RuleSet,
    report: Report,
}

impl Backtest {
    /// Tries these rules, and gives so many examples of each kind of difference.
    #[must_use]
    pub fn new(set: RuleSet, examples: usize) -> Self {
        Self { set, report: Report::new(examples) }
    }

    /// Judges everything on a tape. A tape is one run of a process, so limiters and caches are empty when it begins.
    ///
    /// # Errors
    /// If the tape cannot be read to its end. What was read before counts.
    pub fn tape(
        &mut self,
        info: &TapeInfo,
        entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>,
    ) -> Result<(), StoreError> {
        let mut intake = Intake::new(&self.set, info, &mut self.report);
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

    /// What came of it.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }
}
