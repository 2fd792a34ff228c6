//! Calls whose results are recorded.

use super::FlowSource;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Call whose result is recorded.
struct RecordedCall {
    source: FlowSource,
    at: Instant,
    /// True if the table of fingerprints was too small for all of its result.
    is_cut: bool,
}

/// Calls whose results are recorded, with successive numbers. The oldest are forgotten.
pub(super) struct RecordedCalls {
    calls: VecDeque<RecordedCall>,
    /// Number of the first call.
    first: u32,
    capacity: usize,
    /// Number of calls that were forgotten, wholly or in part, before their time.
    pub(super) dropped: u64,
}

impl RecordedCalls {
    /// Creates a list that uses at most this much memory.
    pub(super) fn new(max_bytes: usize) -> Self {
        let capacity = (max_bytes / size_of::<RecordedCall>()).max(1);
        Self { calls: VecDeque::new(), first: 0, capacity, dropped: 0 }
    }

    /// Adds a call and returns its number.
    pub(super) fn push(&mut self, source: FlowSource, at: Instant) -> u32 {
        if self.calls.len() >= self.capacity
            && let Some(call) = self.pop()
        {
            self.dropped += u64::from(!call.is_cut);
        }
        let length = self.calls.len();
        if length == self.calls.capacity() {
            self.calls.reserve_exact(length.max(4).min(self.capacity - length));
        }
        self.calls.push_back(RecordedCall { source, at, is_cut: false });
        self.first + length as u32
    }

    /// Takes back the last call.
    pub(super) fn pop_last(&mut self) {
        self.calls.pop_back();
    }

    /// Forgets the calls that are older than `max_age`.
    pub(super) fn expire(&mut self, max_age: Duration, now: Instant) {
        while self.calls.front().is_some_and(|call| now.saturating_duration_since(call.at) > max_age) {
            self.pop();
        }
    }

    /// Returns the number of the first call that is not older than `max_age`.
    pub(super) fn first_since(&self, max_age: Duration, now: Instant) -> u32 {
        let is_old = |call: &RecordedCall| now.saturating_duration_since(call.at) > max_age;
        self.first + self.calls.partition_point(is_old) as u32
    }

    pub(super) fn get(&self, number: u32) -> Option<&FlowSource> {
        let index = number.checked_sub(self.first)?;
        self.calls.get(index as usize).map(|call| &call.source)
    }

    /// Notes that a call lost a part of its result.
    pub(super) fn mark_cut(&mut self, number: u32) {
        let index = number.checked_sub(self.first).map(|index| index as usize);
        if let Some(call) = index.and_then(|index| self.calls.get_mut(index)) {
            self.dropped += u64::from(!call.is_cut);
            call.is_cut = true;
        }
    }

    pub(super) const fn first(&self) -> u32 {
        self.first
    }

    /// Returns true if the numbers run out, after four billion calls.
    pub(super) fn is_out_of_numbers(&self) -> bool {
        self.first >= u32::MAX - self.capacity as u32 - 1
    }

    /// Returns the memory in use, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.calls.capacity() * size_of::<RecordedCall>()
    }

    fn pop(&mut self) -> Option<RecordedCall> {
        let call = self.calls.pop_front()?;
        self.first += 1;
        Some(call)
    }
}
