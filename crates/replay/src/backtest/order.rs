//! Restores the order in which the rules saw the events.
//!
//! Each gateway thread writes its facts to the tape in batches, so entries of different threads, and their times, can
//! be out of order by some milliseconds. Events that used shared state carry a turn number, and the others are ordered
//! by time. A bounded number of events is held back so that late ones can be sorted in.

use super::event::Event;
use super::open_exchange::OpenExchange;
use std::collections::{BTreeSet, HashMap, VecDeque};

/// Maximum number of queued events.
const MAX_WAITING: usize = 16_384;
/// Maximum size of the stored messages in bytes.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of open exchanges. Beyond it, the oldest is closed.
const MAX_OPEN: usize = 100_000;

/// Sort key of an exchange's next event.
#[derive(Copy, Clone, Debug)]
enum Place {
    Turn(u64, i128),
    Time(u64, u64),
}

/// Exchange with the sort key of its next event, and its share of the byte count.
#[derive(Default, Debug)]
struct QueuedExchange {
    open: OpenExchange,
    place: Option<Place>,
    counted: usize,
}

/// Exchanges with queued or pending events.
#[derive(Default, Debug)]
pub(super) struct Order {
    open: HashMap<u64, QueuedExchange>,
    /// Exchange numbers in order of their start, to find the oldest.
    begun: VecDeque<u64>,
    by_turn: BTreeSet<(u64, i128, u64)>,
    by_time: BTreeSet<(u64, u64, u64)>,
    arrived: u64,
    waiting: usize,
    bytes: usize,
    /// Start of the tape.
    began: u64,
    /// Time on the tape's clock at which turns start. The earliest one implied by any entry.
    origin: Option<i128>,
}

impl Order {
    /// Creates the queue for a tape that started at `began`.
    pub fn new(began: u64) -> Self {
        Self { began, ..Self::default() }
    }

    /// Returns an exchange, creating it if needed.
    pub fn open(&mut self, number: u64) -> &mut OpenExchange {
        let begun = &mut self.begun;
        let entry = self.open.entry(number).or_insert_with(|| {
            begun.push_back(number);
            Default::default()
        });
        &mut entry.open
    }

    /// Queues an event of an exchange.
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

    /// Converts a time on the tape to time since the origin of the turns.
    pub fn since(&self, at: u64) -> i128 {
        i128::from(at) - self.origin.unwrap_or_else(|| i128::from(self.began))
    }

    /// Returns `true` if the next event must be processed to make room.
    pub fn is_full(&self) -> bool {
        self.waiting > MAX_WAITING || self.bytes > MAX_BYTES && self.waiting > 0
    }

    /// Returns the exchange to close if there are too many.
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

    /// Removes the next event. Returns it with its time and its exchange, which the caller must hand back with
    /// [`Self::give_back`].
    pub fn pop(&mut self) -> Option<(u64, OpenExchange, Event, i128)> {
        let turn = self.by_turn.first().copied();
        let time = self.by_time.first().copied();
        let number = match (turn, time) {
            (Some((_, since, number)), Some((at, ..))) if since <= self.since(at) => number,
            (Some((.., number)), None) | (_, Some((.., number))) => number,
            (None, None) => return None,
        };
        self.unplace(number);
        let QueuedExchange { mut open, counted, .. } = self.open.remove(&number)?;
        let (_, event) = open.queue.pop_front()?;
        self.bytes = self.bytes.saturating_sub(counted + event.weight());
        self.waiting = self.waiting.saturating_sub(1);
        open.turned -= usize::from(event.turn.is_some());
        let since = event.turn.map_or_else(|| self.since(event.at), |turn| turn.since);
        Some((number, open, event, since))
    }

    /// Takes an exchange back, and drops it if it is over.
    pub fn give_back(&mut self, number: u64, open: OpenExchange) {
        if open.finished && open.queue.is_empty() {
            return self.forget_ended();
        }
        self.open.insert(number, QueuedExchange { open, place: None, counted: 0 });
        self.place(number);
    }

    /// Returns the exchanges still open at the end of the tape.
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
        let Some(QueuedExchange { open, place, counted }) = self.open.get_mut(&number) else { return };
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
