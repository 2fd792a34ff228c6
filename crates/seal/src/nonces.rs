//! Nonce memory, which detects replayed messages.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Answer of a memory about a nonce.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum NonceVerdict {
    /// The nonce is new and was stored.
    New,
    /// The nonce was seen before.
    Replayed,
    /// The memory is full. The message must be refused, because a replay of it could not be detected.
    Full,
}

/// Remembers nonces for as long as their messages could be accepted. Times are in milliseconds since 1970.
pub trait NonceMemory {
    /// Returns true if the nonce of a key is remembered. Verifiers call it before their expensive steps, so that
    /// replayed messages cost little.
    fn is_remembered(&self, key_id: &str, nonce: &str, now: u64) -> bool;

    /// Stores the nonce of a key until `until`, unless it is already stored.
    fn remember(&self, key_id: &str, nonce: &str, now: u64, until: u64) -> NonceVerdict;
}

/// In-memory [`NonceMemory`] with a maximum number of nonces per key. It is lost when the process ends.
#[derive(Debug)]
pub struct NonceBook {
    room: usize,
    seen: Mutex<HashMap<String, HashMap<String, u64>>>,
}

impl NonceBook {
    /// Creates an empty memory. Messages of a key are refused while `room` of its nonces are remembered.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self { room, seen: Mutex::default() }
    }
}

impl NonceMemory for NonceBook {
    fn is_remembered(&self, key_id: &str, nonce: &str, now: u64) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(key_id).and_then(|of_key| of_key.get(nonce)).is_some_and(|until| *until >= now)
    }

    fn remember(&self, key_id: &str, nonce: &str, now: u64, until: u64) -> NonceVerdict {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let of_key = seen.entry(key_id.to_owned()).or_default();
        if of_key.get(nonce).is_some_and(|until| *until >= now) {
            return NonceVerdict::Replayed;
        }
        if of_key.len() >= self.room {
            of_key.retain(|_, until| *until >= now);
        }
        if of_key.len() >= self.room {
            return NonceVerdict::Full;
        }
        of_key.insert(nonce.to_owned(), until);
        NonceVerdict::New
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use NonceVerdict::{Full, New, Replayed};

    #[test]
    fn a_nonce_is_new_once_and_makes_room_when_its_time_is_over() {
        let book = NonceBook::new(2);
        assert_eq!(book.remember("a", "1", 0, 10), New);
        assert_eq!(book.remember("a", "1", 10, 20), Replayed);
        assert_eq!(book.remember("b", "1", 0, 10), New, "every key has nonces of its own");
        assert_eq!(book.remember("a", "2", 0, 30), New);
        assert_eq!(book.remember("a", "3", 10, 30), Full);
        assert_eq!(book.remember("a", "3", 11, 30), New);
    }
}
