//! A connection to one of several addresses, for transports whose connections are pipes.

use super::targets::{Targets, Ticket, outcome};
use bytes::Bytes;
use signalbox_engine::back::ToBackend;
use signalbox_engine::breaker::CallResult;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::{BoxFuture, Link, LinkEvents};
use signalbox_wire::{Envelope, Rejected};
use std::sync::Arc;
use std::time::Duration;

/// Opens a connection to the first address that lets us.
pub(super) async fn open(targets: Arc<Targets>, events: Arc<dyn LinkEvents>) -> Result<Arc<dyn Link>, Fault> {
    let mut tried = Vec::new();
    let mut last = None;
    while let Some(ticket) = targets.choose(&tried) {
        let Some(place) = targets.all.get(ticket.at) else { break };
        tried.push(ticket.at);
        if tried.len() > 1 {
            targets.count_retry();
        }
        let watched = Arc::new(Watched { events: Arc::clone(&events), targets: Arc::clone(&targets), ticket });
        match place.connector.open(watched).await {
            Ok(inner) => {
                targets.settle(ticket, CallResult::Answered);
                return Ok(Arc::new(SingleLink { inner, targets, ticket }));
            }
            Err(fault) => {
                targets.end(ticket, outcome(fault.kind));
                last = Some(fault);
            }
        }
    }
    Err(last.unwrap_or_else(|| targets.fault(FaultKind::BackendDown, "has no address")))
}

/// The connection. What is under way at its address counts it for as long as it is there.
struct SingleLink {
    inner: Arc<dyn Link>,
    targets: Arc<Targets>,
    ticket: Ticket,
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
        self.targets.end(self.ticket, CallResult::Unknown);
    }
}

/// Passes on what happens on it, and notes when it is lost.
struct Watched {
    events: Arc<dyn LinkEvents>,
    targets: Arc<Targets>,
    ticket: Ticket,
}

impl LinkEvents for Watched {
    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>) {
        self.events.received(bytes, about, status);
    }

    fn message(&self, message: Envelope, about: Option<u64>, status: Option<u16>) {
        self.events.message(message, about, status);
    }

    fn room(&self) -> Option<BoxFuture<()>> {
        self.events.room()
    }

    fn failed(&self, key: u64, fault: Fault) {
        self.events.failed(key, fault);
    }

    fn is_wanted(&self, key: u64) -> bool {
        self.events.is_wanted(key)
    }

    fn parted(&self, key: u64, retry: Option<Duration>) {
        self.events.parted(key, retry);
    }

    fn expired(&self, message: ToBackend) {
        self.events.expired(message);
    }

    fn doubted(&self) {
        self.events.doubted();
    }

    fn garbage(&self, why: &Rejected) {
        self.events.garbage(why);
    }

    fn lost(&self, why: String) {
        self.targets.settle(self.ticket, CallResult::Failed);
        self.events.lost(why);
    }
}
