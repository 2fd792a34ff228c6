//! Counts of attempts per key and time window.

use signalbox_engine::bounded::make_room;
use std::collections::HashMap;

/// Maximum number of keys. Beyond it, those with the fewest attempts are evicted, the oldest first: new keys must not
/// reset the count of a key that is at its limit.
const MAX_KEYS: usize = 10_000;

/// Counter of attempts, with a limit per key.
#[derive(Debug)]
pub(crate) struct Attempts {
    most: u32,
    window: u64,
    counted: HashMap<String, (u64, u32)>,
}

impl Attempts {
    /// Creates a counter that admits `most` attempts in `seconds` seconds.
    pub fn new(most: u32, seconds: u64) -> Self {
        Self { most, window: seconds * 1_000, counted: HashMap::new() }
    }

    /// Counts an attempt. Returns false if the limit is exceeded.
    pub fn admit(&mut self, key: &str, now: u64) -> bool {
        let window = self.window;
        let is_over = |began: u64| began.saturating_add(window) <= now;
        if self.counted.len() >= MAX_KEYS && !self.counted.contains_key(key) {
            self.counted.retain(|_, (began, _)| !is_over(*began));
        }
        if !self.counted.contains_key(key) {
            make_room(&mut self.counted, MAX_KEYS, |(began, count)| (*count, *began));
        }
        let (began, count) = self.counted.entry(key.to_owned()).or_insert((now, 0));
        if is_over(*began) {
            (*began, *count) = (now, 0);
        }
        *count = count.saturating_add(1);
        *count <= self.most
    }

    /// Resets the count of a key.
    pub fn clear(&mut self, key: &str) {
        self.counted.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_has_room_for_so_many_and_the_next_one_too() {
        let mut attempts = Attempts::new(2, 60);
        assert!(attempts.admit("ada", 0) && attempts.admit("ada", 1) && !attempts.admit("ada", 59_999));
        assert!(attempts.admit("eve", 2) && attempts.admit("ada", 60_000));
        attempts.clear("ada");
        assert!(attempts.admit("ada", 60_001) && attempts.admit("ada", 60_002) && !attempts.admit("ada", 60_003));
    }

    /// Keys are names that anybody may type, so an attacker has any number of them.
    #[test]
    fn a_flood_of_new_keys_resets_no_key_at_its_limit() {
        let mut attempts = Attempts::new(2, 60);
        assert!(attempts.admit("ada", 0) && attempts.admit("ada", 0) && !attempts.admit("ada", 0));
        for n in 0..=MAX_KEYS {
            attempts.admit(&n.to_string(), 1);
        }
        assert!(!attempts.admit("ada", 2));
    }

    #[test]
    fn what_is_counted_is_bounded() {
        let mut attempts = Attempts::new(1, 60);
        for n in 0..=MAX_KEYS as u64 {
            attempts.admit(&n.to_string(), n % 100);
        }
        assert!(attempts.counted.len() <= MAX_KEYS);
    }
}
