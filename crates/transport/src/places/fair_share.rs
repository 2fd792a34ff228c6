//! Decides whose connection gives its place to a new one.
//!
//! Shares apply only while no place is free. All unproved connections together weigh as much as one proved caller, and
//! each address has a part of that: machines without credentials, however many, cannot take the places of callers with
//! credentials.

use signalbox_engine::{Caller, Principal, Proof};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Minimum divisor of the places: even a single holder leaves some of them to others.
pub const LEAST_HOLDERS: usize = 2;

/// The party that a connection counts for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ConnectionHolder {
    /// A caller with a verified credential.
    Proved(Principal),
    /// Remote address of an unproved caller; for IPv6 its first 64 bits, since one machine may vary the rest.
    Unproved(Option<IpAddr>),
}

impl ConnectionHolder {
    /// Returns the holder of a connection from this address whose last request had this caller.
    pub fn of(caller: Option<&Caller>, address: Option<SocketAddr>) -> Self {
        match caller {
            Some(caller) if caller.identity().proof != Proof::Unproved => Self::Proved(caller.principal().clone()),
            _ => Self::Unproved(address.map(|address| network(address.ip()))),
        }
    }
}

fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() >> 64 << 64)),
        v4 @ IpAddr::V4(_) => v4,
    }
}

/// Connections of several holders, by holder. `C` represents a connection.
#[derive(Debug)]
struct Group<K, C> {
    /// Connections of each holder; the last one gives way first.
    connections: HashMap<K, Vec<C>>,
    by_count: BTreeSet<(usize, K)>,
    total: usize,
}

impl<K: Clone + Ord + Hash, C> Group<K, C> {
    fn new(connections: HashMap<K, Vec<C>>) -> Self {
        let by_count = connections.iter().map(|(holder, all)| (all.len(), holder.clone())).collect();
        let total = connections.values().map(Vec::len).sum();
        Self { connections, by_count, total }
    }

    fn count(&self, holder: &K) -> usize {
        self.connections.get(holder).map_or(0, Vec::len)
    }

    /// Returns the number of holders, including this one.
    fn holders_with(&self, holder: Option<&K>) -> usize {
        let is_new = holder.is_some_and(|holder| !self.connections.contains_key(holder));
        self.connections.len() + usize::from(is_new)
    }

    /// Returns the holder other than `but` with the most connections, if it has more than `share`.
    fn largest_above(&self, share: usize, but: Option<&K>) -> Option<K> {
        let mut largest_first = self.by_count.iter().rev().filter(|(_, holder)| Some(holder) != but);
        largest_first.next().filter(|(count, _)| *count > share).map(|(_, holder)| holder.clone())
    }

    fn take(&mut self, holder: &K) -> Option<C> {
        let all = self.connections.get_mut(holder)?;
        let taken = all.pop()?;
        self.by_count.remove(&(all.len() + 1, holder.clone()));
        self.total -= 1;
        if all.is_empty() {
            self.connections.remove(holder);
        } else {
            self.by_count.insert((all.len(), holder.clone()));
        }
        Some(taken)
    }
}

/// A connection that loses its place, with the numbers for the report.
#[derive(PartialEq, Eq, Debug)]
pub struct DisplacedConnection<C> {
    pub connection: C,
    /// Number of connections that its holder had.
    pub held: usize,
    /// Number of connections that its holder may keep while others want places.
    pub share: usize,
}

/// A connection with the properties that decide when it gives way.
#[derive(Debug)]
pub struct EvictionCandidate<C> {
    pub connection: C,
    /// Party that the connection counts for.
    pub holder: ConnectionHolder,
    /// Set once its first request arrived, so that it holds its place for a stream or a call.
    pub is_in_use: bool,
    /// Sequence number in the order of arrival.
    pub number: u64,
}

/// Snapshot of the connections of all holders.
#[derive(Debug)]
pub struct Holdings<C> {
    most: usize,
    proved: Group<Principal, C>,
    unproved: Group<Option<IpAddr>, C>,
}

impl<C> Holdings<C> {
    /// Groups connections by holder, of which at most `most` may be open. Of each holder, the newest connection in use
    /// gives way first and connections without a request last.
    pub fn new(most: usize, mut candidates: Vec<EvictionCandidate<C>>) -> Self {
        candidates.sort_by_key(|candidate| (candidate.is_in_use, candidate.number));
        let (mut proved, mut unproved) = (HashMap::<_, Vec<C>>::new(), HashMap::<_, Vec<C>>::new());
        for EvictionCandidate { connection, holder, .. } in candidates {
            match holder {
                ConnectionHolder::Proved(principal) => proved.entry(principal).or_default().push(connection),
                ConnectionHolder::Unproved(address) => unproved.entry(address).or_default().push(connection),
            }
        }
        Self { most, proved: Group::new(proved), unproved: Group::new(unproved) }
    }

    /// Removes and returns the connection that gives its place to a new one of `claimant`. Returns `None` if no other
    /// holder has more than its share, or `claimant` already has its own.
    pub fn displace(&mut self, claimant: &ConnectionHolder) -> Option<DisplacedConnection<C>> {
        let principal = match claimant {
            ConnectionHolder::Proved(principal) => Some(principal),
            ConnectionHolder::Unproved(_) => None,
        };
        let unproved = usize::from(principal.is_none() || self.unproved.total > 0);
        let share = self.most / (self.proved.holders_with(principal) + unproved).max(LEAST_HOLDERS);
        let (address, each) = match claimant {
            ConnectionHolder::Proved(principal) if self.proved.count(principal) >= share => return None,
            ConnectionHolder::Proved(_) if self.unproved.total > share => (self.unproved.largest_above(0, None), share),
            ConnectionHolder::Proved(_) => (None, share),
            ConnectionHolder::Unproved(address) => {
                let each =
                    self.unproved.total.max(share) / self.unproved.holders_with(Some(address)).max(LEAST_HOLDERS);
                let other = self.unproved.largest_above(each, Some(address));
                (other.filter(|_| self.unproved.count(address) < each), each)
            }
        };
        if let Some(address) = address {
            let held = self.unproved.count(&address);
            let connection = self.unproved.take(&address)?;
            return Some(DisplacedConnection { connection, held, share: each });
        }
        if principal.is_none() && self.unproved.total >= share {
            return None;
        }
        let largest = self.proved.largest_above(share, principal)?;
        let held = self.proved.count(&largest);
        let connection = self.proved.take(&largest)?;
        Some(DisplacedConnection { connection, held, share })
    }
}

#[cfg(test)]
mod tests;
