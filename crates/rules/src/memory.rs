//! What is remembered of a request until its answer comes.

use crate::limits;
use crate::outside::Slot;
use signalbox_engine::keys::{ExchangeId, SessionKey};
use signalbox_wire::Envelope;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Key = (SessionKey, ExchangeId);

/// A cache that had nothing for a request, and wants its answer.
#[derive(Clone, Debug)]
pub(crate) struct Miss {
    pub slot: Slot,
    pub key: Box<str>,
    pub ttl: Duration,
    pub max_entries: usize,
}

#[derive(Debug, Default)]
struct Remembered {
    request: Option<Envelope>,
    misses: Vec<Miss>,
}

/// Requests by their exchange.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// How many there are, so that most exchanges end without the lock.
    count: AtomicUsize,
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    exchanges: HashMap<Key, Remembered>,
    bytes: usize,
    overflows: u64,
}

impl Memory {
    /// Keeps a request. False where there is no room for it.
    pub fn remember(&self, key: Key, request: &Envelope) -> bool {
        let mut inside = self.lock();
        let length = request.bytes().len();
        if inside.bytes + length > limits::REMEMBERED_BYTES || !inside.has_room(key) {
            inside.overflows += 1;
            return false;
        }
        let before = inside.exchanges.entry(key).or_default().request.replace(request.clone());
        inside.bytes += length;
        inside.bytes -= before.map_or(0, |before| before.bytes().len());
        self.counted(&inside);
        true
    }

    pub fn missed(&self, key: Key, miss: Miss) {
        let mut inside = self.lock();
        if !inside.has_room(key) {
            inside.overflows += 1;
            return;
        }
        inside.exchanges.entry(key).or_default().misses.push(miss);
        self.counted(&inside);
    }

    pub fn request(&self, key: Key) -> Option<Envelope> {
        if self.is_empty() {
            return None;
        }
        self.lock().exchanges.get(&key)?.request.clone()
    }

    pub fn misses(&self, key: Key) -> Vec<Miss> {
        if self.is_empty() {
            return vec![];
        }
        self.lock().exchanges.get_mut(&key).map(|one| std::mem::take(&mut one.misses)).unwrap_or_default()
    }

    pub fn forget(&self, key: Key) {
        if self.is_empty() {
            return;
        }
        let mut inside = self.lock();
        let gone = inside.exchanges.remove(&key).and_then(|one| one.request);
        inside.bytes -= gone.map_or(0, |request| request.bytes().len());
        self.counted(&inside);
    }

    pub fn overflows(&self) -> u64 {
        self.lock().overflows
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn counted(&self, inside: &Inside) {
        self.count.store(inside.exchanges.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inside {
    fn has_room(&self, key: Key) -> bool {
        self.exchanges.len() < limits::REMEMBERED || self.exchanges.contains_key(&key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_requests_are_remembered_than_there_is_room_for() {
        let memory = Memory::default();
        let request = |text: &str| Envelope::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{text}"}}"#).into());
        let key = |number: usize| (SessionKey(1), ExchangeId(number as u64));
        let small = request("x").unwrap();
        assert!((0..limits::REMEMBERED).all(|number| memory.remember(key(number), &small)));
        assert_eq!(memory.overflows(), 0);
        assert!(!memory.remember(key(limits::REMEMBERED), &small));
        assert_eq!((memory.overflows(), memory.request(key(limits::REMEMBERED)).is_none()), (1, true));
        memory.remember(key(0), &small);
        memory.forget(key(1));
        memory.remember(key(limits::REMEMBERED), &small);
        assert_eq!(memory.overflows(), 1, "there is room again, and one that is known needs none");
        let large = Memory::default();
        let message = request(&"x".repeat(limits::REMEMBERED_BYTES / 2)).unwrap();
        assert!(large.remember(key(0), &message) && !large.remember(key(1), &message));
        assert_eq!(large.overflows(), 1, "bytes count too");
    }
}
