//! Inputs of the writer: facts, and descriptions of backends and rules.

use super::message_arena::uncharged;
use crate::redact::Redaction;
use signalbox_engine::Fact;
use signalbox_engine::record::{BackendOffer, RulesEntry};
use std::sync::Arc;
use std::time::Instant;

/// An input in the queue, with the weight it was charged.
#[derive(Debug)]
pub(crate) struct QueuedInput {
    pub(crate) input: RecorderInput,
    pub(crate) weight: usize,
    /// Result of the redaction of its message, if it was done ahead.
    pub(crate) redacted: Option<Redaction>,
}

impl QueuedInput {
    pub(crate) fn new(input: RecorderInput, weight: usize) -> Self {
        Self { input, weight, redacted: None }
    }
}

/// One input of the writer.
#[derive(Debug)]
pub(crate) enum RecorderInput {
    Fact(Fact),
    /// The current offer of a backend.
    Backend(Instant, Box<BackendOffer>),
    /// The rules in force.
    Rules(Instant, Box<RulesEntry>),
    /// The backends of whose messages only the outline is recorded from now on.
    Withhold(Instant, Vec<Arc<str>>),
}

impl RecorderInput {
    /// Returns the time at which it happened.
    pub(crate) fn at(&self) -> Instant {
        match self {
            Self::Fact(fact) => fact.at(),
            Self::Backend(at, _) | Self::Rules(at, _) | Self::Withhold(at, _) => *at,
        }
    }

    /// Replaces the message by a copy that is not charged to its sender.
    pub(crate) fn own_message(&mut self) {
        if let Self::Fact(Fact::Message(message)) = self {
            message.bytes = uncharged(&message.bytes);
        }
    }

    /// Returns the approximate weight of an input other than a fact.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Fact(_) => 0,
            Self::Backend(_, seen) => seen.parts.iter().map(|(_, bytes)| bytes.len()).sum(),
            Self::Rules(_, rules) => rules.text.len(),
            Self::Withhold(_, names) => names.iter().map(|name| name.len()).sum(),
        }
    }
}
