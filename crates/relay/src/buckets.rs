//! Rate limits per key, such as an address.

use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::rate::Rate;
use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Maximum number of keys counted at a time. Beyond it, keys with a full bucket are evicted, then those that have used
/// least: new keys, of which an attacker may have many, must not reset the count of a key that is at its limit.
pub const MAX_KEYS: usize = 10_000;
/// Number of keys evicted at once, so that a flood of new keys does not search the map for each.
const EVICTED: usize = MAX_KEYS / 10;

/// Token bucket per key. A `limit` of 0 means unlimited.
#[derive(Debug)]
pub struct Buckets {
    rate: Rate,
    full: Mutex<HashMap<Box<str>, Instant>>,
}

impl Buckets {
    /// Creates buckets of `limit` tokens per minute.
    #[must_use]
    pub fn per_minute(limit: u64) -> Self {
        Self { rate: Rate { limit, per: Duration::from_secs(60) }, full: Mutex::default() }
    }

    /// Takes a token.
    ///
    /// # Errors
    /// The time until the next token is available.
    pub fn take(&self, key: &str, now: Instant) -> Result<(), Duration> {
        if self.rate.limit == 0 {
            return Ok(());
        }
        let mut all = self.full.lock().unpoisoned();
        if all.len() >= MAX_KEYS && !all.contains_key(key) {
            evict(&mut all, now);
        }
        let full = self.rate.take(all.get(key).copied(), now)?;
        all.insert(key.into(), full);
        Ok(())
    }

    /// Returns true if the bucket is empty. Takes no token.
    #[must_use]
    pub fn is_empty(&self, key: &str, now: Instant) -> bool {
        let full = self.full.lock().unpoisoned().get(key).copied();
        self.rate.limit > 0 && self.rate.left(full, now) == 0
    }
}

/// Evicts the keys with a full bucket, and if too many are left, [`EVICTED`] of those whose bucket is full again first.
fn evict(all: &mut HashMap<Box<str>, Instant>, now: Instant) {
    all.retain(|_, full| *full > now);
    if all.len() < MAX_KEYS {
        return;
    }
    let mut times: Vec<Instant> = all.values().copied().collect();
    let last = *times.select_nth_unstable(EVICTED - 1).1;
    let mut left = EVICTED;
    all.retain(|_, full| {
        let evicted = left > 0 && *full <= last;
        left -= usize::from(evicted);
        !evicted
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_new_keys_resets_no_key_at_its_limit() {
        let (buckets, now) = (Buckets::per_minute(2), Instant::now());
        for key in ["a", "a", "b"] {
            buckets.take(key, now).unwrap();
        }
        for n in 0..3 * MAX_KEYS {
            buckets.take(&n.to_string(), now).unwrap();
        }
        assert!(buckets.is_empty("a", now), "the limit still holds");
        assert!(buckets.full.lock().unwrap().len() <= MAX_KEYS);
    }

    #[test]
    fn each_key_has_a_bucket_of_its_own_and_their_number_is_bounded() {
        let (buckets, now) = (Buckets::per_minute(2), Instant::now());
        assert!(buckets.take("a", now).is_ok() && !buckets.is_empty("a", now));
        assert!(buckets.take("a", now).is_ok() && buckets.is_empty("a", now));
        assert_eq!(buckets.take("a", now), Err(Duration::from_secs(30)));
        assert!(buckets.take("b", now).is_ok());
        assert!(buckets.take("a", now + Duration::from_secs(30)).is_ok());
        for n in 0..MAX_KEYS + 5 {
            buckets.take(&n.to_string(), now).unwrap();
        }
        assert!(buckets.full.lock().unwrap().len() <= MAX_KEYS);
        let any = Buckets::per_minute(0);
        assert!((0..100).all(|_| any.take("a", now).is_ok()));
    }
}
