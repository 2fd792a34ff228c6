//! Admits messages that wait for room in the queue: in the order in which they came, and each for room that is set aside for it.
//!
//! The gateway takes a message from outside only once it is admitted. Between that and the facts that the message brings lies
//! the work of a thread, so an admitted message keeps its share of the queue until its first fact is there.

use super::barrier::{Barrier, Waiting};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The share of the queue that is set aside for an admitted message: this part of its bounds.
pub(super) const PARTS: usize = 128;
/// A message that brought no fact by then was refused, or its sender has left.
const SET_ASIDE_FOR: Duration = Duration::from_millis(250);

/// Messages that wait, and those that were admitted and have brought no fact yet.
#[derive(Default, Debug)]
pub(super) struct Admission {
    waiting: VecDeque<Waiting>,
    admitted: VecDeque<Instant>,
}

impl Admission {
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many shares of the queue are set aside.
    pub(super) fn set_aside(&self) -> usize {
        self.admitted.len()
    }

    /// Puts a message behind those that wait.
    pub(super) fn enqueue(&mut self) -> Barrier {
        let (waiting, barrier) = Waiting::new();
        self.waiting.push_back(waiting);
        barrier
    }

    /// Counts the first fact of a message, whose share is used from now on.
    pub(super) fn arrive(&mut self) {
        self.admitted.pop_front();
    }

    /// Takes the messages off that may be admitted if this many shares fit into the queue. The caller resolves them once it has
    /// released its lock.
    pub(super) fn admit(&mut self, shares: usize, now: Instant) -> Vec<Waiting> {
        while self.admitted.front().is_some_and(|at| now.saturating_duration_since(*at) >= SET_ASIDE_FOR) {
            self.admitted.pop_front();
        }
        let mut admitted = Vec::new();
        while self.admitted.len() < shares
            && let Some(waiting) = self.waiting.pop_front()
        {
            // A message whose time has run out went in without waiting any longer.
            if waiting.is_awaited() {
                self.admitted.push_back(now);
                admitted.push(waiting);
            }
        }
        admitted
    }

    /// Takes off everything that waits.
    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        self.waiting.drain(..).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolve(admitted: Vec<Waiting>) -> usize {
        admitted.iter().for_each(|waiting| waiting.resolve(Ok(())));
        admitted.len()
    }

    #[test]
    fn messages_are_admitted_in_order_and_for_the_shares_there_are() {
        let (mut admission, now) = (Admission::default(), Instant::now());
        let barriers: Vec<Barrier> = (0..10).map(|_| admission.enqueue()).collect();
        let ready = || barriers.iter().map(|barrier| barrier.wait(Duration::ZERO).is_ok()).collect::<Vec<_>>();
        assert_eq!(resolve(admission.admit(3, now)), 3);
        assert_eq!(ready().iter().position(|ready| !ready), Some(3));
        assert_eq!(resolve(admission.admit(3, now)), 0, "their shares are set aside");
        admission.arrive();
        assert_eq!(resolve(admission.admit(3, now)), 1);
        assert_eq!(ready().iter().filter(|ready| **ready).count(), 4);
    }

    #[test]
    fn a_share_that_brings_nothing_is_given_to_the_next() {
        let (mut admission, now) = (Admission::default(), Instant::now());
        let _barriers: Vec<Barrier> = (0..4).map(|_| admission.enqueue()).collect();
        assert_eq!(resolve(admission.admit(2, now)), 2);
        assert_eq!(resolve(admission.admit(2, now + SET_ASIDE_FOR / 2)), 0);
        assert_eq!(resolve(admission.admit(2, now + SET_ASIDE_FOR)), 2);
    }

    #[test]
    fn a_message_that_waits_no_more_takes_no_share() {
        let (mut admission, now) = (Admission::default(), Instant::now());
        drop(admission.enqueue());
        let next = admission.enqueue();
        assert_eq!(resolve(admission.admit(1, now)), 1);
        assert_eq!(next.wait(Duration::ZERO), Ok(()));
    }
}
