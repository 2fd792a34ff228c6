//! Read access to a controlled run.

use super::{CallTranscript, ControlledCall, Injection, Preview, ReplayBreakpoint, ReplayControl, State};
use serde_json::Value;

impl ReplayControl {
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Returns the reason for the current state, unless the user paused the run.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// Returns all calls in sending order.
    #[must_use]
    pub fn calls(&self) -> &[ControlledCall] {
        &self.calls
    }

    /// Returns the index of the next call, or the number of calls at the end.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns the index of the call that awaits its answer.
    #[must_use]
    pub fn in_flight(&self) -> Option<usize> {
        self.in_flight
    }

    /// Returns the index of the call that completed last.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.last
    }

    /// Returns the speed relative to the recording, or `None` without pauses.
    #[must_use]
    pub fn speed(&self) -> Option<f64> {
        self.speed
    }

    /// Returns all breakpoints, oldest first.
    #[must_use]
    pub fn breakpoints(&self) -> &[ReplayBreakpoint] {
        &self.breakpoints
    }

    /// Returns the preview of the request at the position, once it is known.
    #[must_use]
    pub fn preview(&self) -> Option<&Preview> {
        self.preview.as_ref()
    }

    /// Returns the user's replacement for the request at the position.
    #[must_use]
    pub fn edit(&self) -> Option<&Value> {
        self.edit.as_ref()
    }

    /// Returns the messages of a call, if they are still stored.
    #[must_use]
    pub fn heard(&self, index: usize) -> Option<&CallTranscript> {
        self.hearing.of(index)
    }

    /// Returns the latest injected requests, oldest first.
    pub fn injected(&self) -> impl DoubleEndedIterator<Item = &Injection> {
        self.hearing.injected()
    }

    /// Returns `true` if a seek passed over the call and it was never sent.
    #[must_use]
    pub fn was_skipped(&self, index: usize) -> bool {
        index < self.position
            && self.in_flight != Some(index)
            && self.calls.get(index).is_some_and(|call| call.report.is_none())
    }
}
