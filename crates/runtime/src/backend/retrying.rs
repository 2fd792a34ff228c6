//! Calls that surely did not reach the backend, since their connection could not even be opened: they are tried again after
//! a moment. What was sent is never sent again from here.

use super::Backend;
use crate::peer::Queued;
use signalbox_engine::{Fault, FaultKind, pacing};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Backend {
    /// True where a call that waited for a connection is to be tried on another one. A transport of single requests has
    /// tried again by itself.
    pub(super) fn tries_again(&self, fault: &Fault, one: &Queued) -> bool {
        fault.kind == FaultKind::BackendDown
            && !self.connector.carries_headers()
            && one.call.tries < self.spec().failing.retries
            && crate::clock::now() + pacing::retry_delay(one.call.tries, u64::MAX) < one.deadline
    }

    pub(super) fn dispatch_later(self: &Arc<Self>, one: Queued) {
        let Queued { session, exchange, mut call, deadline, exclusive_use } = one;
        drop(exclusive_use);
        let wait = pacing::retry_delay(call.tries, getrandom::u64().unwrap_or_default());
        call.tries += 1;
        self.retries.fetch_add(1, Ordering::Relaxed);
        let backend = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(wait).await;
            if session.waits_for(exchange) {
                session.retried(exchange);
                backend.dispatch_until(&session, exchange, call, deadline);
            }
        });
    }

    /// The refusal of a call that would have to wait where enough wait already.
    pub(crate) fn queue_full(&self) -> Fault {
        self.queue_refused.fetch_add(1, Ordering::Relaxed);
        let most = self.spec().failing.max_queue;
        let text = format!("{most} calls already wait for backend `{}`, its `max_queue`", self.name);
        Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name)
    }

    /// How many calls were refused since too many waited.
    pub(crate) fn queue_refused(&self) -> u64 {
        self.queue_refused.load(Ordering::Relaxed)
    }

    /// How often something was sent again, here and by the transport.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed) + self.connector.retries()
    }
}
