//! Queue of calls that wait for a connection: its limit, and when the calls are retried.
//!
//! A call whose connection could not be opened has certainly not reached the backend, so it is retried after a delay. A
//! call that was sent is never retried from here. A restarted backend gets few calls at first, so that the queued ones
//! do not overwhelm it.

use super::Backend;
use super::state::BackendState;
use crate::clock;
use crate::peer::QueuedCall;
use signalbox_engine::{Fault, FaultKind, pacing};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Backend {
    /// Returns true if calls may be queued. Never blocks, because the caller may hold any lock.
    pub(crate) fn may_have_waiting(&self) -> bool {
        self.state.try_lock().map_or(true, |state| !state.waiting.is_empty())
    }

    /// Dispatches the queued calls again.
    pub(crate) fn retry_waiting(self: &Arc<Self>) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        for one in waiting {
            self.dispatch_until(&one.session, one.exchange, one.call, one.deadline);
        }
    }

    /// Returns true if the backend was restarted recently and has reached its current limit of calls.
    pub(super) fn is_throttled(&self, state: &BackendState) -> bool {
        if !state.condition.was_restarted_lately() {
            return false;
        }
        let most = state.condition.most_calls(clock::now(), self.spec().failing.slow_start);
        most.is_some_and(|most| state.connections.all().iter().map(|peer| peer.in_flight()).sum::<usize>() >= most)
    }

    /// Dispatches the calls that the slow start has held back, up to the current limit.
    pub(super) fn dispatch_held_back(self: &Arc<Self>) {
        {
            let mut state = self.lock();
            if !state.condition.was_restarted_lately() {
                return;
            }
            state.condition.end_slow_start(clock::now(), self.spec().failing.slow_start);
            if state.waiting.is_empty() {
                return;
            }
        }
        self.retry_waiting();
    }

    /// Returns true if a call whose connection could not be opened is to be retried. Transports that send each request
    /// separately retry by themselves.
    pub(super) fn is_retried(&self, fault: &Fault, one: &QueuedCall) -> bool {
        fault.kind == FaultKind::BackendDown
            && !self.connector.carries_headers()
            && one.call.tries < self.spec().failing.retries
            && crate::clock::now() + pacing::retry_delay(one.call.tries, u64::MAX) < one.deadline
    }

    pub(super) fn retry_later(self: &Arc<Self>, one: QueuedCall) {
        let QueuedCall { session, exchange, mut call, deadline, exclusive_use } = one;
        drop(exclusive_use);
        let wait = pacing::retry_delay(call.tries, getrandom::u64().unwrap_or_default());
        call.retried();
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

    /// Counts and returns the refusal of a call because of a full queue.
    pub(crate) fn queue_full(&self) -> Fault {
        self.queue_refused.fetch_add(1, Ordering::Relaxed);
        let most = self.spec().failing.max_queue;
        let text = format!("{most} calls already wait for backend `{}`, its `max_queue`", self.name);
        Fault::new(FaultKind::Overloaded, text).with_str("backend", &self.name)
    }

    /// Returns the number of calls refused because of a full queue.
    pub(crate) fn queue_refused(&self) -> u64 {
        self.queue_refused.load(Ordering::Relaxed)
    }

    /// Returns the number of retries, here and in the transport.
    pub(crate) fn retries(&self) -> u64 {
        self.retries.load(Ordering::Relaxed) + self.connector.retries()
    }
}
