//! Memory budget: the bytes of messages that the process may hold, divided among callers, sessions, connections and
//! backends.
//!
//! A message of [`WEIGHED`] bytes or more is charged to a [`Share`] from its first byte until its last copy is dropped,
//! in every state: half read, in flight, held for a person, parked, or queued for a slow reader or the disk. The charge
//! is part of the buffer, so queues need no accounting of their own. Smaller messages are bounded by the counts in
//! docs/limits.md.
//!
//! A message from a client is charged to its connection, or to its session if the connection is the session, and to its
//! caller. A message to a client is charged to its session and caller; a message to or from a backend, to the backend.
//!
//! Shares are dynamic thresholds. With `free` bytes left in the budget,
//! - a caller or a backend may hold [`GENEROUS`] times `free`, so that a single one gets four fifths of the budget;
//! - a session or a connection may hold as much as its caller may still add.
//!
//! However many callers are greedy, some room is left for the next one. A client that holds no more than [`MINIMUM`],
//! and a backend's message of that size, is refused only if the whole budget is used up. A message of that size that
//! was read once is not refused on its way out, because room was reserved when it was read.

mod charge;
mod share;

pub use charge::Charge;
pub use share::{Holder, Share};

use crate::caller::Principal;
use crate::lock::LockResultExt;
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

/// Minimum size of a message that is charged, in bytes.
pub const WEIGHED: usize = 4 * 1024;
/// Bytes that a share may hold as long as the budget is not used up.
pub const MINIMUM: usize = 128 * 1024;
/// Multiple of the free bytes that a caller or a backend may hold.
pub const GENEROUS: usize = 4;
/// Default budget of a process, in bytes.
pub const DEFAULT: usize = 128 * 1024 * 1024;
/// Minimum budget, as a multiple of the largest message: a message is held as it came and as it leaves, and so is its
/// answer.
pub const LEAST_MESSAGES: usize = 4;

/// Number of callers' shares kept before unused ones are dropped.
const CALLERS: usize = 1024;

/// Refusal of a message because a share is exhausted.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the gateway holds as many bytes of messages as it may {}", .0.phrase())]
pub struct OverBudget(pub Holder);

/// Memory budget of a process.
#[derive(Debug)]
pub struct Budget {
    total: AtomicUsize,
    used: AtomicUsize,
    callers: Mutex<HashMap<Principal, Weak<Share>>>,
}

impl Budget {
    /// Creates a budget of this many bytes.
    #[must_use]
    pub fn new(total: usize) -> Arc<Self> {
        Arc::new(Self { total: total.into(), used: 0.into(), callers: Mutex::default() })
    }

    /// Changes the size. Bytes that are in use stay charged.
    pub fn resize(&self, total: usize) {
        self.total.store(total, Ordering::Relaxed);
    }

    /// Returns the size in bytes.
    #[must_use]
    pub fn total(&self) -> usize {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes in use.
    #[must_use]
    pub fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the share of one session of a caller.
    #[must_use]
    pub fn session(self: &Arc<Self>, principal: &Principal) -> Arc<Share> {
        Share::new(self, Holder::Session, Some(self.caller(principal)))
    }

    /// Returns the share of one connection of a caller.
    #[must_use]
    pub fn connection(self: &Arc<Self>, principal: &Principal) -> Arc<Share> {
        Share::new(self, Holder::Connection, Some(self.caller(principal)))
    }

    /// Returns the share of a backend.
    #[must_use]
    pub fn backend(self: &Arc<Self>) -> Arc<Share> {
        Share::new(self, Holder::Backend, None)
    }

    fn caller(self: &Arc<Self>, principal: &Principal) -> Arc<Share> {
        let mut callers = self.callers.lock().unpoisoned();
        if let Some(share) = callers.get(principal).and_then(Weak::upgrade) {
            return share;
        }
        if callers.len() >= CALLERS {
            callers.retain(|_, share| share.strong_count() > 0);
        }
        let share = Share::new(self, Holder::Caller, None);
        callers.insert(principal.clone(), Arc::downgrade(&share));
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const MIB: usize = 1024 * 1024;

    fn anonymous() -> Principal {
        Principal::anonymous()
    }

    /// Takes pieces of this size until one is refused.
    fn fill(share: &Arc<Share>, piece: usize) -> Vec<Charge> {
        std::iter::from_fn(|| share.take(piece, 0).ok()).collect()
    }

    #[test]
    fn one_greedy_session_leaves_room_for_the_next_and_that_for_a_third() {
        let budget = Budget::new(128 * MIB);
        let mut held = Vec::new();
        for _ in 0..100 {
            let before = budget.used();
            held.push(fill(&budget.session(&anonymous()), 16 * 1024));
            assert!(budget.used() >= before + MINIMUM, "a newcomer gets something");
        }
        assert!(held[0].len() * 16 * 1024 < 96 * MIB);
        assert!(held[1].len() * 16 * 1024 > 4 * MIB);
        assert!(budget.used() <= 128 * MIB * GENEROUS / (GENEROUS + 1) + 100 * MINIMUM, "one caller leaves a fifth");
        drop(held);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn another_caller_and_a_backend_find_room_beside_a_greedy_caller() {
        let budget = Budget::new(128 * MIB);
        let greedy: Vec<_> = (0..50).map(|_| fill(&budget.session(&anonymous()), MIB)).collect();
        assert!(budget.session(&Principal::local("other")).take(16 * MIB, 0).is_ok());
        assert!(budget.backend().take(16 * MIB, 0).is_ok());
        drop(greedy);
    }

    #[test]
    fn the_minimum_is_there_until_the_budget_is_used_up() {
        let budget = Budget::new(16 * MIB);
        let greedy: Vec<_> = (0..10).map(|_| fill(&budget.session(&anonymous()), 32 * 1024)).collect();
        let late = budget.connection(&anonymous());
        assert!(late.take(MINIMUM, 0).is_ok());
        assert!(matches!(late.take(2 * MIB, 0).unwrap_err(), OverBudget(Holder::Connection | Holder::Caller)));
        let all: Vec<_> = std::iter::from_fn(|| budget.connection(&anonymous()).take(MINIMUM, 0).ok()).collect();
        assert_eq!(budget.connection(&anonymous()).take(MINIMUM, 0).unwrap_err(), OverBudget(Holder::Process));
        assert!(budget.used() <= 16 * MIB);
        drop((greedy, all));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn a_small_message_that_was_read_leaves_even_if_others_took_the_rest_meanwhile() {
        let budget = Budget::new(16 * MIB);
        let read = budget.session(&anonymous()).take(60_000, 60_000).unwrap();
        let others: Vec<_> = std::iter::from_fn(|| budget.connection(&anonymous()).take(WEIGHED, 0).ok()).collect();
        let backend = budget.backend();
        assert_eq!(backend.hold(Bytes::from(vec![b'x'; 2 * MIB])).unwrap_err(), OverBudget(Holder::Process));
        let leaving = backend.hold(Bytes::from(vec![b'x'; 60_000])).unwrap();
        assert_eq!(backend.used(), 60_000, "it is charged all the same");
        drop((read, others, leaving));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn what_is_to_come_is_asked_for_and_not_taken() {
        let budget = Budget::new(10 * MIB);
        let session = budget.session(&anonymous());
        assert!(session.take(4 * MIB, 4 * MIB).is_err());
        let charge = session.take(3 * MIB, 3 * MIB).unwrap();
        assert_eq!((charge.bytes(), budget.used()), (3 * MIB, 3 * MIB));
    }

    #[test]
    fn a_charge_lasts_as_long_as_any_copy_of_its_message() {
        let budget = Budget::new(10 * MIB);
        let session = budget.session(&anonymous());
        let message = session.hold(Bytes::from(vec![b'x'; MIB])).unwrap();
        let part = message.slice(10..20);
        drop(message);
        assert_eq!(budget.used(), MIB);
        drop(part);
        assert_eq!(budget.used(), 0);
        let small = session.hold(Bytes::from(vec![b'x'; WEIGHED - 1])).unwrap();
        assert_eq!((small.len(), budget.used()), (WEIGHED - 1, 0));
    }

    #[test]
    fn a_charge_grows_with_what_is_read_and_is_given_to_the_message() {
        let budget = Budget::new(10 * MIB);
        let mut charge = budget.session(&anonymous()).take(MIB, 0).unwrap();
        charge.grow(2 * MIB, MIB).unwrap();
        assert!(charge.grow(20 * MIB, 0).is_err());
        assert_eq!(budget.used(), 2 * MIB);
        let message = charge.attach(Bytes::from(vec![b'x'; MIB]));
        assert_eq!(budget.used(), MIB, "what was not needed is given back");
        drop(message);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn accounts_of_callers_who_are_gone_are_forgotten() {
        let budget = Budget::new(MIB);
        for number in 0..3 * CALLERS {
            drop(budget.session(&Principal::local(&number.to_string())));
        }
        assert!(budget.callers.lock().unwrap().len() <= CALLERS);
    }

    #[test]
    fn threads_that_take_and_give_back_leave_nothing_behind() {
        let budget = Budget::new(4 * MIB);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let session = budget.session(&anonymous());
                    for round in 0..2_000_usize {
                        let taken = session.take(WEIGHED + round * 100, WEIGHED);
                        assert!(budget.used() <= 5 * MIB);
                        drop(taken);
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
    }
}
