//! Calls of clients on a connection: sending, queuing, parking, cancelling.

use super::{Peer, PeerState, QueuedCall};
use crate::backend::ExclusiveUse;
use crate::bridged_call_driver::BridgedCallDriver;
use crate::origin::Origin;
use crate::session::Session;
use signalbox_engine::back::Outbound;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{AuthorizedCall, Call, Event, ExchangeId, Fault, bridge};
use signalbox_wire::Era;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

impl PeerState {
    /// Returns true if no client's request is in flight or queued.
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.machine.waiting().any(Origin::is_work)
    }
}

impl Peer {
    /// Acquires exclusive use of the connection. Returns `None` if another call has it.
    #[must_use]
    pub fn exclusive_use(&self) -> Option<ExclusiveUse> {
        let backend = self.backend.upgrade()?;
        ExclusiveUse::take(&self.busy, &backend)
    }

    /// Returns true once the connection has received a call.
    #[must_use]
    pub fn was_called(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// Returns for how long there has been no call, as far as earlier checks can tell.
    pub(crate) fn unused_since(&self, now: Instant) -> Duration {
        let calls = self.calls.load(Ordering::Relaxed);
        let busy = !self.lock().is_idle();
        let mut unused = self.unused.lock().unpoisoned();
        if busy || unused.0 != calls {
            *unused = (calls, now);
        }
        now.saturating_duration_since(unused.1)
    }

    /// Sends a call, now or after the handshake. Returns it if the connection is lost or about to be closed.
    #[must_use]
    pub fn call(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: AuthorizedCall,
        timeout: Duration,
        exclusive_use: Option<ExclusiveUse>,
    ) -> Option<AuthorizedCall> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        let now = crate::clock::now();
        let mut inner = self.lock();
        if inner.lost || inner.closing {
            return Some(call);
        }
        if !inner.takes_calls() {
            let backend = self.backend.upgrade();
            if let Some(backend) = backend.filter(|backend| inner.queue.len() >= backend.spec().failing.max_queue) {
                drop(inner);
                self.refuse(session, exchange, backend.queue_full());
                return None;
            }
            let session = Arc::clone(session);
            inner.queue.push_back(QueuedCall { session, exchange, call, deadline: now + timeout, exclusive_use });
            return None;
        }
        let origin = self.origin(&inner, session, exchange, &call, exclusive_use);
        let sent =
            inner.machine.call(origin, call, timeout, now).and_then(|message| self.transmit(&mut inner, message));
        drop(inner);
        if let Err(fault) = sent {
            self.refuse(session, exchange, fault);
        }
        None
    }

    /// Fails a call that has not reached the backend.
    pub(super) fn refuse(&self, session: &Arc<Session>, exchange: ExchangeId, fault: Fault) {
        self.guard.release(&self.name, session, exchange);
        session.handle(Event::Failed { exchange, fault });
    }

    /// Returns the receiver of a call's outcome. A modern call that a legacy backend may interrupt with questions gets
    /// a driver.
    fn origin(
        self: &Arc<Self>,
        inner: &PeerState,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: &Call,
        exclusive_use: Option<ExclusiveUse>,
    ) -> Origin {
        let revision = inner.machine.profile().map(|profile| profile.revision);
        let asks = call.era == Era::Modern && self.caps.may_be_asked() && bridge::may_ask(&call.method);
        if let (true, Some(revision)) = (asks, revision.filter(|revision| revision.era() == Era::Legacy))
            && let Some((backend, gateway)) = self.backend.upgrade().and_then(|one| Some((one.clone(), one.gateway()?)))
        {
            let waiter = (Arc::clone(session), exchange);
            return Origin::BridgedCall(BridgedCallDriver::new(
                &gateway,
                self,
                (&backend.name, revision),
                waiter,
                call,
                exclusive_use,
            ));
        }
        Origin::Exchange(Arc::clone(session), exchange, exclusive_use.map(Arc::new))
    }

    /// Extends the time limit of a parked call.
    pub(crate) fn hold(&self, call: &Arc<BridgedCallDriver>, until: Instant) {
        let mut inner = self.lock();
        if let Some(key) = inner.machine.key_of(|origin| origin.is_bridged_call(call)) {
            inner.machine.hold(key, until);
        }
    }

    /// Restores the usual time limit of a call once the backend has the input that it waited for.
    pub(crate) fn release(&self, call: &Arc<BridgedCallDriver>) {
        let mut inner = self.lock();
        if let Some(key) = inner.machine.key_of(|origin| origin.is_bridged_call(call)) {
            inner.machine.release(key, crate::clock::now());
        }
    }

    /// Cancels a parked call.
    pub(crate) fn abandon(&self, call: &Arc<BridgedCallDriver>) {
        let mut inner = self.lock();
        let task = inner.machine.task_of(|origin| origin.is_bridged_call(call));
        let given_up = inner.machine.cancel(|origin| origin.is_bridged_call(call), Some(b"\"no input came\""));
        self.give_up(&mut inner, given_up);
        drop(inner);
        if let Some(task) = task {
            self.stop_task(&task);
        }
    }

    pub(super) fn give_up(&self, inner: &mut MutexGuard<'_, PeerState>, given_up: Option<(Option<Outbound>, u64)>) {
        match given_up {
            Some((Some(note), _)) => drop(self.transmit(inner, note)),
            Some((None, key)) => {
                if let Some(link) = self.link.get() {
                    link.abort(key);
                }
            }
            None => {}
        }
    }

    /// Cancels an exchange. Returns false if it is not on this connection. A parked call continues under another
    /// exchange than the one in the index; it is found only if `thoroughly` is true.
    #[must_use]
    pub fn cancel(
        &self,
        session: &Arc<Session>,
        exchange: ExchangeId,
        reason: Option<&[u8]>,
        thoroughly: bool,
    ) -> bool {
        if thoroughly && !self.caps.may_be_asked() {
            return false;
        }
        let mut inner = self.lock();
        let queued = inner.queue.len();
        inner.queue.retain(|queued| !(queued.exchange == exchange && Arc::ptr_eq(&queued.session, session)));
        let was_queued = inner.queue.len() < queued;
        let Some(key) = inner.key_of(session, exchange, thoroughly) else { return was_queued };
        let found =
            inner.machine.request_at(key).map(|(origin, task)| (origin.bridged_call(), task.map(Box::<str>::from)));
        let (bridged_call, task) = found.unwrap_or_default();
        let given_up = inner.machine.cancel_at(key, reason);
        self.give_up(&mut inner, Some(given_up));
        drop(inner);
        if let Some(call) = bridged_call {
            call.over();
        }
        if let Some(task) = task {
            self.stop_task(&task);
        }
        true
    }

    /// Returns true if the connection never became ready, so that none of its calls has been sent.
    pub(crate) fn is_unused(&self) -> bool {
        let inner = self.lock();
        !inner.machine.is_ready() && inner.machine.waiting().next().is_none()
    }

    /// Returns the number of pending requests that are not the gateway's own.
    #[cfg(feature = "testing")]
    pub(crate) fn waits_for_others(&self) -> usize {
        let inner = self.lock();
        let others = inner.machine.waiting().filter(|origin| !matches!(origin, Origin::Own(_)));
        others.count() + inner.queue.len() + inner.resend.len()
    }

    /// Closes the connection unless a call is in flight or queued. Returns true if it is closed. No call can arrive in
    /// between.
    pub(crate) fn close_if_idle(self: &Arc<Self>) -> bool {
        let ends = self.stop_taking_calls();
        if ends {
            self.close();
        }
        ends
    }

    /// Stops accepting calls if there is none. Returns true if the connection may be closed.
    fn stop_taking_calls(&self) -> bool {
        let mut inner = self.lock();
        let idle = inner.is_idle();
        inner.closing |= idle;
        idle
    }

    /// Gives way if the client of the owning session is away. Returns false if the connection is in use.
    pub(crate) fn give_way_if_client_is_away(&self) -> bool {
        self.owner().is_some_and(|session| !session.is_connected()) && self.give_way()
    }

    /// Stops accepting calls, so that the connection can be closed. Returns false if it is in use.
    pub(crate) fn give_way(&self) -> bool {
        let gives_way = self.stop_taking_calls();
        if gives_way {
            self.gave_way.store(true, Ordering::Relaxed);
        }
        gives_way
    }

    /// Returns true if the connection has given way, so that only the next use reopens it.
    pub(crate) fn has_given_way(&self) -> bool {
        self.gave_way.load(Ordering::Relaxed)
    }
}

impl PeerState {
    /// Returns the key of an exchange's request.
    fn key_of(&mut self, session: &Arc<Session>, exchange: ExchangeId, thoroughly: bool) -> Option<u64> {
        if thoroughly {
            return self.machine.key_of(|origin| origin.is(session, exchange));
        }
        let key = self.machine.key_in(&mut self.by_exchange, exchange, Origin::exchange_id)?;
        let (origin, _) = self.machine.request_at(key)?;
        origin.is(session, exchange).then_some(key)
    }
}
