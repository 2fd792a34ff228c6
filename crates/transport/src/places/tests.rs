use super::*;
use crate::front_clock::ticks;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{Principal, Proof};
use std::sync::Mutex;

/// A connection of a caller, or of an unproved one, that does what its test says.
struct Connection {
    caller: Option<Caller>,
    activity: Mutex<Activity>,
    address: Option<SocketAddr>,
    place: Mutex<Option<ConnectionPermit>>,
}

impl Connection {
    fn has_place(&self) -> bool {
        self.place.lock().unpoisoned().is_some()
    }
}

impl Evictable for Connection {
    fn known_caller(&self) -> Option<Caller> {
        self.caller.clone()
    }

    fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    fn transport(&self) -> &'static str {
        "http"
    }

    fn activity(&self, _: u32) -> Activity {
        if self.has_place() { *self.activity.lock().unpoisoned() } else { Activity::Unseated }
    }

    fn take_place(&self, _: EvictionReason, _: u32) -> Option<ConnectionPermit> {
        self.place.lock().unpoisoned().take()
    }
}

/// A front with so many places, and its connections.
struct Front {
    admission: Arc<Admission>,
    places: Places<Connection>,
    connections: Vec<Arc<Connection>>,
    /// The address of connections that are opened next.
    address: Option<SocketAddr>,
}

impl Front {
    fn new(most: usize) -> Self {
        Self {
            admission: Admission::new(most, &[], &[]),
            places: Places::default(),
            connections: Vec::new(),
            address: None,
        }
    }

    fn add(&mut self, permit: ConnectionPermit, principal: Option<&str>, activity: Activity) {
        let is_provisional = permit.is_provisional();
        let connection = Arc::new(Connection {
            caller: principal.map(|name| Caller::of(Principal::named(name), Proof::ApiKey, "http")),
            activity: Mutex::new(if is_provisional { Activity::Unseated } else { activity }),
            address: self.address,
            place: Mutex::new(Some(permit)),
        });
        self.places.add(&connection, is_provisional);
        self.connections.push(connection);
    }

    /// Opens connections of this caller while there are places.
    fn fill(&mut self, principal: Option<&str>, activity: Activity) {
        while let Some(permit) = self.admission.enter() {
            self.add(permit, principal, activity);
        }
    }

    fn make_room(&mut self, principal: &str, now: u32) -> Option<FoundPlace> {
        self.places.make_room(&self.admission, &ConnectionHolder::Proved(Principal::named(principal)), now)
    }

    /// The connections that lost their places, by number.
    fn ended(&self) -> Vec<usize> {
        (0..self.connections.len()).filter(|at| !self.connections[*at].has_place()).collect()
    }
}

#[test]
fn idle_connections_give_way_before_streams_and_streams_only_for_a_known_caller() {
    let mut front = Front::new(8);
    front.fill(Some("ada"), Activity::InUse);
    *front.connections[3].activity.lock().unpoisoned() = Activity::Idle(0);
    let first = front.places.seat(&front.admission, 5).unwrap();
    assert!(!first.is_provisional() && front.ended() == [3]);
    let second = front.places.seat(&front.admission, 5).unwrap();
    assert!(second.is_provisional(), "no stream ends for a connection whose caller is not known");
    let _places = [first, front.make_room("vic", 5).unwrap().permit];
    assert_eq!(front.ended(), [3, 7], "the newest stream");
}

#[test]
fn the_oldest_connection_in_the_reserve_gives_way() {
    let mut front = Front::new(1);
    front.fill(None, Activity::InUse);
    for _ in 0..crate::admission::RESERVE {
        let permit = front.places.seat(&front.admission, 1).unwrap();
        front.add(permit, None, Activity::Opening);
    }
    let place = front.places.seat(&front.admission, 1).unwrap();
    assert!(place.is_provisional());
    assert_eq!(front.ended(), [1]);
}

/// A flood of silent connections from one address closes its own, not that of another address.
#[test]
fn the_address_with_the_most_connections_in_the_reserve_gives_way() {
    let mut front = Front::new(1);
    front.fill(None, Activity::InUse);
    let seat = |front: &mut Front, address: &str| {
        front.address = Some(SocketAddr::new(address.parse().unwrap(), 1000));
        let permit = front.places.seat(&front.admission, 1).unwrap();
        front.add(permit, None, Activity::Opening);
    };
    seat(&mut front, "192.0.2.1");
    seat(&mut front, "192.0.2.1");
    for _ in 0..3 * crate::admission::RESERVE {
        seat(&mut front, "198.51.100.7");
    }
    assert!(!front.ended().iter().any(|ended| *ended < 3), "{:?}", front.ended());
    assert_eq!(front.ended().first(), Some(&3), "its oldest");
}

#[test]
fn a_holder_above_its_share_is_reported_once_in_a_while() {
    let mut front = Front::new(20);
    front.fill(Some("ada"), Activity::InUse);
    let found = front.make_room("vic", 1).unwrap();
    let report = found.report.unwrap();
    assert_eq!((report.held, report.share, report.caller.principal().as_str()), (20, 10, "ada"));
    let mut kept = vec![found.permit];
    for (now, is_told) in [(1, false), (2, false), (ticks(REPORT_EACH), false), (ticks(REPORT_EACH) + 1, true)] {
        let found = front.make_room("vic", now).unwrap();
        assert_eq!(found.report.is_some(), is_told, "at {now}");
        kept.push(found.permit);
    }
}

#[test]
fn a_flood_of_callers_is_not_a_flood_of_counts() {
    let mut front = Front::new(4);
    front.fill(Some("ada"), Activity::InUse);
    let _kept: Vec<_> = (0..2).map(|_| front.make_room("vic", 1).unwrap()).collect();
    assert!(front.make_room("vic", 1).is_none(), "two of four are Ada's share");
    assert_eq!(front.places.counted, Some(1));
    front.places.taken = 0;
    front.places.holdings = None;
    assert!(front.make_room("vic", 1).is_none(), "they are not counted twice in a tick");
}

#[test]
fn connections_that_have_ended_since_they_were_counted_are_counted_anew() {
    let mut front = Front::new(8);
    front.fill(Some("ada"), Activity::InUse);
    let first = front.make_room("vic", 1).unwrap();
    drop(first);
    // Within the same tick all others end, and another caller takes the places.
    front.connections.clear();
    front.fill(Some("eve"), Activity::InUse);
    assert!(front.make_room("vic", 1).is_some());
    assert_eq!(front.ended().len(), 1);
}
