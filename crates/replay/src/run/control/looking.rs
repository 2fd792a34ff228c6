//! What can be seen of a controlled run.

use super::{Breakpoint, ControlledCall, Heard, Injected, Preview, ReplayControl, State};
use serde_json::Value;

impl ReplayControl {
    /// What the run is doing.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Why it does not go on, where that is not because somebody paused it.
    #[must_use]
    pub fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// All calls, in the order in which they are sent.
    #[must_use]
    pub fn calls(&self) -> &[ControlledCall] {
        &self.calls
    }

    /// The index of the call that is sent next; the number of calls after the last.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The call that the server has not answered yet.
    #[must_use]
    pub fn in_flight(&self) -> Option<usize> {
        self.in_flight
    }

    /// The call that was over last.
    #[must_use]
    pub fn last(&self) -> Option<usize> {
        self.last
    }

    /// How many times as fast as recorded; none has no pauses.
    #[must_use]
    pub fn speed(&self) -> Option<f64> {
        self.speed
    }

    /// All breakpoints, the oldest first.
    #[must_use]
    pub fn breakpoints(&self) -> &[Breakpoint] {
        &self.breakpoints
    }

    /// The request at the position, as it would be sent now; none while that is not known.
    #[must_use]
    pub fn preview(&self) -> Option<&Preview> {
        self.preview.as_ref()
    }

    /// What somebody wants to be sent in place of the request at the position.
    #[must_use]
    pub fn edit(&self) -> Option<&Value> {
        self.edit.as_ref()
    }

    /// The messages of a call that was sent, if they are still kept.
    #[must_use]
    pub fn heard(&self, index: usize) -> Option<&Heard> {
        self.hearing.of(index)
    }

    /// What was injected lately, the oldest first.
    pub fn injected(&self) -> impl DoubleEndedIterator<Item = &Injected> {
        self.hearing.injected()
    }

    /// True if the call was passed over by a seek and never sent.
    #[must_use]
    pub fn was_skipped(&self, index: usize) -> bool {
        index < self.position
            && self.in_flight != Some(index)
            && self.calls.get(index).is_some_and(|call| call.report.is_none())
    }
}
