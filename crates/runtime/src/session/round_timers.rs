//! Timers of the questions that a session asks its client in rounds.

use signalbox_engine::ExchangeId;
use signalbox_engine::keys::KeyMap;
use tokio::task::AbortHandle;

/// Timers of unanswered questions to the client, at most one per call in flight.
#[derive(Default)]
pub(super) struct RoundTimers(KeyMap<ExchangeId, AbortHandle>);

impl RoundTimers {
    /// Sets the timer of a new round and cancels the timer of the previous one.
    pub fn set(&mut self, exchange: ExchangeId, timer: AbortHandle) {
        if let Some(before) = self.0.insert(exchange, timer) {
            before.abort();
        }
    }

    /// Cancels the timers of calls that have ended.
    pub fn retain(&mut self, in_flight: impl Fn(ExchangeId) -> bool) {
        self.0.retain(|exchange, timer| {
            let stays = in_flight(*exchange);
            if !stays {
                timer.abort();
            }
            stays
        });
    }
}
