//! On whose account something passes on a connection to a backend.

use crate::gateway::Gateway;
use crate::session::Session;
use signalbox_engine::back::Account;
use signalbox_engine::{ExchangeId, Fact};
use std::sync::Arc;

/// Whose message it is. What is nobody's is the gateway's own.
#[derive(Clone, Default)]
pub struct Party(Option<(Arc<Session>, Option<ExchangeId>)>);

impl Party {
    /// The gateway itself.
    pub const GATEWAY: Self = Self(None);

    /// A session, and one of its exchanges where it belongs to one.
    #[must_use]
    pub fn of(session: &Arc<Session>, exchange: Option<ExchangeId>) -> Self {
        Self(Some((Arc::clone(session), exchange)))
    }

    /// As it stands in facts. `gateway` is asked for its own.
    #[must_use]
    pub fn account(&self, gateway: &Gateway) -> Account {
        match &self.0 {
            Some((session, exchange)) => {
                Account { session: session.key, caller: session.caller.clone(), exchange: *exchange, own: false }
            }
            None => Account::own(gateway.caller.clone()),
        }
    }

    /// Notes facts of this party, behind what was noted of it before.
    pub(crate) fn note(&self, gateway: &Gateway, fact: Fact) {
        match &self.0 {
            Some((session, _)) => gateway.note(session, [fact]),
            None => gateway.note_own(fact),
        }
    }
}
