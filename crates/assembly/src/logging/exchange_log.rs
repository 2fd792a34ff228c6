//! Exchanges in the log, by the numbers under which tapes and `watch` know them.

use signalbox_engine::{Fact, FactSink};
use tracing::Level;

/// Logs the end of every exchange at `debug`.
pub struct ExchangeLog;

impl FactSink for ExchangeLog {
    fn wants_messages(&self) -> bool {
        false
    }

    fn fact(&self, fact: &Fact) {
        let Fact::Finished(end) = fact else { return };
        if tracing::enabled!(Level::DEBUG) {
            tracing::debug!(
                exchange = %end.exchange,
                session = %end.session,
                method = %end.method,
                subject = end.subject.as_deref(),
                backend = end.backend.as_deref(),
                outcome = end.outcome.label(),
                took = ?end.took,
                "a call ended"
            );
        }
    }
}
