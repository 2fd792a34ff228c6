//! A backend that was started again gets few calls at first, so that those which waited for it do not fall on it all at once.

use super::Backend;
use super::state::BackendState;
use crate::clock;
use std::sync::Arc;

impl Backend {
    /// True where a further call would be one too many for now.
    pub(super) fn holds_back(&self, state: &BackendState) -> bool {
        if !state.condition.was_restarted_lately() {
            return false;
        }
        let most = state.condition.most_calls(clock::now(), self.spec().failing.slow_start);
        most.is_some_and(|most| state.connections.all().iter().map(|peer| peer.in_flight()).sum::<usize>() >= most)
    }

    /// Lets go what a slow start held back, as much as may go by now.
    pub(super) fn go_on_slowly(self: &Arc<Self>) {
        {
            let mut state = self.lock();
            if !state.condition.was_restarted_lately() {
                return;
            }
            state.condition.end_slow_start(clock::now(), self.spec().failing.slow_start);
            if state.waiting.is_empty() {
                return;
            }
        }
        self.retry_waiting();
    }
}
