//! The tick: checks for timeouts, flushes facts, and removes idle sessions.

use super::Gateway;
use crate::clock::now;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Interval of the check for idle sessions.
const SWEEP: Duration = Duration::from_secs(5);
/// Interval at which the stored sessions in use are touched.
const NOTE_EVERY: Duration = Duration::from_secs(60);

impl Gateway {
    /// Returns true if nothing can time out and no fact is buffered.
    fn is_calm(&self) -> bool {
        self.counters.in_flight.load(Ordering::Relaxed) <= 0
            && self.parks.is_empty()
            && self.backends().all().all(|backend| backend.is_calm())
            && self.fact_buffers.is_empty()
    }

    /// Runs the tick. Never returns.
    pub(super) async fn run_tick(self: Arc<Self>) {
        let (mut swept, mut noted) = (now(), now());
        loop {
            self.ticker.next(|| self.is_calm()).await;
            let now = now();
            for backend in self.backends().all() {
                backend.tick(now);
            }
            self.parks.tick();
            self.settle();
            if now.duration_since(noted) >= NOTE_EVERY.min(self.settings().session_timeout / 4) {
                self.sweep_sessions(std::mem::replace(&mut noted, now));
            }
            if now.duration_since(swept) >= SWEEP {
                swept = now;
                self.tasks.sweep();
                for session in self.sessions.all() {
                    if session.idle() > self.settings().session_timeout {
                        tracing::info!(session = %session.key, "ended an idle session");
                        session.close();
                    }
                }
            }
        }
    }
}
