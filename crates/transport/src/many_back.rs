//! A backend at several addresses, which are taken to be the same server.
//!
//! A message of the new era goes to any of them. In the old era a session lives at the address where it was opened, and what
//! belongs to it goes there; so does everything on a connection that is a pipe. An address that fails is left out for a
//! while, unless all of them fail. What surely was not processed at one address is sent to another.

mod link;
mod relay;
mod single;
mod targets;
#[cfg(test)]
mod tests;

use link::ManyLink;
use signalbox_engine::balance::Balance;
use signalbox_engine::{BackendUser, Fault};
use signalbox_runtime::status::AddressStatus;
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use targets::Targets;

/// One address.
pub struct Address {
    /// Host and port, for people.
    pub label: String,
    /// How often it is chosen, compared to the others.
    pub weight: u32,
    /// Opens links to it.
    pub connector: Arc<dyn Connector>,
}

/// What is configured of all of them.
#[derive(Clone, Debug)]
pub struct ManySpec {
    /// The backend's name, for messages.
    pub name: Arc<str>,
    /// How one is chosen.
    pub balance: Balance,
    /// How long an address that fails is left out.
    pub recovery: Duration,
    /// How often a message that no address took is sent to them again.
    pub retries: u32,
}

/// Opens links to one of several addresses, or to all of them at once.
pub struct ManyConnector {
    targets: Arc<Targets>,
}

impl ManyConnector {
    /// A backend at these addresses, which speak the same transport.
    #[must_use]
    pub fn new(spec: ManySpec, addresses: Vec<Address>) -> Self {
        Self { targets: Arc::new(Targets::new(spec, addresses)) }
    }

    fn first(&self) -> Option<&Arc<dyn Connector>> {
        self.targets.all.first().map(|place| &place.connector)
    }
}

impl fmt::Debug for ManyConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let labels: Vec<&str> = self.targets.all.iter().map(|place| &*place.label).collect();
        f.debug_struct("ManyConnector").field("addresses", &labels).finish_non_exhaustive()
    }
}

impl Connector for ManyConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        let targets = Arc::clone(&self.targets);
        if self.carries_headers() {
            return Box::pin(async move { Ok(Arc::new(ManyLink::open(targets, events).await?) as Arc<dyn Link>) });
        }
        Box::pin(single::open(targets, events))
    }

    fn carries_headers(&self) -> bool {
        self.first().is_some_and(|connector| connector.carries_headers())
    }

    fn is_process(&self) -> bool {
        false
    }

    fn is_ending_sessions(&self) -> bool {
        self.targets.all.iter().any(|place| place.connector.is_ending_sessions())
    }

    fn signs_in(&self) -> bool {
        self.first().is_some_and(|connector| connector.signs_in())
    }

    fn sign_in_end(&self, user: &BackendUser, agreed: bool) -> Option<BoxFuture<()>> {
        self.first()?.sign_in_end(user, agreed)
    }

    fn is_per_user(&self) -> bool {
        self.first().is_some_and(|connector| connector.is_per_user())
    }

    fn is_per_caller(&self) -> bool {
        self.first().is_some_and(|connector| connector.is_per_caller())
    }

    fn kind(&self) -> &'static str {
        self.first().map_or("http", |connector| connector.kind())
    }

    fn retries(&self) -> u64 {
        self.targets.retried()
    }

    fn addresses(&self) -> Vec<AddressStatus> {
        self.targets.status()
    }
}
