//! Compares a recorded message with a new one. All comparisons in this program go through here.
//!
//! The order of an object's members never counts, and numbers are compared by value, as in [`crate::match_key`]. Arrays
//! are aligned, so an inserted item is one difference. Each difference is identified by a JSON pointer from the top of
//! the message. If [`Comparison::json_in_text`] is set and a text holds JSON, the pointer passes through the text with
//! the segment [`IN_TEXT`]: `/result/content/0/text/@json/items/3/id`. Texts have no members, so the segment is
//! unambiguous and works in ignored paths.
//!
//! Items carry their index in the recorded array, except added items, which carry their index in the new one.

pub mod align;
mod difference_text;
mod digest;
mod items;
pub mod masks;
#[cfg(test)]
mod tests;
mod walk;

use crate::contract::Tier;
use crate::paths::Paths;
use crate::value_patterns::ValuePatterns;
pub use difference_text::{DifferenceText, short};
pub use digest::Digest;
pub use masks::Masks;
use serde_json::Value;
use walk::Walk;

/// Pointer segment that leads from a text into the JSON it holds.
pub const IN_TEXT: &str = "@json";
/// Usual tolerance for measured numbers. A [`Comparison`] has no tolerance by default.
pub const USUAL_TOLERANCE: f64 = 0.01;
/// Maximum number of differences that one comparison lists. The rest are counted.
pub const MAX_DIFFERENCES: usize = 1000;

/// Rules of a comparison. By default, everything counts except `_meta`, ids, the order of members and the spelling of
/// numbers.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Comparison {
    /// Ignored places, including everything below them.
    pub ignored: Paths,
    /// Patterns under which values count as equal: both sides must match the same one.
    pub patterns: ValuePatterns,
    /// Places where the order of array items is ignored, including all arrays below them.
    pub unordered: Paths,
    /// Largest absolute difference between equal numbers, and the largest difference relative to the larger one.
    pub tolerance: f64,
    /// Compares texts as JSON if both sides hold an object or array.
    pub json_in_text: bool,
    pub meta: bool,
}

/// Message to compare, with the masks of its tape if parts were redacted.
#[derive(Clone, Copy, Debug)]
pub struct DiffSide<'a> {
    pub message: &'a Value,
    /// Masks of the redacted parts, or `None` if the message is whole.
    pub masks: Option<&'a Masks>,
}

impl<'a> From<&'a Value> for DiffSide<'a> {
    fn from(message: &'a Value) -> Self {
        Self { message, masks: None }
    }
}

/// Kind of difference at one place.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DifferenceKind {
    /// Different value of the same type.
    Changed,
    /// Value of a different type.
    Type,
    /// Recorded, but absent now.
    Missing,
    /// Present now, but not recorded.
    Added,
}

impl DifferenceKind {
    /// Returns the name used in reports.
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

/// Difference between two messages at one place.
#[derive(Clone, PartialEq, Debug)]
pub struct Difference {
    /// JSON pointer, empty for the whole document.
    pub pointer: String,
    pub kind: DifferenceKind,
    /// Set if the place is an array item rather than a member.
    pub item: bool,
    pub recorded: Option<Value>,
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
    /// Differences found, up to [`MAX_DIFFERENCES`].
    pub list: Vec<Difference>,
    /// Number of differences beyond those in `list`.
    pub more: u64,
    /// Number of places not compared because one side was redacted or encrypted.
    pub masked: u64,
    /// Highest tier of all differences.
    pub worst: Option<Tier>,
}

impl Differences {
    /// Returns `true` if there are no differences.
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
    #[must_use]
    pub fn compare(&self, recorded: &Value, new: &Value) -> Differences {
        let mut walk = Walk::new(self, [None, None]);
        walk.value(recorded, new);
        walk.found
    }

    /// Compares two JSON-RPC messages. Ignores their ids, and counts redacted places without comparing them.
    #[must_use]
    pub fn compare_messages(&self, recorded: DiffSide<'_>, new: DiffSide<'_>) -> Differences {
        let mut walk = Walk::new(self, [recorded.masks, new.masks]);
        walk.message(recorded.message, new.message);
        walk.found
    }

    /// Returns a digest that is equal for messages without differences. Numbers that are equal only within the
    /// tolerance yield different digests.
    #[must_use]
    pub fn digest(&self, message: &Value) -> Digest {
        digest::of_message(self, message)
    }

    /// Returns `true` if two numbers count as equal.
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

/// Parses the JSON object or array that a text holds.
pub(crate) fn json_in(text: &str) -> Option<Value> {
    let is_candidate = text.trim_start().starts_with(['{', '[']);
    is_candidate.then(|| serde_json::from_str(text).ok()).flatten()
}
