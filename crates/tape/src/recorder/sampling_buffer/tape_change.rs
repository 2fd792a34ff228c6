//! Transfer of held-back entries to the next tape, with the bodies that they refer to.

use super::SamplingBuffer;
use super::weight;
use crate::recorder::numbering::{EndedTape, way};
use crate::seal::SealSettings;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry};
use std::collections::HashSet;
use std::sync::Arc;

impl SamplingBuffer {
    /// Returns the time of the first entry that is held back.
    pub(crate) fn first_held(&self) -> Option<u64> {
        self.waiting.front().map(|entry| entry.at)
    }

    /// Returns true if an exchange began on this tape and does not end there.
    pub(crate) fn is_cut(&self, number: u64, ended: bool) -> bool {
        let is_open_there = match self.cases.get(&number) {
            Some(case) => case.written && !case.ended,
            None => self.open_gate && !ended,
        };
        is_open_there && !self.numbering.introductions.is_elsewhere(number)
    }

    /// Writes an entry at once, before all held-back entries.
    pub(crate) fn write(&mut self, entry: Entry, out: &mut Vec<Entry>) {
        self.numbering.emit(entry, out);
    }

    /// Begins the next tape, and returns the sessions of the entries that are held back. `before` is the id of the tape
    /// before it, and `known` are the exchanges that may have entries there.
    pub(crate) fn begin_tape(
        &mut self,
        seal: Option<&SealSettings>,
        before: &Arc<str>,
        known: impl Iterator<Item = u64>,
    ) -> HashSet<u64> {
        let (cases, open_gate) = (&self.cases, self.open_gate);
        let is_there = |number: &u64| cases.get(number).map_or(open_gate, |case| case.written);
        self.numbering.introductions.begin_tape(before, known.filter(is_there));
        for case in self.cases.values_mut() {
            (case.written, case.ended) = (false, false);
        }
        let ended = self.numbering.begin_tape(seal);
        self.take_over(&ended)
    }

    /// Completes bodies that were stored as differences from a body on the former tape.
    fn take_over(&mut self, tape: &EndedTape) -> HashSet<u64> {
        let mut sessions = HashSet::new();
        // Directions of exchanges with a complete held-back body, which later bodies refer to.
        let mut whole = HashSet::new();
        for entry in &mut self.waiting {
            sessions.extend(entry.session);
            let (Some(exchange), Content::Message(message)) = (entry.exchange, &mut entry.content) else { continue };
            match &message.body {
                Body::Whole(_) => drop(whole.insert((exchange, way(message.point)))),
                Body::Like { .. } if !whole.contains(&(exchange, way(message.point))) => {
                    make_whole(message, exchange, tape)
                }
                Body::Like { .. } | Body::Left => {}
            }
        }
        self.waiting_bytes = self.waiting.iter().map(weight).sum();
        sessions
    }
}

fn make_whole(message: &mut MessageEntry, exchange: u64, tape: &EndedTape) {
    message.body = tape.whole(exchange, message).map_or(Body::Left, Body::Whole);
}
