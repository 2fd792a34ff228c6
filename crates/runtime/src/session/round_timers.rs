//! The timers of the rounds of questions that a session's client has yet to answer.

use signalbox_engine::ExchangeId;
use signalbox_engine::keys::KeyMap;
use tokio::task::AbortHandle;

/// One timer for each call with such a round; there are no more of them than calls in flight.
#[derive(Default)]
pub(super) struct RoundTimers(KeyMap<ExchangeId, AbortHandle>);

impl RoundTimers {
    /// A new round has begun, and with it another time.
    pub fn set(&mut self, exchange: ExchangeId, timer: AbortHandle) {
        if let Some(before) = self.0.insert(exchange, timer) {
            before.abort();
        }
    }

    /// Ends the timers of calls that are over.
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
