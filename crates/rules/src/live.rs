//! The outside as it is: counters, caches and positions that outlive a reload. Every lock is held for a few lookups only.

use crate::cache_store::CacheStore;
use crate::limiter::Limiter;
use crate::limits;
use crate::memory::{Memory, Miss};
use crate::outside::{CacheAsk, LimitAsk, Limited, Outside, Slot};
use bytes::Bytes;
use signalbox_engine::bridge::tasks::TaskState;
use signalbox_engine::keys::{ExchangeId, SessionKey};
use signalbox_engine::lock::LockResultExt;
use signalbox_wire::{Envelope, json};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// What the rules remember.
#[derive(Debug)]
pub(crate) struct Live {
    seed: u64,
    slots: Mutex<HashMap<Slot, Counts>>,
    limiter: Mutex<Limiter>,
    caches: Mutex<CacheStore>,
    memory: Memory,
}

#[derive(Copy, Clone, Default, Debug)]
struct Counts {
    draws: u64,
    positions: u64,
}

/// What was not kept because a bound was reached.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Overflows {
    /// Uses that were counted under a shared key, since there are too many keys.
    pub limiter_keys: u64,
    /// Answers that were too large for a cache.
    pub cache_entries: u64,
    /// Requests that were not remembered for their answer.
    pub remembered: u64,
}

impl Live {
    /// `seed` is for draws without a seed of their own.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            slots: Mutex::default(),
            limiter: Mutex::default(),
            caches: Mutex::default(),
            memory: Memory::default(),
        }
    }

    /// Forgets what belongs to rules that are gone.
    pub fn keep_only<'a>(&self, ids: impl Iterator<Item = &'a Arc<str>>) {
        let ids: HashSet<&str> = ids.map(AsRef::as_ref).collect();
        let stays = |slot: &Slot| ids.contains(&*slot.rule);
        self.slots.lock().unpoisoned().retain(|slot, _| stays(slot));
        self.limiter.lock().unpoisoned().keep(&stays);
        self.caches.lock().unpoisoned().keep(&stays);
    }

    /// Keeps a request until its answer. False if there is no room for it.
    pub fn remember(&self, exchange: (SessionKey, ExchangeId), request: &Envelope) -> bool {
        self.memory.remember(exchange, request)
    }

    pub fn request(&self, exchange: (SessionKey, ExchangeId)) -> Option<Envelope> {
        self.memory.request(exchange)
    }

    /// Keeps the answer of an exchange that a cache had nothing for.
    pub fn answered(&self, exchange: (SessionKey, ExchangeId), message: &Envelope, now: Instant) {
        let misses = self.memory.misses(exchange);
        if let (false, Some(result)) = (misses.is_empty(), message.result_span().filter(|_| worth_keeping(message))) {
            let result = message.bytes().slice(result.range());
            let mut caches = self.caches.lock().unpoisoned();
            for miss in misses {
                caches.put(miss, result.clone(), now);
            }
        }
    }

    /// Keeps a request beyond its answer, which tells of a task, for the result that will come by it.
    pub fn keep_for_task(&self, exchange: (SessionKey, ExchangeId), task: &TaskState, now: Instant) {
        let stay = task.ttl.map_or(limits::SPAN, Duration::from_millis).min(limits::SPAN);
        self.memory.keep(exchange, now + stay, now);
    }

    pub fn finished(&self, exchange: (SessionKey, ExchangeId)) {
        self.memory.forget(exchange);
    }

    pub fn overflows(&self) -> Overflows {
        Overflows {
            limiter_keys: self.limiter.lock().unpoisoned().overflows,
            cache_entries: self.caches.lock().unpoisoned().overflows,
            remembered: self.memory.overflows(),
        }
    }

    fn count(&self, slot: &Slot, next: impl FnOnce(&mut Counts) -> &mut u64) -> u64 {
        let mut slots = self.slots.lock().unpoisoned();
        // Not by `entry`, so that the slot is copied only once in its life.
        if !slots.contains_key(slot) {
            slots.insert(slot.clone(), Counts::default());
        }
        let Some(counts) = slots.get_mut(slot) else { return 0 };
        let number = next(counts);
        *number += 1;
        *number - 1
    }
}

/// A result that is whole, and no error: an answer that asks for more, or that is a task, is not to be given to another call.
fn worth_keeping(message: &Envelope) -> bool {
    let bytes = message.bytes();
    let failed = message.result_member("isError").is_some_and(|span| span.of(bytes) == b"true");
    let partial = message.result_member("resultType").is_some_and(|span| !json::key_eq(span.of(bytes), "complete"));
    !failed && !partial && message.result_member("task").is_none()
}

impl Outside for Live {
    fn limit(&self, ask: &LimitAsk<'_>) -> Limited {
        self.limiter.lock().unpoisoned().ask(ask)
    }

    fn draw(&self, slot: &Slot, seed: Option<u64>) -> u64 {
        let number = self.count(slot, |counts| &mut counts.draws);
        mixed(seed.unwrap_or(self.seed ^ crate::rule_set::fnv(u64::from(slot.action), slot.rule.as_bytes())), number)
    }

    fn position(&self, slot: &Slot) -> u64 {
        self.count(slot, |counts| &mut counts.positions)
    }

    fn cached(&self, ask: &CacheAsk<'_>) -> Option<Bytes> {
        let found = self.caches.lock().unpoisoned().get(ask);
        if let (None, Some(exchange)) = (&found, ask.exchange) {
            let miss = Miss { slot: ask.slot.clone(), key: ask.key.into(), ttl: ask.ttl, max_entries: ask.max_entries };
            self.memory.missed(exchange, miss);
        }
        found
    }

    fn unix_ms(&self, now: u64) -> u64 {
        now
    }
}

/// The number at this place of a seed's row (SplitMix64).
pub(crate) fn mixed(seed: u64, place: u64) -> u64 {
    let mut number = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
