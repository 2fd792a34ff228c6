//! What happened to a message, in a form that can be judged again.

use super::image::Image;
use super::walk::Walk;
use signalbox_engine::chain::Phase;
use signalbox_rules::outside::Turn;
use std::collections::VecDeque;

/// Something about an exchange that is judged in its turn.
#[derive(Debug)]
pub(super) struct Event {
    /// When, on the clock of the tape.
    pub at: u64,
    pub phase: Phase,
    pub kind: EventKind,
    /// What the rules decided then.
    pub walks: VecDeque<Walk>,
    /// The first use of shared state by it.
    pub turn: Option<Turn>,
}

#[derive(Debug)]
pub(super) enum EventKind {
    /// The request or the answer of the exchange reached the rules.
    Whole,
    /// A message in the middle of it did, or one of no exchange.
    Midway(Image),
    /// A message that waited went on.
    Resumed,
    /// Something was judged that cannot be judged again: a further round, or the result of a task.
    Beyond,
    /// The exchange is over.
    End,
}

impl Event {
    pub fn new(at: u64, phase: Phase, kind: EventKind, walks: VecDeque<Walk>) -> Self {
        let turn = walks.iter().filter_map(Walk::turn).min_by_key(|turn| turn.number);
        Self { at, phase, kind, walks, turn }
    }

    /// How many bytes of messages it holds.
    pub fn weight(&self) -> usize {
        match &self.kind {
            EventKind::Midway(image) => image.length(),
            _ => 0,
        }
    }
}
