//! All connections of a front: ends those that take too long, and finds the one that gives its place to another.

use super::FrontShared;
use super::client_connection::{CUT, ClientConnection, over, verdict};
use crate::admission::ConnectionPermit;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

/// The connections of a front.
#[derive(Default)]
pub struct ClientConnections {
    all: Vec<Weak<ClientConnection>>,
    /// Idle connections in the order in which they give way, as of `looked`.
    idlest: VecDeque<Weak<ClientConnection>>,
    /// The tick at which idle connections were last looked for.
    looked: Option<u32>,
}

impl ClientConnections {
    /// Looks after one more.
    pub fn add(&mut self, connection: &Arc<ClientConnection>) {
        self.all.push(Arc::downgrade(connection));
    }

    /// True where there was none when last looked.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Moves the clock and tells those that have taken too long, and wakes all of them when the front stops. That is
    /// repeated at every tick until it is followed.
    pub fn tick(&mut self, front: &FrontShared) {
        let now = front.clock.advance();
        let stopping = front.stopping.load(Ordering::Acquire);
        self.all.retain(|connection| {
            let Some(connection) = connection.upgrade() else { return false };
            let spec = &connection.front.spec;
            let slow = connection.stuck().is_some_and(|since| over(since, now, spec.reader_timeout));
            let late = verdict(connection.doing(), now, spec.header_timeout);
            if !connection.is_cut() {
                connection.count(slow, late);
            }
            let order = late | if slow { CUT } else { 0 };
            if order != 0 || stopping {
                connection.order(order);
            }
            true
        });
    }

    /// Takes the place of the idlest connection for a new one. Connections whose caller has proved nothing give way first, so
    /// that idle strangers cannot shut out callers who prove themselves. `None` if all connections are in use.
    pub fn make_room(&mut self, front: &FrontShared) -> Option<ConnectionPermit> {
        let now = front.clock.advance();
        loop {
            while let Some(connection) = self.idlest.pop_front() {
                if let Some(place) = connection.upgrade().and_then(|connection| connection.evict(now)) {
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

    fn find_idlest(&self, now: u32) -> VecDeque<Weak<ClientConnection>> {
        let rank = |connection: &ClientConnection| Some((connection.is_proved(), connection.idle_since(now)?));
        let ranked = |weak: &Weak<ClientConnection>| Some((rank(&*weak.upgrade()?)?, Weak::clone(weak)));
        let mut idle: Vec<_> = self.all.iter().filter_map(ranked).collect();
        idle.sort_unstable_by_key(|(rank, _)| *rank);
        idle.into_iter().map(|(_, connection)| connection).collect()
    }
}
