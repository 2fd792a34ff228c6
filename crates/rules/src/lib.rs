//! Rules about messages: read from TOML, judged over raw bytes, changed while messages pass.
//!
//! [`RuleSet`] is what was read and cannot be wrong, [`Rules`] is the interceptor that asks it about every message. What a
//! verdict needs from outside comes through [`Outside`] and is written into the rulings, so that it can be computed again.

mod act;
mod action;
mod cache_store;
mod candidate;
mod condition;
mod damage;
mod ends;
pub mod error;
mod facts;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod index;
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
mod played;
mod pointer;
mod reach;
mod read_action;
mod read_condition;
mod read_mock;
mod recorded;
mod rule;
mod rule_set;
mod rules;
mod template;
mod try_message;
mod value_test;
mod walk;
mod warnings;
pub mod webhook;

#[cfg(test)]
mod tests;

pub use error::{RuleError, Warning};
pub use facts::Hides;
pub use live::Overflows;
pub use names::KnownNames;
pub use outside::Outside;
pub use outside::{FileError, Files};
pub use played::Played;
pub use recorded::{Lack, Recorded, Retried, Use, answer_of};
pub use rule_set::{Retraced, RuleRow, RuleSet};
pub use rules::Rules;
pub use try_message::{Supposed, Tried, try_message, try_with};
