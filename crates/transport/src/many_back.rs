//! A backend at several addresses, which are assumed to be the same server.
//!
//! A modern message goes to any address. A legacy session lives at the address where it was opened, and its messages go
//! there; so does everything on a connection that is a pipe. An address that fails is skipped for a while, unless all
//! of them fail. A message that was certainly not processed at one address is sent to another.

mod link;
mod relay;
mod single;
mod targets;
#[cfg(test)]
mod tests;

use link::ManyLink;
use signalbox_engine::balance::Balance;
use signalbox_engine::{BackendUser, Fault};
use signalbox_runtime::AddressStatus;
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use targets::Targets;

/// One address of a backend.
pub struct Address {
    /// Host and port, for display.
    pub label: String,
    /// Relative weight of the address in the choice.
    pub weight: u32,
    /// Connector for the address.
    pub connector: Arc<dyn Connector>,
}

/// Configuration common to all addresses.
#[derive(Clone, Debug)]
pub struct ManySpec {
    /// Name of the backend, for messages.
    pub name: Arc<str>,
    /// Strategy for choosing an address.
    pub balance: Balance,
    /// Time for which a failed address is skipped.
    pub recovery: Duration,
    /// Maximum number of times a message that no address accepted is sent to all of them again.
    pub retries: u32,
}

/// Opens links to one of several addresses, or to all of them at once.
pub struct ManyConnector {
    targets: Arc<Targets>,
}

impl ManyConnector {
    /// Creates a backend with these addresses, which must speak the same transport.
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

    fn has_own_credentials(&self) -> bool {
        self.first().is_some_and(|connector| connector.has_own_credentials())
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
