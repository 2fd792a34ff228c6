//! Calls that wait for a connection: how many may, and when they are tried again.
//!
//! A call whose connection could not even be opened surely did not reach the backend, so it is tried again after a moment.
//! What was sent is never sent again from here. A backend that was started again gets few calls at first, so that those which
//! waited for it do not fall on it all at once.

use super::Backend;
use super::state::BackendState;
use crate::clock;
use crate::peer::Queued;
use signalbox_engine::{Fault, FaultKind, retry};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl Backend {
    /// True where calls may wait for a connection. Does not wait itself, since whoever asks may hold any lock.
    pub(crate) fn may_have_waiting(&self) -> bool {
        self.state.try_lock().map_or(true, |state| !state.waiting.is_empty())
    }

    /// Tries the calls that wait for a connection again.
    pub(crate) fn retry_waiting(self: &Arc<Self>) {
        let waiting = std::mem::take(&mut self.lock().waiting);
        for one in waiting {
            self.dispatch_until(&one.session, one.exchange, one.call, one.deadline);
        }
    }

    /// True where a further call would be one too many for now.
    pub(super) fn holds_back(&self, state: &BackendState) -> bool {
        if !state.condition.was_restarted_lately() {
            return false;
        }
        let most = state.condition.most_calls(clock::now(), self.spec().failing.slow_start);
        most.is_some_and(|most| state.connections.all().iter().map(|peer| peer.in_flight()).sum::<usize>() >= most)
    }

    /// Lets go what a slow start held back, as much as may go by now.
    pub(super) fn go_on_slowly(self: &Arc<Self>) {
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

    /// True where a call that waited for a connection is to be tried on another one. A transport of single requests has
    /// tried again by itself.
    pub(super) fn tries_again(&self, fault: &Fault, one: &Queued) -> bool {
        fault.kind == FaultKind::BackendDown
            && !self.connector.carries_headers()
            && one.call.tries < self.spec().failing.retries
            && crate::clock::now() + retry::delay(one.call.tries, u64::MAX) < one.deadline
    }

    pub(super) fn dispatch_later(self: &Arc<Self>, one: Queued) {
        let Queued { session, exchange, mut call, deadline, exclusive_use } = one;
        drop(exclusive_use);
        let wait = retry::delay(call.tries, getrandom::u64().unwrap_or_default());
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
