//! Answers stored for a limited time. Each cache is limited in entries, and all of them together in bytes.

use crate::limits;
use crate::memory::CacheMiss;
use crate::outside::{CacheAsk, Slot};
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

#[derive(Debug, Default)]
pub(crate) struct CacheStore {
    caches: HashMap<Slot, AnswerCache>,
    bytes: usize,
    pub overflows: u64,
}

#[derive(Debug, Default)]
struct AnswerCache {
    entries: HashMap<Box<str>, (Bytes, Instant)>,
    /// Keys in insertion order, without duplicates.
    order: VecDeque<Box<str>>,
}

impl AnswerCache {
    /// Removes an entry and returns its size.
    fn remove(&mut self, key: &str) -> usize {
        let Some((bytes, _)) = self.entries.remove(key) else { return 0 };
        self.order.retain(|one| **one != *key);
        bytes.len()
    }

    /// Removes the oldest entry and returns its size.
    fn remove_oldest(&mut self) -> Option<usize> {
        let key = self.order.pop_front()?;
        Some(self.entries.remove(&key).map_or(0, |(bytes, _)| bytes.len()))
    }
}

impl CacheStore {
    pub fn get(&mut self, ask: &CacheAsk<'_>) -> Option<Bytes> {
        let kept = self.caches.get_mut(ask.slot)?;
        let (bytes, until) = kept.entries.get(ask.key)?;
        if *until > ask.now {
            return Some(bytes.clone());
        }
        self.bytes -= kept.remove(ask.key);
        None
    }

    pub fn put(&mut self, miss: CacheMiss, result: Bytes, now: Instant) {
        if result.len() > limits::CACHE_ENTRY {
            self.overflows += 1;
            return;
        }
        let kept = self.caches.entry(miss.slot).or_default();
        self.bytes -= kept.remove(&miss.key);
        while kept.entries.len() >= miss.max_entries {
            let Some(freed) = kept.remove_oldest() else { break };
            self.bytes -= freed;
        }
        while self.bytes + result.len() > limits::CACHE_BYTES {
            let Some(freed) = kept.remove_oldest() else {
                self.overflows += 1;
                return;
            };
            self.bytes -= freed;
        }
        self.bytes += result.len();
        // A slice would keep the whole message alive.
        let result = Bytes::copy_from_slice(&result);
        kept.order.push_back(miss.key.clone());
        kept.entries.insert(miss.key, (result, now + miss.ttl));
    }

    pub fn keep(&mut self, stays: &dyn Fn(&Slot) -> bool) {
        self.caches.retain(|slot, _| stays(slot));
        let of = |kept: &AnswerCache| kept.entries.values().map(|(bytes, _)| bytes.len()).sum::<usize>();
        self.bytes = self.caches.values().map(of).sum();
    }
}
