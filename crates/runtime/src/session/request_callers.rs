//! The caller of each request of a session. All are of one principal, but each request may come with a credential that
//! is good for less than that of the opener.

use super::Session;
use signalbox_engine::front::Mode;
use signalbox_engine::standing::Standing;
use signalbox_engine::{Caller, ExchangeId, Identity, Proof};
use std::sync::Arc;

impl Session {
    /// The caller of a request of this session, if its credential is good for something else than that of the opener.
    /// `caller` is not asked where the opener has proved nothing: what it may do depends on no credential.
    pub fn distinct_caller(&self, caller: impl FnOnce() -> Caller) -> Option<Caller> {
        let opener = self.caller.identity();
        if opener.proof == Proof::Unproved {
            return None;
        }
        Some(caller()).filter(|caller| !is_alike(caller.identity(), opener))
    }

    /// The caller of an exchange. `None` if that is over, unless the whole session is one request.
    pub(crate) fn caller_of(&self, exchange: Option<ExchangeId>) -> Option<Caller> {
        let inner = self.lock();
        let exchange = exchange.and_then(|exchange| inner.machine.exchange(exchange));
        let opener = || (self.mode == Mode::Stateless).then(|| self.caller.clone());
        exchange.map(|exchange| exchange.caller.clone()).or_else(opener)
    }
}

/// True if two callers of one principal may do the same. Requests with one credential share its standing.
fn is_alike(one: &Identity, other: &Identity) -> bool {
    one.proof == other.proof
        && match (&one.standing, &other.standing) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other) || is_equal(one, other),
            (one, other) => one.is_none() && other.is_none(),
        }
}

/// Compares all but the lifetime of the credential: a token that was refreshed is as good as the one before it, unless
/// the token itself is exchanged for another.
fn is_equal(one: &Standing, other: &Standing) -> bool {
    let token = |standing: &Standing| standing.credential.as_ref().and_then(|credential| credential.token.clone());
    one.trust == other.trust
        && one.roles == other.roles
        && one.groups == other.groups
        && one.scopes == other.scopes
        && one.resources == other.resources
        && token(one) == token(other)
}
