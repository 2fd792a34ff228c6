//! The calls of clients on a connection: sent, held while they are parked, given up.

use super::{Inner, Peer, Queued};
use crate::bridged_call_driver::BridgedCallDriver;
use crate::exclusive_use::ExclusiveUse;
use crate::origin::Origin;
use crate::session::Session;
use signalbox_engine::back::Outbound;
use signalbox_engine::breaker::CallResult;
use signalbox_engine::{Call, Event, ExchangeId, Fault, bridge};
use signalbox_wire::Era;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

impl Inner {
    /// True where nothing that a client asked for is on it, or waits for it.
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.machine.waiting().any(Origin::is_work)
    }
}

impl Peer {
    /// Takes the connection for one call alone.
    #[must_use]
    pub fn exclusive_use(&self) -> Option<ExclusiveUse> {
        let backend = self.backend.upgrade()?;
        ExclusiveUse::take(&self.busy, &backend)
    }

    /// True once it was given a call.
    #[must_use]
    pub fn was_called(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// For how long it was given no call and had none, as far as was looked.
    pub(crate) fn unused_since(&self, now: Instant) -> Duration {
        let calls = self.calls.load(Ordering::Relaxed);
        let busy = !self.lock().is_idle();
        let mut unused = self.unused.lock().unwrap_or_else(PoisonError::into_inner);
        if busy || unused.0 != calls {
            *unused = (calls, now);
        }
        now.saturating_duration_since(unused.1)
    }

    /// Sends a call, now or as soon as the handshake is done. Gives it back where the connection is lost.
    #[must_use]
    pub fn call(
        self: &Arc<Self>,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: Box<Call>,
        timeout: Duration,
        exclusive_use: Option<ExclusiveUse>,
    ) -> Option<Box<Call>> {
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
            inner.queue.push_back(Queued { session, exchange, call, deadline: now + timeout, exclusive_use });
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

    /// A call ends here, before it reached the backend.
    pub(super) fn refuse(&self, session: &Arc<Session>, exchange: ExchangeId, fault: Fault) {
        self.guard.settle(&self.name, Some((session.key, exchange)), CallResult::Unknown);
        session.handle(Event::Failed { exchange, fault });
    }

    /// Who is told of what becomes of a call: an old backend may ask a client of the new era in the middle of it.
    fn origin(
        self: &Arc<Self>,
        inner: &Inner,
        session: &Arc<Session>,
        exchange: ExchangeId,
        call: &Call,
        exclusive_use: Option<ExclusiveUse>,
    ) -> Origin {
        let revision = inner.machine.profile().map(|profile| profile.revision);
        let asks = call.era == Era::Modern && !self.caps.is_bare() && bridge::may_ask(&call.method);
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

    /// Lets the backend be silent about a parked call until then.
    pub(crate) fn hold(&self, call: &Arc<BridgedCallDriver>, until: Instant) {
        let mut inner = self.lock();
        if let Some(key) = inner.machine.key_of(|origin| origin.is_bridged_call(call)) {
            inner.machine.hold(key, until);
        }
    }

    /// The backend has what it waited for.
    pub(crate) fn release(&self, call: &Arc<BridgedCallDriver>) {
        let mut inner = self.lock();
        if let Some(key) = inner.machine.key_of(|origin| origin.is_bridged_call(call)) {
            inner.machine.release(key, crate::clock::now());
        }
    }

    /// Stops the work on a parked call.
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

    pub(super) fn give_up(&self, inner: &mut MutexGuard<'_, Inner>, given_up: Option<(Option<Outbound>, u64)>) {
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

    /// Stops the work on an exchange. False where there is none here. A parked call goes on with another exchange than the one
    /// it was noted under, and is only found `thoroughly`.
    #[must_use]
    pub fn cancel(
        &self,
        session: &Arc<Session>,
        exchange: ExchangeId,
        reason: Option<&[u8]>,
        thoroughly: bool,
    ) -> bool {
        if thoroughly && self.caps.is_bare() {
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

    /// True where it never became ready, so that whatever was meant for it has not been sent.
    pub(crate) fn is_unused(&self) -> bool {
        let inner = self.lock();
        !inner.machine.is_ready() && inner.machine.waiting().next().is_none()
    }

    /// How many requests wait for an answer that somebody but the gateway wants.
    #[cfg(feature = "testing")]
    pub(crate) fn waits_for_others(&self) -> usize {
        let inner = self.lock();
        let others = inner.machine.waiting().filter(|origin| !matches!(origin, Origin::Own(_)));
        others.count() + inner.queue.len() + inner.resend.len()
    }

    /// Ends the connection unless a call is on it. True where it has ended. No call slips in between.
    pub(crate) fn close_if_idle(self: &Arc<Self>) -> bool {
        let ends = self.stop_taking_calls();
        if ends {
            self.close();
        }
        ends
    }

    /// Takes no further call, unless one is here. True where it may be ended.
    fn stop_taking_calls(&self) -> bool {
        let mut inner = self.lock();
        let idle = inner.is_idle();
        inner.closing |= idle;
        idle
    }

    /// Gives up the place of a connection whose client is away. False where it is in use.
    pub(crate) fn displace(&self) -> bool {
        self.owner().is_some_and(|session| !session.is_connected()) && self.give_way()
    }

    /// Gives up its place. False where it is in use.
    pub(crate) fn give_way(&self) -> bool {
        let gives_way = self.stop_taking_calls();
        if gives_way {
            self.gave_way.store(true, Ordering::Relaxed);
        }
        gives_way
    }

    /// True where it has given up its place, so that it is opened again at the next use only.
    pub(crate) fn has_given_way(&self) -> bool {
        self.gave_way.load(Ordering::Relaxed)
    }
}

impl Inner {
    /// The request of an exchange.
    fn key_of(&mut self, session: &Arc<Session>, exchange: ExchangeId, thoroughly: bool) -> Option<u64> {
        if thoroughly {
            return self.machine.key_of(|origin| origin.is(session, exchange));
        }
        let key = self.machine.key_in(&mut self.by_exchange, exchange, Origin::exchange_id)?;
        let (origin, _) = self.machine.request_at(key)?;
        origin.is(session, exchange).then_some(key)
    }
}
