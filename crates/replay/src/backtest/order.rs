//! Puts events into the order in which the rules met them.
//!
//! Each thread of a gateway hands its facts to the tape in batches, so entries of different threads can be out of order by some
//! milliseconds, and their times with them. Events that used shared state tell their turn; the others go by their time. A
//! bounded number of events waits so that those which come late find their place.

use super::event::Event;
use super::open::Open;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Most events that wait.
const MAX_WAITING: usize = 16_384;
/// Most bytes of messages that are held at once.
const MAX_BYTES: usize = 64 << 20;
/// Most exchanges without an end; beyond, the oldest is given up.
const MAX_OPEN: usize = 100_000;

/// Where the next event of an exchange stands.
#[derive(Copy, Clone, Debug)]
enum Place {
    Turn(u64, i128),
    Time(u64, u64),
}

/// An exchange, where its next event stands, and how many bytes of it are counted.
#[derive(Default, Debug)]
struct Standing {
    open: Open,
    place: Option<Place>,
    counted: usize,
}

/// The exchanges whose events wait or may still come.
#[derive(Default, Debug)]
pub(super) struct Order {
    open: HashMap<u64, Standing>,
    /// In the order in which they began, to find the oldest.
    begun: VecDeque<u64>,
    by_turn: BTreeSet<(u64, i128, u64)>,
    by_time: BTreeSet<(u64, u64, u64)>,
    arrived: u64,
    waiting: usize,
    bytes: usize,
    /// When the tape began.
    began: u64,
    /// The time on the tape's clock at which the turns begin to count; the earliest that any entry tells.
    origin: Option<i128>,
}

impl Order {
    /// For a tape that began then.
    pub fn new(began: u64) -> Self {
        Self { began, ..Self::default() }
    }

    /// The exchange of this number, which begins now if it is not known.
    pub fn open(&mut self, number: u64) -> &mut Open {
        let begun = &mut self.begun;
        let entry = self.open.entry(number).or_insert_with(|| {
            begun.push_back(number);
            Default::default()
        });
        &mut entry.open
    }

    /// Adds an event of an exchange.
    pub fn push(&mut self, number: u64, event: Event) {
        if let Some(turn) = event.turn {
            let origin = i128::from(event.at) - turn.since;
            self.origin = Some(self.origin.map_or(origin, |known| known.min(origin)));
        }
        self.arrived += 1;
        self.waiting += 1;
        self.bytes += event.weight();
        let arrived = self.arrived;
        let open = self.open(number);
        open.turned += usize::from(event.turn.is_some());
        open.queue.push_back((arrived, event));
        self.place(number);
    }

    /// The time of an entry, counted as turns are.
    pub fn since(&self, at: u64) -> i128 {
        i128::from(at) - self.origin.unwrap_or_else(|| i128::from(self.began))
    }

    /// True if the next event should not wait any longer.
    pub fn is_full(&self) -> bool {
        self.waiting > MAX_WAITING || self.bytes > MAX_BYTES && self.waiting > 0
    }

    /// An exchange that has to be given up, because there are too many.
    pub fn surplus(&mut self) -> Option<u64> {
        if self.open.len() <= MAX_OPEN {
            return None;
        }
        while let Some(oldest) = self.begun.pop_front() {
            if self.open.contains_key(&oldest) {
                return Some(oldest);
            }
        }
        None
    }

    /// The next event, when it was, and its exchange, which has to be given back.
    pub fn pop(&mut self) -> Option<(u64, Open, Event, i128)> {
        let turn = self.by_turn.first().copied();
        let time = self.by_time.first().copied();
        let number = match (turn, time) {
            (Some((_, since, number)), Some((at, ..))) if since <= self.since(at) => number,
            (Some((.., number)), None) | (_, Some((.., number))) => number,
            (None, None) => return None,
        };
        self.unplace(number);
        let Standing { mut open, counted, .. } = self.open.remove(&number)?;
        let (_, event) = open.queue.pop_front()?;
        self.bytes = self.bytes.saturating_sub(counted + event.weight());
        self.waiting = self.waiting.saturating_sub(1);
        open.turned -= usize::from(event.turn.is_some());
        let since = event.turn.map_or_else(|| self.since(event.at), |turn| turn.since);
        Some((number, open, event, since))
    }

    /// Takes an exchange back, unless it is over.
    pub fn give_back(&mut self, number: u64, open: Open) {
        if open.finished && open.queue.is_empty() {
            return self.forget_ended();
        }
        self.open.insert(number, Standing { open, place: None, counted: 0 });
        self.place(number);
    }

    /// The exchanges that are still open when the tape ends.
    pub fn unfinished(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.open.keys().copied().collect();
        numbers.sort_unstable();
        numbers
    }

    fn forget_ended(&mut self) {
        if self.begun.len() > 2 * self.open.len() + MAX_WAITING {
            self.begun.retain(|number| self.open.contains_key(number));
        }
    }

    fn place(&mut self, number: u64) {
        self.unplace(number);
        let Some(Standing { open, place, counted }) = self.open.get_mut(&number) else { return };
        self.bytes = (self.bytes + open.weight()).saturating_sub(*counted);
        *counted = open.weight();
        let turned = (open.turned > 0).then(|| open.queue.iter().find_map(|(_, event)| event.turn)).flatten();
        *place = match (turned, open.queue.front()) {
            (Some(turn), _) => Some(Place::Turn(turn.number, turn.since)),
            (None, Some((arrived, event))) => Some(Place::Time(event.at, *arrived)),
            (None, None) => None,
        };
        match *place {
            Some(Place::Turn(turn, since)) => drop(self.by_turn.insert((turn, since, number))),
            Some(Place::Time(at, arrived)) => drop(self.by_time.insert((at, arrived, number))),
            None => {}
        }
    }

    fn unplace(&mut self, number: u64) {
        let Some(standing) = self.open.get_mut(&number) else { return };
        match standing.place.take() {
            Some(Place::Turn(turn, since)) => drop(self.by_turn.remove(&(turn, since, number))),
            Some(Place::Time(at, arrived)) => drop(self.by_time.remove(&(at, arrived, number))),
            None => {}
        }
    }
}
