//! The connections of a front, and the clock that ends those that are over time.

use super::FrontState;
use super::client_connection::{CUT, ClientConnection, phase_timeout};
use crate::admission::ConnectionPermit;
use crate::front_clock::over;
use crate::places::Places;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// The connections of a front.
#[derive(Default)]
pub struct ClientConnections {
    pub(super) places: Places<ClientConnection>,
}

impl ClientConnections {
    pub fn add(&mut self, connection: &Arc<ClientConnection>) {
        self.places.add(connection, connection.is_provisional());
    }

    /// Finds a place for a new connection: a free one, that of an idle connection, or one in the reserve.
    pub fn seat(&mut self, front: &FrontState) -> Option<ConnectionPermit> {
        self.places.seat(&front.spec.admission, front.clock.advance())
    }

    /// Returns `true` if there was no connection at the last check.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Advances the clock, orders connections that are over time to end, and wakes all of them when the front stops. It
    /// repeats an order at every tick until it is followed.
    pub fn tick(&mut self, front: &FrontState) {
        let now = front.clock.advance();
        let stopping = front.stopping.load(Ordering::Acquire);
        self.places.for_each(|connection| {
            let spec = &connection.front.spec;
            let slow = connection.stuck().is_some_and(|since| over(since, now, spec.reader_timeout));
            let (phase, since) = connection.phase();
            let late = phase_timeout(phase, since, now, spec.header_timeout);
            if !connection.is_cut() {
                connection.count(slow, late);
            }
            let order = late | connection.parting() | if slow { CUT } else { 0 };
            if order != 0 || stopping {
                connection.order(order);
            }
        });
    }
}
