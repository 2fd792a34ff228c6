//! Stores requests until their answer.

use crate::limits;
use crate::outside::Slot;
use signalbox_engine::keys::{ExchangeId, SessionKey};
use signalbox_engine::lock::LockResultExt;
use signalbox_wire::Envelope;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

type Key = (SessionKey, ExchangeId);

/// Cache miss of a request, whose answer will fill the cache.
#[derive(Clone, Debug)]
pub(crate) struct CacheMiss {
    pub slot: Slot,
    pub key: Box<str>,
    pub ttl: Duration,
    pub max_entries: usize,
}

#[derive(Debug, Default)]
struct PendingRequest {
    request: Option<Envelope>,
    misses: Vec<CacheMiss>,
    /// Expiry of a request kept for the result of a task, after its exchange ended.
    kept: Option<Instant>,
}

/// Store of requests by exchange.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    /// Number of entries. Lets most exchanges end without taking the lock.
    count: AtomicUsize,
    inside: Mutex<MemoryState>,
}

#[derive(Debug, Default)]
struct MemoryState {
    exchanges: HashMap<Key, PendingRequest>,
    /// Requests kept for the results of tasks, in insertion order.
    for_tasks: VecDeque<Key>,
    bytes: usize,
    overflows: u64,
}

impl Memory {
    /// Stores a request. Returns `false` if there is no space.
    pub fn remember(&self, key: Key, request: &Envelope) -> bool {
        let mut inside = self.lock();
        let length = request.bytes().len();
        if !inside.make_room(key, length) {
            inside.overflows += 1;
            return false;
        }
        let before = inside.exchanges.entry(key).or_default().request.replace(request.clone());
        inside.bytes += length;
        inside.bytes -= before.map_or(0, |before| before.bytes().len());
        self.update_count(&inside);
        true
    }

    pub fn add_miss(&self, key: Key, miss: CacheMiss) {
        let mut inside = self.lock();
        if !inside.make_room(key, 0) {
            inside.overflows += 1;
            return;
        }
        inside.exchanges.entry(key).or_default().misses.push(miss);
        self.update_count(&inside);
    }

    /// Keeps a request until `until`, even after its exchange ends. These requests are evicted first, oldest first, if
    /// space runs out.
    pub fn keep(&self, key: Key, until: Instant, now: Instant) {
        let mut inside = self.lock();
        let over = |inside: &MemoryState, key: &Key| inside.exchanges.get(key).is_none_or(|one| one.kept <= Some(now));
        while let Some(oldest) = inside.for_tasks.front().copied().filter(|oldest| over(&inside, oldest)) {
            inside.for_tasks.pop_front();
            inside.remove(oldest);
        }
        if let Some(one) = inside.exchanges.get_mut(&key).filter(|one| one.request.is_some()) {
            one.kept = Some(until);
            inside.for_tasks.push_back(key);
        }
        self.update_count(&inside);
    }

    pub fn request(&self, key: Key) -> Option<Envelope> {
        if self.is_empty() {
            return None;
        }
        self.lock().exchanges.get(&key)?.request.clone()
    }

    pub fn misses(&self, key: Key) -> Vec<CacheMiss> {
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
        match inside.exchanges.get_mut(&key).filter(|one| one.kept.is_some()) {
            Some(kept) => kept.misses = vec![],
            None => inside.remove(key),
        }
        self.update_count(&inside);
    }

    pub fn overflows(&self) -> u64 {
        self.lock().overflows
    }

    fn is_empty(&self) -> bool {
        self.count.load(Ordering::Acquire) == 0
    }

    fn update_count(&self, inside: &MemoryState) {
        self.count.store(inside.exchanges.len(), Ordering::Release);
    }

    fn lock(&self) -> MutexGuard<'_, MemoryState> {
        self.inside.lock().unpoisoned()
    }
}

impl MemoryState {
    /// Makes space for `bytes` bytes by evicting requests kept for tasks. Returns `false` if that is not enough.
    fn make_room(&mut self, key: Key, bytes: usize) -> bool {
        while !self.has_room(key, bytes) {
            let Some(oldest) = self.for_tasks.pop_front() else { return false };
            self.remove(oldest);
        }
        true
    }

    fn has_room(&self, key: Key, bytes: usize) -> bool {
        let counted = self.exchanges.len() < limits::REMEMBERED || self.exchanges.contains_key(&key);
        counted && self.bytes + bytes <= limits::REMEMBERED_BYTES
    }

    fn remove(&mut self, key: Key) {
        let gone = self.exchanges.remove(&key).and_then(|one| one.request);
        self.bytes -= gone.map_or(0, |request| request.bytes().len());
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

    #[test]
    fn what_is_kept_for_a_task_outlives_its_exchange_and_makes_room_for_others() {
        let memory = Memory::default();
        let half =
            format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{}"}}"#, "x".repeat(limits::REMEMBERED_BYTES / 2 - 64));
        let message = Envelope::parse(half.into()).unwrap();
        let key = |number: u64| (SessionKey(1), ExchangeId(number));
        let (now, minute) = (Instant::now(), Duration::from_secs(60));
        assert!(memory.remember(key(1), &message));
        memory.keep(key(1), now + minute, now);
        memory.forget(key(1));
        assert!(memory.request(key(1)).is_some());
        assert!(memory.remember(key(2), &message));
        assert!(memory.remember(key(3), &message), "a call in flight goes before a task");
        assert!(memory.request(key(1)).is_none() && memory.request(key(2)).is_some());
        memory.forget(key(2));
        memory.keep(key(3), now + minute, now);
        memory.forget(key(3));
        assert!(memory.remember(key(4), &message));
        memory.keep(key(4), now + 2 * minute, now + minute);
        assert!(memory.request(key(3)).is_none(), "its time is over");
        memory.keep(key(9), now + minute, now);
        assert_eq!(memory.lock().for_tasks, [key(4)], "nothing is kept of what is not remembered");
    }
}
