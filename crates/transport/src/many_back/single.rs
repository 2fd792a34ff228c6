//! A connection to one of several addresses, for transports whose connections are pipes.

use super::targets::{AddressUse, Targets, outcome};
use crate::observed_events::{LinkObserver, ObservedEvents};
use signalbox_engine::back::ToBackend;
use signalbox_engine::breaker::CallResult;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{Link, LinkEvents};
use std::sync::Arc;

/// Opens a connection to the first address that accepts one.
pub(super) async fn open(targets: Arc<Targets>, events: Arc<dyn LinkEvents>) -> Result<Arc<dyn Link>, Fault> {
    let mut tried = Vec::new();
    let mut last = None;
    while let Some(chosen) = targets.choose(&tried) {
        let Some(target) = targets.all.get(chosen.at) else { break };
        tried.push(chosen.at);
        if tried.len() > 1 {
            targets.count_retry();
        }
        let observer = LossObserver { targets: Arc::clone(&targets), chosen };
        let observed_events = Arc::new(ObservedEvents { events: Arc::clone(&events), observer });
        match target.connector.open(observed_events).await {
            Ok(inner) => {
                targets.settle(chosen, CallResult::Answered);
                return Ok(Arc::new(SingleLink { inner, targets, chosen }));
            }
            Err(fault) => {
                targets.end(chosen, outcome(fault.kind));
                last = Some(fault);
            }
        }
    }
    Err(last.unwrap_or_else(|| targets.fault(FaultKind::BackendDown, "has no address")))
}

/// The connection. It counts as busy at its address as long as it exists.
struct SingleLink {
    inner: Arc<dyn Link>,
    targets: Arc<Targets>,
    chosen: AddressUse,
}

impl Link for SingleLink {
    fn send(&self, message: ToBackend) -> Result<(), Fault> {
        self.inner.send(message)
    }

    fn abort(&self, key: u64) {
        self.inner.abort(key);
    }

    fn open_general(&self) {
        self.inner.open_general();
    }

    fn forget_session(&self) {
        self.inner.forget_session();
    }

    fn close(&self) {
        self.inner.close();
    }

    fn pid(&self) -> Option<u32> {
        self.inner.pid()
    }
}

impl Drop for SingleLink {
    fn drop(&mut self) {
        self.targets.end(self.chosen, CallResult::Unknown);
    }
}

/// Counts a lost connection as a failure of its address.
struct LossObserver {
    targets: Arc<Targets>,
    chosen: AddressUse,
}

impl LinkObserver for LossObserver {
    fn on_lost(&self) {
        self.targets.settle(self.chosen, CallResult::Failed);
    }
}
