//! Request for a connection that carries a call, and its results.

use super::pool::ExclusiveUse;
use crate::peer::Peer;
use crate::session::Session;
use signalbox_engine::{BackendUser, Call, CapSet, ClientProfile, Fault, bridge};
use signalbox_wire::Era;
use std::sync::Arc;

/// Result of a request for a connection.
pub(super) enum Pick {
    Peer(Arc<Peer>, Option<ExclusiveUse>),
    Wait,
    Refuse(Fault),
}

/// Parameters by which a connection is picked.
#[derive(Copy, Clone)]
pub(super) struct ConnectionRequest<'a> {
    pub session: &'a Arc<Session>,
    /// Backend user that stands for the caller.
    pub user: &'a BackendUser,
    pub client: Option<&'a ClientProfile>,
    pub era: Era,
    /// Set if the backend may ask the client something because of the call.
    pub asks: bool,
}

impl<'a> ConnectionRequest<'a> {
    pub fn of_call(session: &'a Arc<Session>, user: &'a BackendUser, call: &'a Call) -> Self {
        Self { session, user, client: Some(&call.client), era: call.era, asks: bridge::may_ask(&call.method) }
    }

    pub fn caps(&self) -> CapSet {
        self.client.map_or_else(CapSet::bare, |client| client.caps().clone())
    }
}

/// Result of asking for capacity for one more connection.
pub(super) enum Capacity {
    /// There is capacity now.
    Available,
    /// There is capacity once another connection has closed. Queued calls are retried then.
    AfterClose,
    /// Every connection is in use.
    Exhausted,
}
