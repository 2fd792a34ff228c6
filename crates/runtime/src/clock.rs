//! The gateway's time: what moment it is, and the tick that asks everybody whether something has waited too long.
//!
//! It ticks ten times a second while anything can become late, and every two seconds while nothing goes on.

use crate::gateway::Gateway;
use crate::session_store::NOTE_EVERY;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// The current time by Tokio's clock, so that a test that pauses timers pauses this too.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

/// The time of day, in milliseconds since 1970, by which credentials expire.
#[must_use]
pub fn unix_millis() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// How often machines look for what has timed out.
const TICK: Duration = Duration::from_millis(100);
/// How often while nothing can time out, since every wake-up of an idle process costs power.
const CALM_TICK: Duration = Duration::from_secs(2);
/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// Slows the tick down while nothing goes on.
#[derive(Default)]
pub(crate) struct Pulse {
    dozing: AtomicBool,
    woken: Notify,
}

impl Pulse {
    /// Speeds the tick up, because something goes on. Reads one flag if it is fast already.
    pub fn quicken(&self) {
        if self.dozing.load(Ordering::Relaxed) && self.dozing.swap(false, Ordering::Relaxed) {
            self.woken.notify_one();
        }
    }

    /// Waits for the next tick.
    async fn next(&self, is_calm: impl Fn() -> bool) {
        if is_calm() {
            self.dozing.store(true, Ordering::SeqCst);
            // Checked again after the flag is set, so that anything later than this check wakes it.
            let over = is_calm() && tokio::time::timeout(CALM_TICK, self.woken.notified()).await.is_err();
            self.dozing.store(false, Ordering::Relaxed);
            if over {
                return;
            }
        }
        tokio::time::sleep(TICK).await;
    }
}

impl Gateway {
    /// True if nothing can time out and no fact waits to be told.
    fn is_calm(&self) -> bool {
        self.counters.in_flight.load(Ordering::Relaxed) <= 0
            && self.parks.is_empty()
            && self.backends().all().all(|backend| backend.is_calm())
            && self.fact_buffers.is_empty()
    }
}

/// Runs the tick. Never returns.
pub(crate) async fn run(gateway: Arc<Gateway>) {
    let (mut swept, mut noted) = (now(), now());
    loop {
        gateway.pulse.next(|| gateway.is_calm()).await;
        let now = now();
        for backend in gateway.backends().all() {
            backend.tick(now);
        }
        gateway.parks.tick();
        gateway.settle();
        if now.duration_since(noted) >= NOTE_EVERY.min(gateway.settings().session_timeout / 4) {
            gateway.sweep_sessions(std::mem::replace(&mut noted, now));
        }
        if now.duration_since(swept) >= SWEEP {
            swept = now;
            gateway.tasks.sweep();
            for session in gateway.sessions.all() {
                if session.idle() > gateway.settings().session_timeout {
                    tracing::info!(session = %session.key, "ended an idle session");
                    session.close();
                }
            }
        }
    }
}
