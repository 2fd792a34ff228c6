//! Rules for messages: read from TOML, evaluated on raw bytes, and able to change messages in flight.
//!
//! [`RuleSet`] is a validated set of rules. [`RuleInterceptor`] is the interceptor that evaluates it on every message.
//! A verdict gets its external inputs through [`Outside`] and records them in the rulings, so that it can be
//! recomputed.

mod act;
mod action;
mod cache_store;
mod candidate;
mod condition;
mod counted_calls;
mod damage;
mod end_cache;
pub mod error;
mod facts;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod index;
mod interceptor;
mod limiter;
pub mod limits;
mod live;
mod memory;
mod names;
mod node;
mod open_ruling;
mod outcomes;
pub mod outside;
mod patch;
mod phases;
mod pointer;
mod reach;
mod read_action;
mod read_condition;
mod read_mock;
mod recorded_inputs;
mod recorded_verdict;
mod rule;
mod rule_set;
mod template;
mod try_message;
mod value_test;
mod walk;
mod warnings;
pub mod webhook;

#[cfg(test)]
mod tests;

pub use error::{RuleError, RuleWarning};
pub use facts::Hides;
pub use interceptor::RuleInterceptor;
pub use live::Overflows;
pub use names::KnownNames;
pub use outside::Outside;
pub use outside::{Files, OutsideFileError};
pub use recorded_inputs::RecordedInputs;
pub use recorded_verdict::{Lack, RecordedContext, RecordedVerdict, StateUse, answer_of};
pub use rule_set::{RuleRow, RuleSet, RuleTrace};
pub use try_message::{AssumedContext, TrialOutcome, try_message, try_with};
