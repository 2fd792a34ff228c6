//! The places of TCP connections.

use crate::admission::{Admission, ConnectionPermit};
use crate::front_clock::FrontClock;
use crate::places::{Activity, Evictable, EvictionReason, FoundPlace, Places};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Caller, Limit};
use signalbox_runtime::Gateway;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, OnceLock};
use tokio::sync::Notify;

/// The connections of the TCP front and their places.
pub struct TcpClients {
    gateway: Arc<Gateway>,
    admission: Arc<Admission>,
    clock: FrontClock,
    places: Mutex<Places<TcpClient>>,
}

impl TcpClients {
    /// Creates a front without connections.
    pub fn new(gateway: Arc<Gateway>, admission: Arc<Admission>) -> Arc<Self> {
        Arc::new(Self { gateway, admission, clock: FrontClock::default(), places: Mutex::default() })
    }

    /// Registers a new connection from this address. Returns `None` if there is no place for it.
    pub fn seat(self: &Arc<Self>, address: SocketAddr) -> Option<Arc<TcpClient>> {
        let mut places = self.places.lock().unpoisoned();
        places.for_each(|_| {});
        let place = places.seat(&self.admission, self.clock.advance())?;
        let is_provisional = place.is_provisional();
        let client = Arc::new(TcpClient {
            clients: Arc::clone(self),
            address,
            caller: OnceLock::new(),
            place: Mutex::new(Some(place)),
            displaced: Notify::new(),
        });
        places.add(&client, is_provisional);
        Some(client)
    }
}

/// A TCP connection with its place.
pub struct TcpClient {
    clients: Arc<TcpClients>,
    address: SocketAddr,
    caller: OnceLock<Caller>,
    place: Mutex<Option<ConnectionPermit>>,
    displaced: Notify,
}

impl TcpClient {
    /// Records the caller, and moves a connection in the reserve to a place of that caller. Returns `false` if there is
    /// none.
    pub fn settle(&self, caller: Option<&Caller>) -> bool {
        if let Some(caller) = caller {
            let _ = self.caller.set(caller.clone());
        }
        if self.place.lock().unpoisoned().as_ref().is_none_or(|place| !place.is_provisional()) {
            return true;
        }
        let TcpClients { gateway, admission, clock, places } = &*self.clients;
        let found = places.lock().unpoisoned().make_room(admission, &self.holder(), clock.advance());
        let Some(FoundPlace { permit, report }) = found else { return false };
        if let Some(report) = report {
            report.report(gateway);
        }
        let mut place = self.place.lock().unpoisoned();
        if place.is_some() {
            *place = Some(permit);
        }
        true
    }

    /// Waits until the place is given to another connection.
    pub async fn displaced(&self) {
        self.displaced.notified().await;
    }
}

impl Evictable for TcpClient {
    fn known_caller(&self) -> Option<Caller> {
        self.caller.get().cloned()
    }

    fn address(&self) -> Option<SocketAddr> {
        Some(self.address)
    }

    fn transport(&self) -> &'static str {
        "tcp"
    }

    fn activity(&self, _now: u32) -> Activity {
        match &*self.place.lock().unpoisoned() {
            Some(place) if !place.is_provisional() => Activity::InUse,
            _ => Activity::Unseated,
        }
    }

    fn take_place(&self, reason: EvictionReason, _now: u32) -> Option<ConnectionPermit> {
        let is_due = |place: &mut ConnectionPermit| match reason {
            EvictionReason::Idle => false,
            EvictionReason::Share => !place.is_provisional(),
            EvictionReason::Reserve => place.is_provisional(),
        };
        let place = self.place.lock().unpoisoned().take_if(is_due)?;
        let counters = &self.clients.gateway.counters;
        match reason {
            EvictionReason::Idle | EvictionReason::Share => counters.refused(Limit::ConnectionShare),
            EvictionReason::Reserve => _ = counters.connections_refused.fetch_add(1, Ordering::Relaxed),
        }
        self.displaced.notify_one();
        Some(place)
    }
}
