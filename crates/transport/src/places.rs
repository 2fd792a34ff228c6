//! The places for connections: which connection has one, and which gives it to another.
//!
//! ```text
//! accept ──► a free place ──► an idle connection's place ──► the reserve, until the caller of the first request is known
//!                                                                        │
//!            a free place ◄── an idle connection's ◄── the newest stream of the holder with the most above its share
//! ```
//!
//! A connection in the reserve displaces no other until its request shows whose it is, so that silent
//! connections take nothing from others. In the reserve, the oldest connection of the address with the most of
//! them gives way to the next.

pub(crate) mod fair_share;

pub use fair_share::LEAST_HOLDERS;

use crate::admission::{Admission, ConnectionPermit};
use crate::front_clock::over;
use fair_share::{Candidate, Displaced, Holder, Holdings};
use signalbox_engine::caller::Identity;
use signalbox_engine::{Caller, Fault, FaultKind, Principal, Proof};
use signalbox_runtime::Gateway;
use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::Duration;

/// The time during which a holder above its share is told of once, in the log and in the audit log.
pub const REPORT_EACH: Duration = Duration::from_secs(60);
/// Most holders that are remembered as told of.
const MAX_REPORTED: usize = 1024;
/// Connections are counted anew within a tick once one in so many has given its place away.
const RECOUNT: usize = 16;

/// The use that a connection makes of its place.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Activity {
    /// It carries nothing since this tick.
    Idle(u32),
    /// Its request has not come yet.
    Opening,
    /// A request of it is served.
    InUse,
    /// It has no place, or one in the reserve.
    Unseated,
}

/// The reason for which a connection gives its place away.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Taking {
    /// It is idle.
    Idle,
    /// Its holder has more than its share.
    Share,
    /// Others wait for its place in the reserve.
    Reserve,
}

/// A connection that can give its place away.
pub(crate) trait Placed {
    /// The caller of its last request, if it is known.
    fn known_caller(&self) -> Option<Caller>;
    /// The remote address.
    fn address(&self) -> Option<SocketAddr>;
    /// The name of its transport in records.
    fn transport(&self) -> &'static str;
    /// The use that it makes of its place at this tick.
    fn activity(&self, now: u32) -> Activity;
    /// Takes its place and ends the connection. `None` if the reason does not hold any more.
    fn take_place(&self, taking: Taking, now: u32) -> Option<ConnectionPermit>;

    /// The party that it counts for.
    fn holder(&self) -> Holder {
        Holder::of(self.known_caller().as_ref(), self.address())
    }

    /// The caller in records about the connection: an unknown one from its address while none is known.
    fn shown_caller(&self) -> Caller {
        self.known_caller().unwrap_or_else(|| unknown_caller(self.address(), self.transport()))
    }
}

/// A caller of which nothing but the address is known.
pub(crate) fn unknown_caller(address: Option<SocketAddr>, transport: &'static str) -> Caller {
    let (principal, proof, claims) = (Principal::named("unknown"), Proof::Unproved, Vec::new());
    Caller::new(Identity { principal, proof, claims, address, transport, standing: None })
}

/// A holder from which places were taken.
#[derive(Debug)]
pub(crate) struct Overdrawn {
    /// Its caller, or an unknown one from its address.
    pub caller: Caller,
    /// Number of connections that it had.
    pub held: usize,
    /// Number of connections that it may keep while others want places.
    pub share: usize,
    holder: Holder,
}

impl Overdrawn {
    /// Tells the operator and the audit log.
    pub fn report(&self, gateway: &Gateway) {
        let Self { held, share, .. } = self;
        let name = match &self.holder {
            Holder::Proved(principal) => principal.as_str().to_owned(),
            Holder::Unproved(address) => {
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

/// A place for a connection, and the holder to report that had too many, if any.
pub(crate) struct FoundPlace {
    /// The place.
    pub permit: ConnectionPermit,
    /// The holder that it was taken from, at most once in [`REPORT_EACH`].
    pub report: Option<Overdrawn>,
}

/// All connections of a front, in the order in which they were opened.
pub(crate) struct Places<C> {
    all: Vec<Weak<C>>,
    /// Connections in the reserve, the oldest first.
    reserve: VecDeque<Weak<C>>,
    /// Idle connections in the order in which they give way, as of `looked`.
    idlest: VecDeque<Weak<C>>,
    /// The tick at which idle connections were last looked for.
    looked: Option<u32>,
    /// The connections in use by holder, as of `counted`.
    holdings: Option<Holdings<Weak<C>>>,
    /// The tick at which connections were last counted.
    counted: Option<u32>,
    /// Connections in use that were asked for their places since then, those among them that had ended.
    taken: usize,
    /// The tick at which each holder was last reported.
    reported: HashMap<Holder, u32>,
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

impl<C: Placed> Places<C> {
    /// Adds a connection that was opened just now.
    pub fn add(&mut self, connection: &Arc<C>, is_provisional: bool) {
        self.all.push(Arc::downgrade(connection));
        if is_provisional {
            self.reserve.push_back(Arc::downgrade(connection));
        }
    }

    /// True if there was none when they were last gone through.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Calls `each` with every open connection, and forgets the others.
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

    /// Takes the place of the oldest connection of the address that has the most in the reserve, so that a flood from
    /// one address closes its own connections.
    fn reserved_place(&mut self, now: u32) -> Option<ConnectionPermit> {
        let is_reserved = |connection: Arc<C>| connection.activity(now) == Activity::Unseated;
        self.reserve.retain(|connection| connection.upgrade().is_some_and(is_reserved));
        while !self.reserve.is_empty() {
            let mut addresses: HashMap<Holder, (usize, Reverse<usize>)> = HashMap::new();
            for (at, connection) in self.reserve.iter().enumerate() {
                let address = connection.upgrade().and_then(|connection| connection.address());
                addresses.entry(Holder::of(None, address)).or_insert((0, Reverse(at))).0 += 1;
            }
            let (_, Reverse(oldest)) = addresses.into_values().max()?;
            let connection = self.reserve.remove(oldest)?.upgrade();
            if let Some(place) = connection.and_then(|connection| connection.take_place(Taking::Reserve, now)) {
                return Some(place);
            }
        }
        None
    }

    /// Finds a place for a connection of this holder: a free one, that of an idle connection, or that of the newest
    /// stream of the holder with the most connections above its share.
    pub fn make_room(&mut self, admission: &Arc<Admission>, holder: &Holder, now: u32) -> Option<FoundPlace> {
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

    fn take(&mut self, displaced: &Displaced<Weak<C>>, now: u32) -> Option<FoundPlace> {
        let connection = displaced.connection.upgrade()?;
        let (caller, holder) = (connection.shown_caller(), connection.holder());
        let permit = connection.take_place(Taking::Share, now)?;
        let is_due = self.is_due(&holder, now);
        let report = is_due.then_some(Overdrawn { caller, held: displaced.held, share: displaced.share, holder });
        Some(FoundPlace { permit, report })
    }

    /// Notes a report of this holder. False if there was one a moment ago.
    fn is_due(&mut self, holder: &Holder, now: u32) -> bool {
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
            Some(Candidate { connection: Weak::clone(weak), holder: connection.holder(), is_in_use, number })
        };
        let candidates = (0..).zip(&self.all).filter_map(candidate).collect();
        self.holdings = Some(Holdings::new(most, candidates));
        (self.counted, self.taken) = (Some(now), 0);
    }

    /// Takes the place of the idlest connection. Connections whose caller has proved nothing give way first, so that
    /// idle strangers cannot shut out callers who prove themselves.
    fn idle_place(&mut self, now: u32) -> Option<ConnectionPermit> {
        loop {
            while let Some(connection) = self.idlest.pop_front() {
                let connection = connection.upgrade();
                if let Some(place) = connection.and_then(|connection| connection.take_place(Taking::Idle, now)) {
                    return Some(place);
                }
            }
            // Once a tick, so that a flood of connections does not become a flood of searches.
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
            Some(((matches!(connection.holder(), Holder::Proved(_)), since), Weak::clone(weak)))
        };
        let mut idle: Vec<_> = self.all.iter().filter_map(ranked).collect();
        idle.sort_by_key(|(rank, _)| *rank);
        idle.into_iter().map(|(_, connection)| connection).collect()
    }
}

#[cfg(test)]
mod tests;
