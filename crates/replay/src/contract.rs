//! Classifies changes by their effect on clients that rely on the previous version: definitions of tools, prompts and
//! resources, the server's description of itself, and results.
//!
//! A new version may accept more arguments than before, but not fewer. Its results may promise more than before, but
//! not less. A change that cannot be judged, such as one to an unknown schema keyword, counts as breaking and says so.
//!
//! ```
//! use serde_json::json;
//! use signalbox_replay::contract::{Tier, tools};
//!
//! let old = [json!({"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "number"}}}})];
//! let new = [json!({"name": "add", "inputSchema": {"type": "object", "properties": {"a": {"type": "integer"}}}})];
//! let changes = tools(&old, &new);
//! assert_eq!(changes[0].tier, Tier::Breaking);
//! assert_eq!(changes[0].pointer, "/inputSchema/properties/a/type");
//! ```

mod hints;
mod lists;
mod schema;
#[cfg(test)]
mod tests;

pub use lists::{capabilities, instructions, prompts, resources, server, templates, tools};
use serde_json::Value;

/// Reason given for a change whose effect is unknown.
pub const CANNOT_BE_JUDGED: &str = "cannot be judged";
/// Maximum number of changes reported for one list.
pub const MAX_CHANGES: usize = 10_000;

/// Severity of a change.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Tier {
    /// Clients of the old version can use the new one.
    Compatible,
    /// A result has a different value. The tool decides if that matters.
    Changed,
    /// Clients of the old version may fail.
    Breaking,
}

impl Tier {
    /// Returns the name used in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Changed => "changed",
            Self::Breaking => "breaking",
        }
    }
}

/// Change to something that a server offers.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    pub tier: Tier,
    /// Changed item: `tool add`, `prompt review`, `resource file:///a`, `server`, …
    pub subject: String,
    /// JSON pointer into the definition, empty for the whole of it.
    pub pointer: String,
    /// Description of the change, and the reason for its tier.
    pub reason: String,
    /// Value before the change.
    pub recorded: Option<Value>,
    /// Value after the change.
    pub new: Option<Value>,
}

/// Collects the changes to one definition.
struct Changes<'a> {
    subject: &'a str,
    place: Vec<String>,
    list: Vec<Change>,
}

impl<'a> Changes<'a> {
    fn of(subject: &'a str) -> Self {
        Self { subject, place: Vec::new(), list: Vec::new() }
    }

    fn add(&mut self, tier: Tier, reason: impl Into<String>, recorded: Option<&Value>, new: Option<&Value>) {
        if self.list.len() < MAX_CHANGES {
            self.list.push(Change {
                tier,
                subject: self.subject.to_owned(),
                pointer: crate::paths::pointer(&self.place),
                reason: reason.into(),
                recorded: recorded.cloned(),
                new: new.cloned(),
            });
        }
    }

    /// Runs `then` with `segment` appended to the current path.
    fn at(&mut self, segment: &str, then: impl FnOnce(&mut Self)) {
        self.place.push(segment.to_owned());
        then(self);
        self.place.pop();
    }
}

/// Returns `true` if two values compare as equal, or both are absent.
fn is_same(recorded: Option<&Value>, new: Option<&Value>) -> bool {
    match (recorded, new) {
        (Some(recorded), Some(new)) => crate::diff::Comparison::default().compare(recorded, new).is_same(),
        (recorded, new) => recorded.is_none() && new.is_none(),
    }
}
