//! Rate limit buckets of rules, by slot and key.
//!
//! A key may contain values sent by a caller, so a caller can create any number of keys. A caller may hold at most as
//! many keys as are free for others at that time. Its further keys of a slot share one bucket, which no other caller
//! uses.

use crate::limits;
use crate::outside::{LimitAsk, LimitDecision, Slot};
use signalbox_engine::bounded::make_room;
use signalbox_engine::rate::Rate;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub(crate) struct Limiter {
    slots: HashMap<Slot, SlotBuckets>,
    /// Number of keys by caller. A key belongs to the caller that used it first.
    by_caller: HashMap<Arc<str>, usize>,
    keys: usize,
    swept: Option<Instant>,
    pub overflows: u64,
}

#[derive(Debug, Default)]
struct SlotBuckets {
    by_key: HashMap<Box<str>, Bucket>,
    /// Shared bucket of each caller with too many keys: the time at which it is full again. Bounded like the keys.
    overflow: HashMap<Arc<str>, Instant>,
}

#[derive(Debug)]
struct Bucket {
    full_at: Instant,
    caller: Arc<str>,
}

impl Limiter {
    pub fn ask(&mut self, ask: &LimitAsk<'_>) -> LimitDecision {
        let rate = Rate { limit: ask.limit, per: ask.per };
        if let Some(bucket) = self.slots.get_mut(ask.slot).and_then(|slot| slot.by_key.get_mut(ask.key)) {
            return match rate.take(Some(bucket.full_at), ask.now) {
                Ok(full) => {
                    bucket.full_at = full;
                    LimitDecision::Passed { left: rate.left(Some(full), ask.now) }
                }
                Err(wait) => LimitDecision::Over { wait },
            };
        }
        if self.has_room_for(ask) { self.add(rate, ask) } else { self.fold(rate, ask) }
    }

    /// Returns `true` if the caller has fewer keys than are free.
    fn has_room_for(&mut self, ask: &LimitAsk<'_>) -> bool {
        let has_room = |limiter: &Self| {
            let own = limiter.by_caller.get(ask.caller).copied().unwrap_or_default();
            own < limits::LIMITER_KEYS.saturating_sub(limiter.keys)
        };
        if has_room(self) {
            return true;
        }
        if self.swept.is_none_or(|at| ask.now.saturating_duration_since(at) >= Duration::from_secs(1)) {
            self.sweep(ask.now);
        }
        has_room(self)
    }

    /// Creates the bucket of a new key.
    fn add(&mut self, rate: Rate, ask: &LimitAsk<'_>) -> LimitDecision {
        let full_at = match rate.take(None, ask.now) {
            Ok(full_at) => full_at,
            Err(wait) => return LimitDecision::Over { wait },
        };
        let caller = match self.by_caller.get_key_value(ask.caller) {
            Some((caller, _)) => Arc::clone(caller),
            None => Arc::from(ask.caller),
        };
        *self.by_caller.entry(Arc::clone(&caller)).or_default() += 1;
        self.keys += 1;
        self.slot(ask.slot).by_key.insert(ask.key.into(), Bucket { full_at, caller });
        LimitDecision::Passed { left: rate.left(Some(full_at), ask.now) }
    }

    /// Counts a key without space in its caller's shared bucket.
    fn fold(&mut self, rate: Rate, ask: &LimitAsk<'_>) -> LimitDecision {
        self.overflows += 1;
        let overflow = &mut self.slot(ask.slot).overflow;
        if !overflow.contains_key(ask.caller) {
            make_room(overflow, limits::LIMITER_KEYS, |full_at| *full_at);
        }
        match rate.take(overflow.get(ask.caller).copied(), ask.now) {
            Ok(full) => {
                overflow.insert(ask.caller.into(), full);
                LimitDecision::Passed { left: rate.left(Some(full), ask.now) }
            }
            Err(wait) => LimitDecision::Over { wait },
        }
    }

    fn slot(&mut self, slot: &Slot) -> &mut SlotBuckets {
        self.slots.entry(slot.clone()).or_default()
    }

    /// Drops buckets that are full again.
    fn sweep(&mut self, now: Instant) {
        self.swept = Some(now);
        for slot in self.slots.values_mut() {
            slot.by_key.retain(|_, bucket| bucket.full_at > now);
            slot.overflow.retain(|_, full_at| *full_at > now);
        }
        self.count();
    }

    fn count(&mut self) {
        self.by_caller.clear();
        for bucket in self.slots.values().flat_map(|slot| slot.by_key.values()) {
            *self.by_caller.entry(Arc::clone(&bucket.caller)).or_default() += 1;
        }
        self.keys = self.by_caller.values().sum();
    }

    pub fn keep(&mut self, stays: &dyn Fn(&Slot) -> bool) {
        self.slots.retain(|slot, _| stays(slot));
        self.count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_full_at_first_and_fills_again_evenly() {
        let slot = Slot { rule: "r".into(), action: 0 };
        let mut limiter = Limiter::default();
        let start = Instant::now();
        let mut ask = |key, ms| {
            let now = start + Duration::from_millis(ms);
            limiter.ask(&LimitAsk {
                slot: &slot,
                caller: "ada",
                key,
                limit: 3,
                per: Duration::from_secs(60),
                now,
                call: None,
            })
        };
        for left in [2, 1, 0] {
            assert_eq!(ask("a", 0), LimitDecision::Passed { left });
        }
        assert_eq!(ask("a", 0), LimitDecision::Over { wait: Duration::from_secs(20) });
        assert_eq!(ask("b", 0), LimitDecision::Passed { left: 2 });
        assert_eq!(ask("a", 19_000), LimitDecision::Over { wait: Duration::from_secs(1) });
        assert_eq!(ask("a", 20_000), LimitDecision::Passed { left: 0 });
        assert_eq!(ask("a", 500_000), LimitDecision::Passed { left: 2 });
    }

    /// Asks for one use of this key in the time of a minute.
    fn once(limiter: &mut Limiter, (rule, caller, key): (&str, &str, &str), now: Instant) -> bool {
        let slot = Slot { rule: rule.into(), action: 0 };
        let ask = LimitAsk { slot: &slot, caller, key, limit: 1, per: Duration::from_secs(60), now, call: None };
        matches!(limiter.ask(&ask), LimitDecision::Passed { .. })
    }

    #[test]
    fn beyond_the_bound_the_keys_of_a_caller_share_a_bucket_and_free_buckets_make_room() {
        let (mut limiter, start) = (Limiter::default(), Instant::now());
        let most = limits::LIMITER_KEYS / 2;
        for number in 0..most {
            assert!(once(&mut limiter, ("r", "ada", &format!("k{number}")), start));
        }
        assert!(once(&mut limiter, ("r", "ada", "one more"), start));
        assert!(!once(&mut limiter, ("r", "ada", "and another"), start));
        assert_eq!((limiter.overflows, limiter.keys), (2, most));
        let later = start + Duration::from_secs(61);
        assert!(once(&mut limiter, ("r", "ada", "and another"), later));
        assert_eq!((limiter.overflows, limiter.keys), (2, 1));
    }

    #[test]
    fn shared_buckets_are_bounded_and_those_that_have_used_least_are_dropped() {
        let (mut limiter, now) = (Limiter::default(), Instant::now());
        limiter.keys = limits::LIMITER_KEYS;
        limiter.swept = Some(now);
        let later = now + Duration::from_millis(1);
        assert!(once(&mut limiter, ("r", "ada", "k"), later));
        for number in 0..limits::LIMITER_KEYS + 3 {
            let caller = format!("c{number}");
            assert!(once(&mut limiter, ("r", &caller, "k"), now));
        }
        let slot = Slot { rule: "r".into(), action: 0 };
        assert_eq!(limiter.slots[&slot].overflow.len(), limits::LIMITER_KEYS);
        assert!(!once(&mut limiter, ("r", "ada", "k"), later), "what is counted stays counted");
    }

    /// The keys of one caller, however many, leave buckets of their own to others, in all rules.
    #[test]
    fn the_keys_of_one_caller_leave_room_to_others() {
        let (mut limiter, start) = (Limiter::default(), Instant::now());
        for number in 0..2 * limits::LIMITER_KEYS {
            once(&mut limiter, ("r", "ada", &format!("k{number}")), start);
        }
        for rule in ["r", "s"] {
            for key in ["a", "b", "c"] {
                assert!(once(&mut limiter, (rule, "vic", key), start));
                assert!(!once(&mut limiter, (rule, "vic", key), start));
            }
        }
        assert!(!once(&mut limiter, ("r", "ada", "k0"), start), "what is counted stays counted");
        assert!(limiter.keys < limits::LIMITER_KEYS);
    }
}
