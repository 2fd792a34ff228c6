//! Recognises requests of the new era that are rounds of the same call (S-16).
//!
//! A backend that wants input answers a call with a `requestState`, and the client sends the call again with it. The
//! gateway remembers which state it gave to whom, so the next round is recognised as part of its call, and a forged
//! state is not.

use crate::caller::Principal;
use crate::keys::ExchangeId;
use crate::lock::LockResultExt;
use bytes::Bytes;
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard};

/// Maximum number of states remembered; the oldest are dropped beyond it.
pub const MAX_OPERATIONS: usize = 4096;
/// Maximum number of bytes of the remembered states.
pub const MAX_OPERATION_BYTES: usize = 4 << 20;

/// A round of a call.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct OperationRound {
    /// The exchange of the first round.
    pub operation: ExchangeId,
    /// Which round it is; the first is 1.
    pub round: u32,
    /// True if a hold on the call was answered and it was let through.
    pub consulted: bool,
}

type Key = (Principal, Bytes);

#[derive(Default, Debug)]
struct Inner {
    places: HashMap<Key, OperationRound>,
    order: VecDeque<Key>,
    bytes: usize,
}

/// The rounds that clients may continue.
#[derive(Default, Debug)]
pub struct Operations(Mutex<Inner>);

impl Operations {
    /// Remembers that this state was given to this principal at the end of a round.
    pub fn note(&self, principal: &Principal, state: &[u8], place: OperationRound) {
        if state.len() > MAX_OPERATION_BYTES / 16 {
            return;
        }
        let key = (principal.clone(), Bytes::copy_from_slice(state));
        let mut inner = self.lock();
        if inner.places.insert(key.clone(), place).is_some() {
            return;
        }
        inner.bytes += state.len();
        inner.order.push_back(key);
        while inner.order.len() > MAX_OPERATIONS || inner.bytes > MAX_OPERATION_BYTES {
            let Some(oldest) = inner.order.pop_front() else { break };
            inner.places.remove(&oldest);
            inner.bytes -= oldest.1.len();
        }
    }

    /// The round that ended with this state, if this principal was given it.
    #[must_use]
    pub fn find(&self, principal: &Principal, state: &[u8]) -> Option<OperationRound> {
        let inner = self.lock();
        if inner.places.is_empty() {
            return None;
        }
        inner.places.get(&(principal.clone(), Bytes::copy_from_slice(state))).copied()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unpoisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(operation: u64) -> OperationRound {
        OperationRound { operation: ExchangeId(operation), round: 1, consulted: false }
    }

    #[test]
    fn s16_a_state_is_known_to_whom_it_was_given_and_to_nobody_else() {
        let (operations, ann, bob) = (Operations::default(), Principal::named("ann"), Principal::named("bob"));
        assert_eq!(operations.find(&ann, b"\"made up\""), None);
        operations.note(&ann, b"\"s\"", place(7));
        assert_eq!(operations.find(&ann, b"\"s\""), Some(place(7)));
        assert_eq!(operations.find(&bob, b"\"s\""), None);
    }

    #[test]
    fn the_oldest_states_are_forgotten_by_number_and_by_size() {
        let (operations, ann) = (Operations::default(), Principal::named("ann"));
        for number in 0..=MAX_OPERATIONS {
            operations.note(&ann, number.to_string().as_bytes(), place(number as u64));
        }
        assert_eq!(operations.find(&ann, b"0"), None);
        assert!(operations.find(&ann, b"1").is_some());
        for number in 0..17_u8 {
            operations.note(&ann, &vec![number; MAX_OPERATION_BYTES / 16], place(1));
        }
        assert_eq!(operations.find(&ann, b"1"), None);
        assert_eq!(operations.find(&ann, &vec![0; MAX_OPERATION_BYTES / 16]), None);
        assert!(operations.find(&ann, &vec![16; MAX_OPERATION_BYTES / 16]).is_some());
        let inner = operations.lock();
        assert_eq!(inner.order.len(), inner.places.len());
    }
}
