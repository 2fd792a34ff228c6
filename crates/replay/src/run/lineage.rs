//! Traces values from the answer that introduced them to the requests that use them.

use super::pairing::Doubt;
use serde_json::{Value, json};
use signalbox_wire::printable;

/// Present counterpart of a value from a recorded answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValueStanding {
    /// Same value as recorded.
    Kept,
    /// Different value, which replaces the recorded one.
    Replaced(String),
    Doubtful {
        /// Reason for the doubt.
        doubt: Doubt,
        /// Set if the value looks like an id, by its form or its member's name.
        is_id: bool,
    },
}

/// Value of a request without a certain counterpart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UnresolvedValue {
    pub value: String,
    /// Number of the call whose answer introduced it, or of one without an answer in this run.
    pub call: u64,
    /// Doubt about the counterpart, or `None` if that call has no answer in this run.
    pub doubt: Option<Doubt>,
    /// Set if even a read must not be sent with the value.
    pub is_id: bool,
}

/// Trace of one value.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lineage {
    pub value: String,
    /// Number of the call whose answer introduced it.
    pub call: u64,
    /// Place in that answer, with `*` for items and lines.
    pub place: String,
    /// Present counterpart, or `None` if that call has no answer in this run.
    pub standing: Option<ValueStanding>,
    /// Numbers of the first calls that use it.
    pub uses: Vec<u64>,
}

impl Lineage {
    /// Formats the trace as one line.
    #[must_use]
    pub fn to_text(&self) -> String {
        let uses: Vec<String> = self.uses.iter().map(u64::to_string).collect();
        let calls = if uses.len() == 1 { "call" } else { "calls" };
        let became = match &self.standing {
            Some(ValueStanding::Kept) => "is kept".to_owned(),
            Some(ValueStanding::Replaced(new)) => format!("is now {new}"),
            Some(ValueStanding::Doubtful { doubt, .. }) => doubt.words().to_owned(),
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

    /// Returns the trace as JSON.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (standing, new, why) = match &self.standing {
            Some(ValueStanding::Kept) => ("kept", Some(&self.value), None),
            Some(ValueStanding::Replaced(new)) => ("replaced", Some(new), None),
            Some(ValueStanding::Doubtful { doubt, .. }) => ("doubtful", None, Some(doubt.words())),
            None => ("unanswered", None, None),
        };
        json!({"value": self.value, "call": self.call, "place": self.place, "standing": standing, "new": new, "why": why,
               "wanted_by": self.uses})
    }
}
