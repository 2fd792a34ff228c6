//! Gathers the entries of each exchange.

use crate::Bodies;
use signalbox_engine::record::{Body, Content, Entry, StoreError};
use std::collections::{HashMap, VecDeque};

/// Maximum number of exchanges that are gathered at once. Beyond it, the oldest is returned incomplete.
const MAX_OPEN: usize = 10_000;
/// Maximum number of bytes of messages that are held.
const MAX_BYTES: usize = 64 << 20;
/// Maximum number of entries of one exchange that are held; a stream of notifications may be endless.
const MAX_ENTRIES: usize = 2_000;
/// Number of further entries after which a finished exchange is returned, since its last image may come late.
const LATE: u64 = 64;

/// An exchange, or an entry outside any exchange.
#[derive(Debug)]
pub enum Piece {
    /// Gathered entries of an exchange.
    Exchange(Vec<Entry>),
    /// An entry that belongs to no exchange.
    Loose(Box<Entry>),
}

#[derive(Debug)]
struct Open {
    entries: Vec<Entry>,
    bytes: usize,
    ended: Option<u64>,
}

/// Iterator that groups entries by exchange, with their bodies restored.
pub struct Gather<'a> {
    entries: &'a mut dyn Iterator<Item = Result<Entry, StoreError>>,
    bodies: Bodies,
    open: HashMap<u64, Open>,
    order: VecDeque<u64>,
    ended: VecDeque<u64>,
    bytes: usize,
    seen: u64,
}

impl<'a> Gather<'a> {
    /// Reads from `entries`, which must come in order.
    pub fn new(entries: &'a mut dyn Iterator<Item = Result<Entry, StoreError>>) -> Self {
        Self {
            entries,
            bodies: Bodies::default(),
            open: HashMap::new(),
            order: VecDeque::new(),
            ended: VecDeque::new(),
            bytes: 0,
            seen: 0,
        }
    }

    fn add(&mut self, number: u64, entry: Entry) {
        let weight = match &entry.content {
            Content::Message(message) => match &message.body {
                Body::Whole(bytes) => bytes.len(),
                _ => 0,
            },
            _ => 0,
        };
        let order = &mut self.order;
        let open = self.open.entry(number).or_insert_with(|| {
            order.push_back(number);
            Open { entries: vec![], bytes: 0, ended: None }
        });
        if matches!(entry.content, Content::Finished(_)) && open.ended.is_none() {
            open.ended = Some(self.seen);
            self.ended.push_back(number);
        } else if open.entries.len() >= MAX_ENTRIES {
            return;
        }
        open.entries.push(entry);
        open.bytes += weight;
        self.bytes += weight;
    }

    fn due(&mut self) -> Option<Piece> {
        if let Some(number) = self.ended.front().copied() {
            let late = self.open.get(&number).and_then(|open| open.ended).is_none_or(|ended| self.seen - ended >= LATE);
            if late {
                self.ended.pop_front();
                if let Some(piece) = self.give(number) {
                    return Some(piece);
                }
            }
        }
        if self.open.len() > MAX_OPEN || self.bytes > MAX_BYTES {
            return self.oldest();
        }
        None
    }

    fn oldest(&mut self) -> Option<Piece> {
        loop {
            let number = self.order.pop_front()?;
            if let Some(piece) = self.give(number) {
                return Some(piece);
            }
        }
    }

    fn give(&mut self, number: u64) -> Option<Piece> {
        let open = self.open.remove(&number)?;
        self.bytes -= open.bytes;
        // Drop returned exchanges from the front, so that the queue does not grow with the tape.
        while self.order.front().is_some_and(|number| !self.open.contains_key(number)) {
            self.order.pop_front();
        }
        Some(Piece::Exchange(open.entries))
    }
}

impl Iterator for Gather<'_> {
    type Item = Result<Piece, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(piece) = self.due() {
                return Some(Ok(piece));
            }
            let entry = match self.entries.next() {
                Some(Ok(entry)) => self.bodies.whole(entry),
                Some(Err(error)) => return Some(Err(error)),
                None => return self.oldest().map(Ok),
            };
            self.seen += 1;
            match entry.exchange {
                Some(number) => self.add(number, entry),
                None => return Some(Ok(Piece::Loose(Box::new(entry)))),
            }
        }
    }
}
