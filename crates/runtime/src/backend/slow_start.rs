//! A backend that was started again gets few calls at first, so that those which waited for it do not fall on it all at once.

use super::Backend;
use super::state::Inner;
use crate::clock;
use signalbox_engine::pacing;
use std::sync::Arc;

impl Backend {
    /// The home connection is ready again: the slow start begins.
    pub(super) fn begin_slowly(&self, inner: &mut Inner) {
        if inner.restarts > 0 {
            inner.ramp = Some(clock::now());
        }
    }

    /// True where a further call would be one too many for now.
    pub(super) fn holds_back(&self, inner: &Inner) -> bool {
        let Some(since) = inner.ramp else { return false };
        let most =
            pacing::slow_start_limit(clock::now().saturating_duration_since(since), self.spec().failing.slow_start);
        most.is_some_and(|most| inner.peers().iter().map(|peer| peer.in_flight()).sum::<usize>() >= most)
    }

    /// Lets go what a slow start held back, as much as may go by now.
    pub(super) fn go_on_slowly(self: &Arc<Self>) {
        {
            let mut inner = self.lock();
            let Some(since) = inner.ramp else { return };
            if pacing::slow_start_limit(clock::now().saturating_duration_since(since), self.spec().failing.slow_start)
                .is_none()
            {
                inner.ramp = None;
            }
            if inner.waiting.is_empty() {
                return;
            }
        }
        self.retry_waiting();
    }
}
