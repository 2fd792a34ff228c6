//! The single listen request at a modern backend for all resources that legacy sessions watch.
//!
//! A listen request cannot be changed, so every change sends a new one. The old one ends when the new one is
//! acknowledged, so that no notification is missed or duplicated.

use super::Peer;
use crate::bridged_call_driver::Waiter;
use crate::origin::Origin;
use bytes::Bytes;
use signalbox_engine::{Event, Fault, FaultKind};
use signalbox_wire::{Edits, Envelope, json, method};
use std::sync::Arc;
use std::time::Duration;

/// Maximum lifetime of a listen request.
const LISTEN_FOR: Duration = Duration::from_secs(24 * 3600);
/// Delay before a listen request that ended is opened again.
const AGAIN: Duration = Duration::from_secs(5);

/// Listen requests of a connection, and the requests that wait for them.
#[derive(Default)]
pub(super) struct WatchState {
    /// Number of the newest listen request.
    newest: u64,
    /// Number of the acknowledged listen request.
    live: u64,
    /// Requests that wait for the acknowledgement of a listen request with this number or a newer one.
    waiting: Vec<(u64, Waiter)>,
}

impl WatchState {
    /// Removes and returns the waiters of listen requests up to this number.
    fn take_up_to(&mut self, number: u64) -> Vec<Waiter> {
        let (served, kept) = std::mem::take(&mut self.waiting).into_iter().partition(|(own, _)| *own <= number);
        self.waiting = kept;
        Vec::into_iter(served).map(|(_, waiter)| waiter).collect()
    }
}

impl Peer {
    /// Sends a new listen request for everything that legacy sessions of the principal watch. `waiter` is answered once
    /// it is acknowledged.
    pub(crate) fn renew_watch(self: &Arc<Self>, waiter: Option<Waiter>) {
        let Some(backend) = self.backend.upgrade() else { return };
        let (number, lost) = {
            let mut inner = self.lock();
            let next = inner.watching.newest + 1;
            if !inner.lost {
                inner.watching.waiting.extend(waiter.clone().map(|waiter| (next, waiter)));
            }
            inner.watching.newest += u64::from(inner.machine.is_ready());
            (inner.machine.is_ready().then_some(inner.watching.newest), inner.lost)
        };
        if let Some((session, exchange)) = waiter {
            if lost {
                return session.handle(Event::Failed { exchange, fault: self.not_connected() });
            }
            self.fail_later((session, exchange), backend.spec().timeout);
        }
        let Some(number) = number.filter(|_| !lost) else { return };
        // Read after the number was taken, so that the newest request names everything that earlier ones name.
        let uris = backend.watched(&self.user);
        if uris.is_empty() {
            return self.watch_acknowledged(number);
        }
        let list: Vec<String> = uris.iter().map(|uri| json::quote(uri)).collect();
        let params = format!("\"notifications\":{{\"resourceSubscriptions\":[{}]}}", list.join(","));
        if let Err(fault) = self.own(Origin::Watches(number), method::SUBSCRIPTIONS_LISTEN, &params, LISTEN_FOR) {
            self.watch_ended(number, Some(fault));
        }
    }

    /// Fails a waiter if no acknowledgement arrives in time. The time counts from now, even if the connection is not
    /// ready.
    fn fail_later(self: &Arc<Self>, (session, exchange): Waiter, within: Duration) {
        let peer = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(within).await;
            let Some(peer) = peer.upgrade() else { return };
            let waits = {
                let waiting = &mut peer.lock().watching.waiting;
                let before = waiting.len();
                waiting.retain(|(_, (own, id))| !(*id == exchange && Arc::ptr_eq(own, &session)));
                waiting.len() < before
            };
            if waits {
                let name = peer.backend_name();
                let text = format!("backend `{name}` did not say in time that it follows the resource");
                let fault = Fault::new(FaultKind::TimedOut, text).with_str("backend", &name);
                session.handle(Event::Failed { exchange, fault });
            }
        });
    }

    /// Fails all waiters, because the connection is lost.
    pub(super) fn watch_lost(&self, fault: &Fault) {
        let waiting = self.lock().watching.take_up_to(u64::MAX);
        for (session, exchange) in waiting {
            let fault = Fault { kind: FaultKind::BackendDown, ..fault.clone() };
            session.handle(Event::Failed { exchange, fault });
        }
    }

    /// Returns true if notifications of this listen request count, and not those of a newer one.
    pub(super) fn is_watching(&self, number: u64) -> bool {
        self.lock().watching.live == number
    }

    pub(super) fn watch_acknowledged(self: &Arc<Self>, number: u64) {
        let waiting = {
            let mut inner = self.lock();
            if number <= inner.watching.live {
                // A newer one was acknowledged first, and names everything that this one names.
                let late = |origin: &Origin| matches!(origin, Origin::Watches(old) if *old == number);
                if number < inner.watching.live {
                    let over = inner.machine.cancel(late, None);
                    self.give_up(&mut inner, over);
                }
                return;
            }
            inner.watching.live = number;
            while let Some(over) =
                inner.machine.cancel(|origin| matches!(origin, Origin::Watches(old) if *old < number), None)
            {
                self.give_up(&mut inner, Some(over));
            }
            inner.watching.take_up_to(number)
        };
        for (session, exchange) in waiting {
            if let Ok(message) = Envelope::parse(Bytes::from_static(br#"{"jsonrpc":"2.0","id":0,"result":{}}"#)) {
                session.handle(Event::Answered { exchange, message, edits: Edits::new(), status: None });
            }
        }
    }

    /// Fails the waiters of a listen request that has ended, and sends the request again after a delay.
    pub(super) fn watch_ended(self: &Arc<Self>, number: u64, fault: Option<Fault>) {
        let waiting = {
            let mut inner = self.lock();
            if number != inner.watching.newest {
                return;
            }
            inner.watching.take_up_to(number)
        };
        let fault = fault.unwrap_or_else(|| self.not_connected());
        for (session, exchange) in waiting {
            session.handle(Event::Failed { exchange, fault: fault.clone() });
        }
        let peer = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN).await;
            let Some(peer) = peer.upgrade().filter(|peer| peer.is_ready() && !peer.is_lost()) else { return };
            peer.renew_watch(None);
        });
    }
}
