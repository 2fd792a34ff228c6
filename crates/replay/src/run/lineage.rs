//! The way of a value from the answer that had it first to the requests that want it back.

use super::pairing::Doubt;
use serde_json::{Value, json};
use signalbox_wire::printable;

/// The present counterpart of a value of a recorded answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Standing {
    /// The value itself.
    Kept,
    /// Another value.
    Replaced(String),
    /// No value is certain.
    Doubtful {
        /// The reason for which no value is certain.
        doubt: Doubt,
        /// True if the value names something by its form or by its member.
        is_id: bool,
    },
}

/// A value of a request that nothing certain stands for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unsettled {
    /// The value.
    pub value: String,
    /// The number of the call whose answer had it: the first, or one that has no answer in this run.
    pub call: u64,
    /// The doubt about it; none if that call has no answer in this run.
    pub doubt: Option<Doubt>,
    /// True if a read with the value cannot be sent either.
    pub is_id: bool,
}

/// The way of one value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lineage {
    /// The recorded value.
    pub value: String,
    /// The number of the call whose answer had it first.
    pub call: u64,
    /// Its place in that answer, with `*` for the places of items and lines.
    pub place: String,
    /// Its present counterpart; none if that call has no answer in this run.
    pub standing: Option<Standing>,
    /// The numbers of the first calls whose requests have it.
    pub uses: Vec<u64>,
}

impl Lineage {
    /// One line for people.
    #[must_use]
    pub fn to_text(&self) -> String {
        let uses: Vec<String> = self.uses.iter().map(u64::to_string).collect();
        let calls = if uses.len() == 1 { "call" } else { "calls" };
        let became = match &self.standing {
            Some(Standing::Kept) => "is kept".to_owned(),
            Some(Standing::Replaced(new)) => format!("is now {new}"),
            Some(Standing::Doubtful { doubt, .. }) => doubt.words().to_owned(),
            None => format!("is not known, because call {} was not sent or failed", self.call),
        };
        let line = format!(
            "{} of call {} ({}) {became}; wanted by {calls} {}",
            self.value,
            self.call,
            self.place,
            uses.join(", ")
        );
        printable::one_line(&line)
    }

    /// The same for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (standing, new, why) = match &self.standing {
            Some(Standing::Kept) => ("kept", Some(&self.value), None),
            Some(Standing::Replaced(new)) => ("replaced", Some(new), None),
            Some(Standing::Doubtful { doubt, .. }) => ("doubtful", None, Some(doubt.words())),
            None => ("unanswered", None, None),
        };
        json!({"value": self.value, "call": self.call, "place": self.place, "standing": standing, "new": new, "why": why,
               "wanted_by": self.uses})
    }
}
