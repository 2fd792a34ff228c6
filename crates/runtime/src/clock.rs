//! Time of the gateway: the current time, and the interval of the tick that checks for timeouts.
//!
//! The tick runs ten times a second while anything can time out, and every two seconds while the gateway is idle.

use signalbox_wire::timestamp;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::Notify;

/// Returns the current time by Tokio's clock, so that a test that pauses timers pauses this too.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// Returns Unix time in milliseconds, the time by which credentials expire.
#[must_use]
pub fn unix_millis() -> u64 {
    timestamp::millis_of(SystemTime::now())
}

/// Interval of the tick.
const TICK: Duration = Duration::from_millis(100);
/// Interval of the tick while nothing can time out, since every wake-up of an idle process costs power.
const CALM_TICK: Duration = Duration::from_secs(2);

/// Adaptive tick: slows down while the gateway is idle.
#[derive(Default)]
pub(crate) struct Ticker {
    is_slow: AtomicBool,
    wake: Notify,
}

impl Ticker {
    /// Switches to the short interval because of activity. Costs one read of a flag if it is active already.
    pub fn speed_up(&self) {
        if self.is_slow.load(Ordering::Relaxed) && self.is_slow.swap(false, Ordering::Relaxed) {
            self.wake.notify_one();
        }
    }

    /// Waits for the next tick.
    pub async fn next(&self, is_calm: impl Fn() -> bool) {
        if is_calm() {
            self.is_slow.store(true, Ordering::SeqCst);
            // Checked again after the flag is set, so that any activity after this check wakes the tick.
            let over = is_calm() && tokio::time::timeout(CALM_TICK, self.wake.notified()).await.is_err();
            self.is_slow.store(false, Ordering::Relaxed);
            if over {
                return;
            }
        }
        tokio::time::sleep(TICK).await;
    }
}
