//! Places for connections: which connections have one, and which give theirs to another.
//!
//! ```text
//! accept ──► a free place ──► an idle connection's place ──► the reserve, until the caller of the first request is known
//!                                                                        │
//!            a free place ◄── an idle connection's ◄── the newest stream of the holder with the most above its share
//! ```
//!
//! A connection in the reserve displaces no other until its request identifies the caller, so silent connections take
//! nothing from others. When the reserve is full, the oldest connection of the address with the most connections in it
//! gives way to the next.

pub(crate) mod fair_share;

pub use fair_share::LEAST_HOLDERS;

use crate::admission::{Admission, ConnectionPermit};
use crate::front_clock::over;
use fair_share::{ConnectionHolder, DisplacedConnection, EvictionCandidate, Holdings};
use signalbox_engine::caller::Identity;
use signalbox_engine::{Caller, Fault, FaultKind, Principal, Proof};
use signalbox_runtime::Gateway;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// Interval in which a holder above its share is reported at most once, in the log and in the audit log.
pub const REPORT_EACH: Duration = Duration::from_secs(60);
/// Maximum number of holders whose last report is remembered.
const MAX_REPORTED: usize = 1024;
/// Connections are recounted within a tick once one in this many has given its place away.
const RECOUNT: usize = 16;

/// Use that a connection makes of its place.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Activity {
    /// Idle since this tick.
    Idle(u32),
    /// Waits for its first request.
    Opening,
    InUse,
    /// Has no place, or one in the reserve.
    Unseated,
}

/// Reason for which a connection loses its place.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum EvictionReason {
    /// The connection is idle.
    Idle,
    /// Its holder has more than its share.
    Share,
    /// Other connections wait for its place in the reserve.
    Reserve,
}

/// A connection that can lose its place.
pub(crate) trait Evictable {
    /// Returns the caller of its last request, if known.
    fn known_caller(&self) -> Option<Caller>;
    /// Returns the remote address.
    fn address(&self) -> Option<SocketAddr>;
    /// Returns the name of its transport in records.
    fn transport(&self) -> &'static str;
    /// Returns its activity at this tick.
    fn activity(&self, now: u32) -> Activity;
    /// Takes its place and ends the connection. Returns `None` if the reason no longer applies.
    fn take_place(&self, reason: EvictionReason, now: u32) -> Option<ConnectionPermit>;

    /// Returns the party that the connection counts for.
    fn holder(&self) -> ConnectionHolder {
        ConnectionHolder::of(self.known_caller().as_ref(), self.address())
    }

    /// Returns the caller for records about the connection: an unknown one at its address until the caller is known.
    fn shown_caller(&self) -> Caller {
        self.known_caller().unwrap_or_else(|| unknown_caller(self.address(), self.transport()))
    }
}

/// Returns a caller of which only the address is known.
pub(crate) fn unknown_caller(address: Option<SocketAddr>, transport: &'static str) -> Caller {
    let (principal, proof, claims) = (Principal::named("unknown"), Proof::Unproved, Vec::new());
    Caller::new(Identity { principal, proof, claims, address, transport, standing: None })
}

/// A holder that lost a place because it had more than its share.
#[derive(Debug)]
pub(crate) struct OverdrawnHolder {
    /// Caller of the holder, or an unknown one at its address.
    pub caller: Caller,
    /// Number of connections that the holder had.
    pub held: usize,
    /// Number of connections that it may keep while others want places.
    pub share: usize,
    holder: ConnectionHolder,
}

impl OverdrawnHolder {
    /// Reports the holder in the log and in the audit log.
    pub fn report(&self, gateway: &Gateway) {
        let Self { held, share, .. } = self;
        let name = match &self.holder {
            ConnectionHolder::Proved(principal) => principal.as_str().to_owned(),
            ConnectionHolder::Unproved(address) => {
                format!("{} (unproved)", address.map_or("?".to_owned(), |one| one.to_string()))
            }
        };
        tracing::warn!(
            holder = %name, held, share,
            "all places for connections are taken: ending the newest streams of the holder with the most"
        );
        let text = format!(
            "{name} holds {held} connections while all places are taken, which is more than its share of {share}; \
             its newest streams end for others"
        );
        gateway.refused(&self.caller, Some(503), &Fault::new(FaultKind::Overloaded, text), None);
    }
}

/// A place for a connection, and the holder it was taken from.
pub(crate) struct FoundPlace {
    /// Permit for the place.
    pub permit: ConnectionPermit,
    /// Holder to report, at most once in [`REPORT_EACH`].
    pub report: Option<OverdrawnHolder>,
}

/// All connections of a front, in the order of their arrival.
pub(crate) struct Places<C> {
    all: Vec<Weak<C>>,
    /// Connections in the reserve, oldest first.
    reserve: VecDeque<Weak<C>>,
    /// Idle connections in the order in which they give way, as of `looked`.
    idlest: VecDeque<Weak<C>>,
    /// Tick of the last search for idle connections.
    looked: Option<u32>,
    /// Connections in use by holder, as of `counted`.
    holdings: Option<Holdings<Weak<C>>>,
    /// Tick at which connections were last counted.
    counted: Option<u32>,
    /// Number of connections in use that were displaced since then, including those that had already ended.
    taken: usize,
    /// Tick of the last report of each holder.
    reported: HashMap<ConnectionHolder, u32>,
}

impl<C> Default for Places<C> {
    fn default() -> Self {
        Self {
            all: Vec::new(),
            reserve: VecDeque::new(),
            idlest: VecDeque::new(),
            looked: None,
            holdings: None,
            counted: None,
            taken: 0,
            reported: HashMap::new(),
        }
    }
}

impl<C: Evictable> Places<C> {
    /// Registers a connection that was just accepted.
    pub fn add(&mut self, connection: &Arc<C>, is_provisional: bool) {
        self.all.push(Arc::downgrade(connection));
        if is_provisional {
            self.reserve.push_back(Arc::downgrade(connection));
        }
    }

    /// Returns `true` if there was no connection at the last pass over them.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Calls `each` with every open connection and removes the closed ones.
    pub fn for_each(&mut self, mut each: impl FnMut(&C)) {
        self.all.retain(|connection| connection.upgrade().map(|connection| each(&connection)).is_some());
        self.reserve.retain(|connection| connection.strong_count() > 0);
    }

    /// Finds a place for a new connection, whose caller is not known yet: a free one, that of an idle connection, or
    /// one in the reserve.
    pub fn seat(&mut self, admission: &Arc<Admission>, now: u32) -> Option<ConnectionPermit> {
        let place = admission.enter().or_else(|| self.idle_place(now)).or_else(|| admission.enter_reserve());
        if place.is_some() {
            return place;
        }
        self.reserved_place(now)
    }

    /// Takes the place of the oldest connection of the address with the most connections in the reserve, so that a
    /// flood from one address closes its own connections.
    fn reserved_place(&mut self, now: u32) -> Option<ConnectionPermit> {
        let is_reserved = |connection: Arc<C>| connection.activity(now) == Activity::Unseated;
        self.reserve.retain(|connection| connection.upgrade().is_some_and(is_reserved));
        while !self.reserve.is_empty() {
            let mut addresses: HashMap<ConnectionHolder, (usize, Reverse<usize>)> = HashMap::new();
            for (at, connection) in self.reserve.iter().enumerate() {
                let address = connection.upgrade().and_then(|connection| connection.address());
                addresses.entry(ConnectionHolder::of(None, address)).or_insert((0, Reverse(at))).0 += 1;
            }
            let (_, Reverse(oldest)) = addresses.into_values().max()?;
            let connection = self.reserve.remove(oldest)?.upgrade();
            if let Some(place) = connection.and_then(|connection| connection.take_place(EvictionReason::Reserve, now)) {
                return Some(place);
            }
        }
        None
    }

    /// Finds a place for a connection of this holder: a free one, that of an idle connection, or that of the newest
    /// stream of the holder that has the most connections above its share.
    pub fn make_room(&mut self, admission: &Arc<Admission>, holder: &ConnectionHolder, now: u32) -> Option<FoundPlace> {
        if let Some(permit) = admission.enter().or_else(|| self.idle_place(now)) {
            return Some(FoundPlace { permit, report: None });
        }
        if self.counted != Some(now) {
            self.count(admission.most(), now);
        }
        loop {
            while let Some(displaced) = self.holdings.as_mut()?.displace(holder) {
                self.taken += 1;
                if let Some(found) = self.take(&displaced, now) {
                    return Some(found);
                }
            }
            if self.taken == 0 || self.taken.saturating_mul(RECOUNT) < self.all.len() {
                return None;
            }
            self.count(admission.most(), now);
        }
    }

    fn take(&mut self, displaced: &DisplacedConnection<Weak<C>>, now: u32) -> Option<FoundPlace> {
        let connection = displaced.connection.upgrade()?;
        let (caller, holder) = (connection.shown_caller(), connection.holder());
        let permit = connection.take_place(EvictionReason::Share, now)?;
        let is_due = self.is_due(&holder, now);
        let report = is_due.then_some(OverdrawnHolder { caller, held: displaced.held, share: displaced.share, holder });
        Some(FoundPlace { permit, report })
    }

    /// Records a report of this holder. Returns `false` if the last one was too recent.
    fn is_due(&mut self, holder: &ConnectionHolder, now: u32) -> bool {
        if self.reported.get(holder).is_some_and(|then| !over(*then, now, REPORT_EACH)) {
            return false;
        }
        if self.reported.len() >= MAX_REPORTED {
            self.reported.clear();
        }
        self.reported.insert(holder.clone(), now);
        true
    }

    fn count(&mut self, most: usize, now: u32) {
        let candidate = |(number, weak): (u64, &Weak<C>)| {
            let connection = weak.upgrade()?;
            let is_in_use = match connection.activity(now) {
                Activity::Unseated => return None,
                activity => activity == Activity::InUse,
            };
            Some(EvictionCandidate { connection: Weak::clone(weak), holder: connection.holder(), is_in_use, number })
        };
        let candidates = (0..).zip(&self.all).filter_map(candidate).collect();
        self.holdings = Some(Holdings::new(most, candidates));
        (self.counted, self.taken) = (Some(now), 0);
    }

    /// Takes the place of the connection that has been idle longest. Connections of unproved callers give way first, so
    /// that idle strangers cannot shut out callers with credentials.
    fn idle_place(&mut self, now: u32) -> Option<ConnectionPermit> {
        loop {
            while let Some(connection) = self.idlest.pop_front() {
                let connection = connection.upgrade();
                if let Some(place) = connection.and_then(|connection| connection.take_place(EvictionReason::Idle, now))
                {
                    return Some(place);
                }
            }
            // Search once per tick, so that a flood of connections does not become a flood of searches.
            if self.looked.replace(now) == Some(now) {
                return None;
            }
            self.idlest = self.find_idlest(now);
        }
    }

    fn find_idlest(&self, now: u32) -> VecDeque<Weak<C>> {
        let ranked = |weak: &Weak<C>| {
            let connection = weak.upgrade()?;
            let Activity::Idle(since) = connection.activity(now) else { return None };
            Some(((matches!(connection.holder(), ConnectionHolder::Proved(_)), since), Weak::clone(weak)))
        };
        let mut idle: Vec<_> = self.all.iter().filter_map(ranked).collect();
        idle.sort_by_key(|(rank, _)| *rank);
        idle.into_iter().map(|(_, connection)| connection).collect()
    }
}

#[cfg(test)]
mod tests;
