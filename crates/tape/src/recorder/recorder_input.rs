//! What waits to be written: facts, and descriptions of backends and rules.

use super::message_arena::uncharged;
use crate::redact::Redacted;
use signalbox_engine::Fact;
use signalbox_engine::record::{BackendSeen, RulesEntry};
use std::sync::Arc;
use std::time::Instant;

/// An input in the queue, and what it was charged there.
#[derive(Debug)]
pub(crate) struct QueuedInput {
    pub(crate) input: RecorderInput,
    pub(crate) weight: usize,
    /// What may be kept of its message, if that is known before its turn.
    pub(crate) redacted: Option<Redacted>,
}

impl QueuedInput {
    pub(crate) fn new(input: RecorderInput, weight: usize) -> Self {
        Self { input, weight, redacted: None }
    }
}

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
    Withhold(Instant, Vec<Arc<str>>),
}

impl RecorderInput {
    /// When it happened.
    pub(crate) fn at(&self) -> Instant {
        match self {
            Self::Fact(fact) => fact.at(),
            Self::Backend(at, _) | Self::Rules(at, _) | Self::Withhold(at, _) => *at,
        }
    }

    /// Gives it a message that is charged to nobody.
    pub(crate) fn own_message(&mut self) {
        if let Self::Fact(Fact::Message(message)) = self {
            message.bytes = uncharged(&message.bytes);
        }
    }

    /// About what it weighs, if it is not a fact.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Fact(_) => 0,
            Self::Backend(_, seen) => seen.parts.iter().map(|(_, bytes)| bytes.len()).sum(),
            Self::Rules(_, rules) => rules.text.len(),
            Self::Withhold(_, names) => names.iter().map(|name| name.len()).sum(),
        }
    }
}
