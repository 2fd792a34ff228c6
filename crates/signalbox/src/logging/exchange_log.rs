//! Exchanges in the log, by the numbers under which tapes and `watch` know them.

use signalbox_engine::fact::Outcome;
use signalbox_engine::{Fact, FactSink};
use tracing::Level;

/// Logs the end of every exchange: what went wrong at `info`, the rest at `debug`.
pub struct ExchangeLog;

impl FactSink for ExchangeLog {
    fn wants_messages(&self) -> bool {
        false
    }

    fn fact(&self, fact: &Fact) {
        let Fact::Finished(end) = fact else { return };
        let failed = !matches!(end.outcome, Outcome::Ok | Outcome::Cancelled);
        if failed && tracing::enabled!(Level::INFO) {
            tracing::info!(
                exchange = %end.exchange,
                session = %end.session,
                method = %end.method,
                subject = end.subject.as_deref(),
                backend = end.backend.as_deref(),
                outcome = end.outcome.label(),
                took = ?end.took,
                "a call did not end well"
            );
        } else if tracing::enabled!(Level::DEBUG) {
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
