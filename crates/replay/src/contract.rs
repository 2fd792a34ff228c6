//! What a change means to clients that relied on what was before: the definitions of tools, prompts and resources, what a server
//! says of itself, and results.
//!
//! Arguments may be accepted more widely than before, never more narrowly; results may promise more than before, never less.
//! What cannot be judged, such as a changed keyword of a schema that this program does not know, counts as breaking and says so.
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

/// The reason of changes about which nothing is known.
pub const CANNOT_BE_JUDGED: &str = "cannot be judged";
/// Most changes of one list that are told.
pub const MAX_CHANGES: usize = 10_000;

/// How bad a change is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Tier {
    /// Whoever relied on the old version can rely on the new one.
    Compatible,
    /// A result has another value: whether that matters depends on the tool.
    Changed,
    /// Somebody who relied on the old version may fail now.
    Breaking,
}

impl Tier {
    /// The word for it in reports.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Compatible => "compatible",
            Self::Changed => "changed",
            Self::Breaking => "breaking",
        }
    }
}

/// One change of what a server offers.
#[derive(Clone, PartialEq, Debug)]
pub struct Change {
    /// How bad it is.
    pub tier: Tier,
    /// What changed: `tool add`, `prompt review`, `resource file:///a`, `server`, …
    pub subject: String,
    /// Where in its definition, as a JSON pointer; empty for the whole.
    pub pointer: String,
    /// What happened there, and why it is of this tier.
    pub reason: String,
    /// What was there.
    pub recorded: Option<Value>,
    /// What is there now.
    pub new: Option<Value>,
}

/// Gathers the changes of one definition.
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

    /// Does something one level deeper.
    fn at(&mut self, segment: &str, then: impl FnOnce(&mut Self)) {
        self.place.push(segment.to_owned());
        then(self);
        self.place.pop();
    }
}

/// True if two values are the same to whoever reads them, absent ones included.
fn is_same(recorded: Option<&Value>, new: Option<&Value>) -> bool {
    match (recorded, new) {
        (Some(recorded), Some(new)) => crate::diff::Comparison::default().compare(recorded, new).is_same(),
        (recorded, new) => recorded.is_none() && new.is_none(),
    }
}
