//! Breakpoints of a controlled run.

use crate::recorded_call::RecordedCall;
use signalbox_wire::glob::{Wildcards, fits};

/// Condition of a breakpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum When {
    /// Before this call, counted from 1.
    Call(usize),
    /// Before a call whose method matches this pattern.
    Method(String),
    /// Before a call whose tool, prompt or URI matches this pattern.
    Tool(String),
    /// After a call that fails: its answer differs, is too slow or does not come.
    Difference,
}

impl When {
    /// Returns `true` if the run must stop before this call.
    #[must_use]
    pub fn is_at(&self, place: usize, call: &RecordedCall) -> bool {
        let matches = |pattern: &str, name: &str| fits(pattern, name, Wildcards::StarAndQuestion);
        match self {
            Self::Call(wanted) => *wanted == place,
            Self::Method(pattern) => matches(pattern, &call.method),
            Self::Tool(pattern) => call.subject.as_deref().is_some_and(|subject| matches(pattern, subject)),
            Self::Difference => false,
        }
    }

    /// Describes the condition for the user.
    #[must_use]
    pub fn words(&self) -> String {
        match self {
            Self::Call(place) => format!("call {place}"),
            Self::Method(pattern) => format!("method {pattern}"),
            Self::Tool(pattern) => format!("tool {pattern}"),
            Self::Difference => "a difference".to_owned(),
        }
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplayBreakpoint {
    pub id: u64,
    pub when: When,
    /// Number of times it stopped the run.
    pub hits: u64,
}

impl ReplayBreakpoint {
    /// Counts a hit and returns the reason to show.
    pub(super) fn hit(&mut self) -> String {
        self.hits += 1;
        format!("breakpoint {}: {}", self.id, self.when.words())
    }
}
