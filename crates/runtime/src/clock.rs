//! The clock of everything that waits, times out or is told of.

use std::time::Instant;

/// This moment by the clock that timers run on, so that a test which moves the timers moves this too.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
