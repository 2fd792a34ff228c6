//! The buckets of rate limits in rules, by slot and key.

use crate::limits;
use crate::outside::{LimitAsk, Limited, Slot};
use signalbox_engine::rate::Rate;
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// The buckets of all rate limits.
#[derive(Debug, Default)]
pub(crate) struct Limiter {
    /// For every slot and key, when its bucket is full again.
    full_at: HashMap<Slot, HashMap<Box<str>, Instant>>,
    keys: usize,
    swept: Option<Instant>,
    pub overflows: u64,
}

impl Limiter {
    pub fn ask(&mut self, ask: &LimitAsk<'_>) -> Limited {
        let key = self.room_for(ask);
        let buckets = match self.full_at.get_mut(ask.slot) {
            Some(buckets) => buckets,
            None => self.full_at.entry(ask.slot.clone()).or_default(),
        };
        let rate = Rate { limit: ask.limit, per: ask.per };
        let full = match rate.take(buckets.get(key).copied(), ask.now) {
            Ok(full) => full,
            Err(wait) => return Limited::Over { wait },
        };
        match buckets.get_mut(key) {
            Some(place) => *place = full,
            None => {
                buckets.insert(key.into(), full);
                self.keys += 1;
            }
        }
        Limited::Passed { left: rate.left(Some(full), ask.now) }
    }

    /// The key to count under: if there is no room for more keys, all further ones of a slot share one bucket.
    fn room_for<'a>(&mut self, ask: &LimitAsk<'a>) -> &'a str {
        let known = self.full_at.get(ask.slot).is_some_and(|buckets| buckets.contains_key(ask.key));
        if known || self.keys < limits::LIMITER_KEYS {
            return ask.key;
        }
        let due = self.swept.is_none_or(|at| ask.now.saturating_duration_since(at) >= Duration::from_secs(1));
        if due {
            self.swept = Some(ask.now);
            self.full_at.values_mut().for_each(|buckets| buckets.retain(|_, full| *full > ask.now));
            self.keys = self.full_at.values().map(HashMap::len).sum();
        }
        if self.keys < limits::LIMITER_KEYS {
            return ask.key;
        }
        self.overflows += 1;
        ""
    }

    pub fn keep(&mut self, stays: &dyn Fn(&Slot) -> bool) {
        self.full_at.retain(|slot, _| stays(slot));
        self.keys = self.full_at.values().map(HashMap::len).sum();
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
            limiter.ask(&LimitAsk { slot: &slot, key, limit: 3, per: Duration::from_secs(60), now })
        };
        for left in [2, 1, 0] {
            assert_eq!(ask("a", 0), Limited::Passed { left });
        }
        assert_eq!(ask("a", 0), Limited::Over { wait: Duration::from_secs(20) });
        assert_eq!(ask("b", 0), Limited::Passed { left: 2 });
        assert_eq!(ask("a", 19_000), Limited::Over { wait: Duration::from_secs(1) });
        assert_eq!(ask("a", 20_000), Limited::Passed { left: 0 });
        assert_eq!(ask("a", 500_000), Limited::Passed { left: 2 });
    }

    #[test]
    fn beyond_the_bound_all_keys_share_a_bucket_and_free_buckets_make_room() {
        let slot = Slot { rule: "r".into(), action: 0 };
        let mut limiter = Limiter::default();
        let start = Instant::now();
        let mut ask = |key: String, now| {
            limiter.ask(&LimitAsk { slot: &slot, key: &key, limit: 1, per: Duration::from_secs(60), now })
        };
        for number in 0..limits::LIMITER_KEYS {
            ask(format!("k{number}"), start);
        }
        assert_eq!(ask("one more".into(), start), Limited::Passed { left: 0 });
        assert!(matches!(ask("and another".into(), start), Limited::Over { .. }));
        let later = start + Duration::from_secs(61);
        assert_eq!(ask("and another".into(), later), Limited::Passed { left: 0 });
        assert_eq!(limiter.overflows, 2);
        assert!(limiter.keys < 10);
    }
}
