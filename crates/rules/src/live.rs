//! State of live rules: counters, caches and positions that survive a reload. Locks are held for a few lookups only.

use crate::cache_store::CacheStore;
use crate::counted_calls::CountedCalls;
use crate::limiter::Limiter;
use crate::limits;
use crate::memory::{CacheMiss, Memory};
use crate::outside::{CacheAsk, InTurn, LimitAsk, LimitDecision, Outside, Slot, Turn};
use bytes::Bytes;
use signalbox_engine::bridge::tasks::TaskState;
use signalbox_engine::keys::{ExchangeId, SessionKey};
use signalbox_engine::lock::LockResultExt;
use signalbox_wire::{Envelope, json};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// State of the rules.
#[derive(Debug)]
pub(crate) struct Live {
    seed: u64,
    slots: Mutex<HashMap<Slot, Counts>>,
    limiter: Mutex<Limiter>,
    counted: CountedCalls,
    caches: Mutex<CacheStore>,
    memory: Memory,
    began: Instant,
    /// Number of uses of shared state. Counted under the lock of the state used, so that turns follow the order of use.
    turns: AtomicU64,
}

/// Cache entry made from an answer.
#[derive(Clone, Debug)]
pub(crate) struct StoredAnswer {
    pub rule: Arc<str>,
    pub ttl: Duration,
    pub turn: Turn,
}

#[derive(Copy, Clone, Default, Debug)]
struct Counts {
    draws: u64,
    positions: u64,
}

/// Counts of state dropped at a limit.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Overflows {
    /// Uses counted under a shared key, because there were too many keys.
    pub limiter_keys: u64,
    /// Answers too large for a cache.
    pub cache_entries: u64,
    /// Requests that could not be stored for their answer.
    pub remembered: u64,
}

impl Live {
    /// Creates empty state. `seed` is for draws without their own seed.
    pub fn new(seed: u64) -> Self {
        Self {
            seed,
            slots: Mutex::default(),
            limiter: Mutex::default(),
            counted: CountedCalls::default(),
            caches: Mutex::default(),
            memory: Memory::default(),
            began: Instant::now(),
            turns: AtomicU64::new(0),
        }
    }

    /// Returns the origin of the turns.
    pub fn began(&self) -> Instant {
        self.began
    }

    fn turn(&self, now: Instant) -> Turn {
        let since = match now.checked_duration_since(self.began) {
            Some(later) => later.as_nanos().cast_signed(),
            None => -self.began.duration_since(now).as_nanos().cast_signed(),
        };
        Turn { number: self.turns.fetch_add(1, Ordering::Relaxed), since }
    }

    /// Drops the state of rules that no longer exist.
    pub fn keep_only<'a>(&self, ids: impl Iterator<Item = &'a Arc<str>>) {
        let ids: HashSet<&str> = ids.map(AsRef::as_ref).collect();
        let stays = |slot: &Slot| ids.contains(&*slot.rule);
        self.slots.lock().unpoisoned().retain(|slot, _| stays(slot));
        self.limiter.lock().unpoisoned().keep(&stays);
        self.caches.lock().unpoisoned().keep(&stays);
    }

    /// Stores a request until its answer. Returns `false` if there is no space.
    pub fn remember(&self, exchange: (SessionKey, ExchangeId), request: &Envelope) -> bool {
        self.memory.remember(exchange, request)
    }

    pub fn request(&self, exchange: (SessionKey, ExchangeId)) -> Option<Envelope> {
        self.memory.request(exchange)
    }

    /// Stores the answer in the caches that missed for this exchange.
    pub fn store_answer(
        &self,
        exchange: (SessionKey, ExchangeId),
        message: &Envelope,
        now: Instant,
    ) -> Vec<StoredAnswer> {
        let misses = self.memory.misses(exchange);
        if misses.is_empty() {
            return vec![];
        }
        match message.result_span().filter(|_| worth_keeping(message)) {
            Some(result) => self.store(misses, &message.bytes().slice(result.range()), now),
            None => vec![],
        }
    }

    /// Marks the entry as unknown ([`UNKNOWN_ANSWER`]) in the caches that missed for this exchange.
    pub fn store_unknown_answer(&self, exchange: (SessionKey, ExchangeId), now: Instant) {
        self.store(self.memory.misses(exchange), &UNKNOWN_ANSWER, now);
    }

    fn store(&self, misses: Vec<CacheMiss>, result: &Bytes, now: Instant) -> Vec<StoredAnswer> {
        let mut caches = self.caches.lock().unpoisoned();
        let mut stored = Vec::with_capacity(misses.len());
        for miss in misses {
            stored.push(StoredAnswer { rule: Arc::clone(&miss.slot.rule), ttl: miss.ttl, turn: self.turn(now) });
            caches.put(miss, result.clone(), now);
        }
        stored
    }

    /// Keeps the request of a call that became a task until the task's result.
    pub fn keep_for_task(&self, exchange: (SessionKey, ExchangeId), task: &TaskState, now: Instant) {
        let stay = task.ttl.map_or(limits::SPAN, Duration::from_millis).min(limits::SPAN);
        self.memory.keep(exchange, now + stay, now);
    }

    pub fn finished(&self, exchange: (SessionKey, ExchangeId)) {
        self.memory.forget(exchange);
    }

    /// Forgets which limits have counted a call that is over.
    pub fn call_ended(&self, call: ExchangeId) {
        self.counted.forget(call);
    }

    pub fn overflows(&self) -> Overflows {
        Overflows {
            limiter_keys: self.limiter.lock().unpoisoned().overflows,
            cache_entries: self.caches.lock().unpoisoned().overflows,
            remembered: self.memory.overflows(),
        }
    }

    /// Returns the next number in a slot's sequence for a seed.
    pub fn seeded(&self, slot: &Slot, seed: u64) -> u64 {
        let mut slots = self.slots.lock().unpoisoned();
        mixed(seed, count(&mut slots, slot, |counts| &mut counts.draws))
    }
}

fn count(slots: &mut HashMap<Slot, Counts>, slot: &Slot, next: impl FnOnce(&mut Counts) -> &mut u64) -> u64 {
    // Avoids `entry`, which would clone the slot on every call.
    if !slots.contains_key(slot) {
        slots.insert(slot.clone(), Counts::default());
    }
    let Some(counts) = slots.get_mut(slot) else { return 0 };
    let number = next(counts);
    *number += 1;
    *number - 1
}

/// Marks a cache entry whose answer is unknown. No real result is empty.
pub(crate) const UNKNOWN_ANSWER: Bytes = Bytes::from_static(b"");

/// Returns `true` for a complete, successful result. A result that asks for input or creates a task must not answer
/// another call.
fn worth_keeping(message: &Envelope) -> bool {
    let bytes = message.bytes();
    let failed = message.result_member("isError").is_some_and(|span| span.of(bytes) == b"true");
    let partial = message.result_member("resultType").is_some_and(|span| !json::key_eq(span.of(bytes), "complete"));
    !failed && !partial && message.result_member("task").is_none()
}

impl Outside for Live {
    fn limit(&self, ask: &LimitAsk<'_>) -> InTurn<LimitDecision> {
        let mut limiter = self.limiter.lock().unpoisoned();
        let answer = limiter.ask(ask);
        if let (LimitDecision::Passed { .. }, Some(call)) = (answer, ask.call) {
            self.counted.note(call, ask.slot);
        }
        InTurn { answer, turn: Some(self.turn(ask.now)) }
    }

    fn is_counted(&self, slot: &Slot, call: ExchangeId) -> bool {
        self.counted.has(call, slot)
    }

    fn draw(&self, slot: &Slot, seed: Option<u64>) -> u64 {
        let own = self.seed ^ crate::rule_set::fnv(u64::from(slot.action), slot.rule.as_bytes());
        self.seeded(slot, seed.unwrap_or(own))
    }

    fn position(&self, slot: &Slot, now: Instant) -> InTurn<u64> {
        let mut slots = self.slots.lock().unpoisoned();
        let answer = count(&mut slots, slot, |counts| &mut counts.positions);
        InTurn { answer, turn: Some(self.turn(now)) }
    }

    fn cached(&self, ask: &CacheAsk<'_>) -> InTurn<Option<Bytes>> {
        let (found, turn) = {
            let mut caches = self.caches.lock().unpoisoned();
            (caches.get(ask), self.turn(ask.now))
        };
        if let (None, Some(exchange)) = (&found, ask.exchange) {
            let miss =
                CacheMiss { slot: ask.slot.clone(), key: ask.key.into(), ttl: ask.ttl, max_entries: ask.max_entries };
            self.memory.add_miss(exchange, miss);
        }
        InTurn { answer: found, turn: Some(turn) }
    }

    fn unix_ms(&self, now: u64) -> u64 {
        now
    }
}

/// Returns the number at this position of a seed's sequence (SplitMix64).
pub(crate) fn mixed(seed: u64, place: u64) -> u64 {
    let mut number = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}
