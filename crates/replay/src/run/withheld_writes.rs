//! Tracks writes that were not sent, to explain later differences.

use super::answer_values::AnswerValues;
use super::rebinding::Rebinding;
use crate::diff::Differences;
use crate::paths::Paths;
use crate::recorded_call::RecordedCall;
use std::collections::HashSet;

/// Maximum number of tracked writes.
const MAX_WRITES: usize = 10_000;

/// Writes of a run that were not sent.
#[derive(Debug, Default)]
pub(super) struct WithheldWrites(Vec<WithheldWrite>);

#[derive(Debug)]
struct WithheldWrite {
    call: u64,
    seq: u64,
    /// Values that identify the objects of the write.
    values: HashSet<String>,
}

impl WithheldWrites {
    pub(super) fn add(&mut self, call: &RecordedCall, rebinding: &Rebinding) {
        if self.0.len() < MAX_WRITES && self.0.iter().all(|write| write.call != call.number) {
            self.0.push(WithheldWrite { call: call.number, seq: call.seq, values: rebinding.values_of(call) });
        }
    }

    /// Finds an earlier write that explains a call's differences: the call asks for an object of the write, or a
    /// difference names one.
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
