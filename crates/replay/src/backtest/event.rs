//! Events of a tape that can be evaluated again.

use super::image::Image;
use super::rule_pass::RulePass;
use signalbox_engine::chain::Phase;
use signalbox_rules::outside::Turn;
use std::collections::VecDeque;

/// Event of an exchange.
#[derive(Debug)]
pub(super) struct Event {
    /// Time on the tape's clock.
    pub at: u64,
    pub phase: Phase,
    pub kind: EventKind,
    /// Recorded decisions of the rules.
    pub walks: VecDeque<RulePass>,
    /// First use of shared state.
    pub turn: Option<Turn>,
}

#[derive(Debug)]
pub(super) enum EventKind {
    /// Request or answer of the exchange reached the rules.
    Whole,
    /// Message within the exchange, or outside of any exchange, reached the rules.
    Midway(Image),
    /// Held message that continued.
    Resumed,
    /// Message that cannot be evaluated again: a follow-up round, or the result of a task.
    Beyond,
    /// End of the exchange.
    End,
}

impl Event {
    pub fn new(at: u64, phase: Phase, kind: EventKind, walks: VecDeque<RulePass>) -> Self {
        let turn = walks.iter().filter_map(RulePass::turn).min_by_key(|turn| turn.number);
        Self { at, phase, kind, walks, turn }
    }

    /// Returns the size of the stored message in bytes.
    pub fn weight(&self) -> usize {
        match &self.kind {
            EventKind::Midway(image) => image.length(),
            _ => 0,
        }
    }
}
