//! Compares a recorded message with a new one: the one mechanism behind every answer to "is this still the same?".
//!
//! The order of an object's members never counts, and numbers are compared by value, as [`crate::match_key`] has it.
//! Arrays are aligned, so that an inserted item is one difference. Every difference is named by a JSON pointer from the
//! top of the message. Where a text holds JSON and [`Comparison::json_in_text`] is set, the pointer goes through the
//! text with the segment [`IN_TEXT`]: `/result/content/0/text/@json/items/3/id`. A text has no members, so this names
//! nothing else, and ignored paths can use it.
//!
//! Items are named by their index in the recorded array; only an added item has the index that it has in the new one.

pub mod align;
mod digest;
mod items;
pub mod masks;
mod shown;
#[cfg(test)]
mod tests;
mod walk;

use crate::contract::Tier;
use crate::paths::Paths;
use crate::value_patterns::ValuePatterns;
pub use digest::Digest;
pub use masks::Masks;
use serde_json::Value;
pub use shown::{Shown, short};
use walk::Walk;

/// The segment of a pointer that leads from a text into the JSON that it holds.
pub const IN_TEXT: &str = "@json";
/// The tolerance that is usual for measured numbers (SO-12). A [`Comparison`] has none unless it is told.
pub const USUAL_TOLERANCE: f64 = 0.01;
/// Most differences that one comparison lists; the rest are counted.
pub const MAX_DIFFERENCES: usize = 1000;

/// Decides what counts as a difference. By default everything does but `_meta`, ids, the order of members and
/// the spelling of numbers.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Comparison {
    /// Places that do not count, with all below them.
    pub ignored: Paths,
    /// Values that count as equal where the same pattern fits them.
    pub patterns: ValuePatterns,
    /// Places whose arrays may be in any order, with all arrays below them.
    pub unordered: Paths,
    /// Two numbers are the same if they differ by at most this much, or by at most this part of the larger one.
    pub tolerance: f64,
    /// Texts that are a JSON object or array on both sides are compared as such.
    pub json_in_text: bool,
    /// Compares `_meta` too.
    pub meta: bool,
}

/// A message, and how its tape hides secrets if some were taken out of this one.
#[derive(Clone, Copy, Debug)]
pub struct Side<'a> {
    /// The message.
    pub message: &'a Value,
    /// What was redacted; none if nothing was.
    pub masks: Option<&'a Masks>,
}

impl<'a> From<&'a Value> for Side<'a> {
    fn from(message: &'a Value) -> Self {
        Self { message, masks: None }
    }
}

/// How a place differs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DifferenceKind {
    /// Another value of the same type.
    Changed,
    /// A value of another type.
    Type,
    /// It was recorded and is not there any more.
    Missing,
    /// It was not recorded.
    Added,
}

impl DifferenceKind {
    /// The word for it in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Changed => "changed",
            Self::Type => "type",
            Self::Missing => "missing",
            Self::Added => "added",
        }
    }
}

/// One place at which two messages differ.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// Where, as a JSON pointer; empty for the whole document.
    pub pointer: String,
    /// How.
    pub kind: DifferenceKind,
    /// True if the place is an item of an array rather than a member.
    pub item: bool,
    /// What was recorded.
    pub recorded: Option<Value>,
    /// What there is now.
    pub new: Option<Value>,
}

impl Difference {
    /// Rates the difference for a client that relied on the recorded message: a new member is harmless, a missing one
    /// or one of another type breaks the client, and another value or number of items is data.
    #[must_use]
    pub fn tier(&self) -> Tier {
        match self.kind {
            DifferenceKind::Changed => Tier::Changed,
            DifferenceKind::Missing | DifferenceKind::Added if self.item => Tier::Changed,
            DifferenceKind::Added => Tier::Compatible,
            DifferenceKind::Missing | DifferenceKind::Type => Tier::Breaking,
        }
    }
}

/// All differences between two messages.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Differences {
    /// The first [`MAX_DIFFERENCES`] of them.
    pub list: Vec<Difference>,
    /// How many more there are.
    pub more: u64,
    /// Places that could not be compared since one side was redacted or encrypted.
    pub masked: u64,
    /// The worst tier of all of them.
    pub worst: Option<Tier>,
}

impl Differences {
    /// True if there are none.
    #[must_use]
    pub fn is_same(&self) -> bool {
        self.list.is_empty()
    }

    fn add(&mut self, difference: Difference) {
        self.worst = self.worst.max(Some(difference.tier()));
        if self.list.len() < MAX_DIFFERENCES {
            self.list.push(difference);
        } else {
            self.more += 1;
        }
    }
}

impl Comparison {
    /// Compares two documents.
    #[must_use]
    pub fn compare(&self, recorded: &Value, new: &Value) -> Differences {
        let mut walk = Walk::new(self, [None, None]);
        walk.value(recorded, new);
        walk.found
    }

    /// Compares two JSON-RPC messages. Their ids do not count, and redacted places are counted, not compared.
    #[must_use]
    pub fn compare_messages(&self, recorded: Side<'_>, new: Side<'_>) -> Differences {
        let mut walk = Walk::new(self, [recorded.masks, new.masks]);
        walk.message(recorded.message, new.message);
        walk.found
    }

    /// A digest that is equal for messages between which there is no difference, unless only the
    /// tolerance makes them equal.
    #[must_use]
    pub fn digest(&self, message: &Value) -> Digest {
        digest::of_message(self, message)
    }

    /// True if two numbers count as one.
    #[must_use]
    pub fn same_number(&self, one: &serde_json::Number, other: &serde_json::Number) -> bool {
        let exact = || digest::canonical_number(one) == digest::canonical_number(other);
        match (one.as_f64(), other.as_f64()) {
            (Some(one), Some(other)) if self.tolerance > 0.0 => {
                (one - other).abs() <= self.tolerance * one.abs().max(other.abs()).max(1.0) || exact()
            }
            _ => exact(),
        }
    }

    fn skips(&self, name: &str) -> bool {
        !self.meta && name == "_meta"
    }
}

/// The JSON object or array that a text holds.
pub(crate) fn json_in(text: &str) -> Option<Value> {
    let is_candidate = text.trim_start().starts_with(['{', '[']);
    is_candidate.then(|| serde_json::from_str(text).ok()).flatten()
}
