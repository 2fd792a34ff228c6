//! Writes that were not sent, and the later calls that differ because of that.

use super::answer_values::AnswerValues;
use super::rebinding::Rebinding;
use crate::diff::Differences;
use crate::paths::Paths;
use crate::recorded_call::RecordedCall;
use std::collections::HashSet;

/// Most writes that are remembered.
const MOST: usize = 10_000;

/// The writes of a run that were not sent.
#[derive(Debug, Default)]
pub(super) struct WithheldWrites(Vec<WithheldWrite>);

#[derive(Debug)]
struct WithheldWrite {
    call: u64,
    seq: u64,
    /// Values by which the write is known.
    values: HashSet<String>,
}

impl WithheldWrites {
    pub(super) fn add(&mut self, call: &RecordedCall, rebinding: &Rebinding) {
        if self.0.len() < MOST && self.0.iter().all(|write| write.call != call.number) {
            self.0.push(WithheldWrite { call: call.number, seq: call.seq, values: rebinding.values_of(call) });
        }
    }

    /// The write before a call that explains its differences: the call asks for what the write is about, or
    /// a difference names it.
    pub(super) fn behind(&self, call: &RecordedCall, differences: &Differences, rebinding: &Rebinding) -> Option<u64> {
        let mut before = self.0.iter().filter(|write| write.seq < call.seq).rev().peekable();
        before.peek()?;
        let asked = rebinding.values_of(call);
        let both = differences.list.iter().flat_map(|difference| [&difference.recorded, &difference.new]);
        let named: HashSet<String> = both
            .flatten()
            .flat_map(|value| AnswerValues::of(value, &Paths::default()).values)
            .map(|value| value.value)
            .collect();
        let explains =
            |write: &&WithheldWrite| write.values.iter().any(|value| asked.contains(value) || named.contains(value));
        before.find(explains).map(|write| write.call)
    }
}
