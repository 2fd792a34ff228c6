//! What waits to be written: facts, and descriptions of backends and rules.

use signalbox_engine::Fact;
use signalbox_engine::record::{BackendSeen, RulesEntry};
use std::sync::Arc;
use std::time::Instant;

/// One input of the writer.
#[derive(Debug)]
pub(crate) enum RecorderInput {
    /// A fact.
    Fact(Fact),
    /// What a backend offers.
    Backend(Instant, Box<BackendSeen>),
    /// The rules that decide.
    Rules(Instant, Box<RulesEntry>),
    /// The backends of whose messages only the outline is recorded from now on.
    Withhold(Vec<Arc<str>>),
}

impl RecorderInput {
    /// About what it weighs, if it is not a fact.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Fact(_) => 0,
            Self::Backend(_, seen) => seen.parts.iter().map(|(_, bytes)| bytes.len()).sum(),
            Self::Rules(_, rules) => rules.text.len(),
            Self::Withhold(names) => names.iter().map(|name| name.len()).sum(),
        }
    }
}
