//! Admits messages that wait for room in the queue, in the order of their arrival and each with room reserved for it.
//!
//! The gateway takes a message from a client or backend only once it is admitted. The first fact of the message arrives
//! only after a thread has processed it, so an admitted message keeps its shares of the queue until then. A message
//! takes one share, and a large one as many as its images need.

use super::barrier::{Barrier, Waiting};
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of shares into which the bounds of the queue are divided.
pub(super) const PARTS: usize = 128;
/// Maximum number of shares of one message, and of all messages together.
pub(super) const MAX_SHARES: usize = PARTS / 2;
/// Time after which an admitted message without a fact is presumed refused or abandoned.
const SET_ASIDE_FOR: Duration = Duration::from_millis(250);

/// Waiting messages, and admitted ones without a fact so far.
#[derive(Default, Debug)]
pub(super) struct Admission {
    waiting: VecDeque<WaitingMessage>,
    admitted: VecDeque<AdmittedMessage>,
}

#[derive(Debug)]
struct WaitingMessage {
    waiting: Waiting,
    shares: usize,
}

#[derive(Debug)]
struct AdmittedMessage {
    at: Instant,
    shares: usize,
}

impl Admission {
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the number of reserved shares.
    pub(super) fn set_aside(&self) -> usize {
        self.admitted.iter().map(|admitted| admitted.shares).sum()
    }

    /// Appends a message that needs this many shares to the waiting ones.
    pub(super) fn enqueue(&mut self, shares: usize) -> Barrier {
        let (waiting, barrier) = Waiting::new();
        self.waiting.push_back(WaitingMessage { waiting, shares });
        barrier
    }

    /// Reserves shares for a message that need not wait.
    pub(super) fn pass(&mut self, shares: usize, now: Instant) {
        self.admitted.push_back(AdmittedMessage { at: now, shares });
    }

    /// Releases the reservation of a message whose first fact has arrived and now takes the space. A message of one
    /// share may have been admitted without a reservation.
    pub(super) fn arrive(&mut self, shares: usize) {
        if let Some(at) = self.admitted.iter().position(|one| one.shares <= shares) {
            self.admitted.remove(at);
        }
    }

    /// Releases reservations that are too old.
    pub(super) fn expire(&mut self, now: Instant) {
        while self.admitted.front().is_some_and(|one| now.saturating_duration_since(one.at) >= SET_ASIDE_FOR) {
            self.admitted.pop_front();
        }
    }

    /// Removes and returns the messages that may be admitted if this many shares fit into the queue. A message that
    /// needs more is admitted alone, into an empty queue. The caller resolves them after it has released its lock.
    pub(super) fn admit(&mut self, shares: usize, is_empty: bool, now: Instant) -> Vec<Waiting> {
        self.expire(now);
        let mut set_aside = self.set_aside();
        let mut admitted = Vec::new();
        let fits =
            |next: &WaitingMessage, set_aside: usize| set_aside + next.shares <= shares || is_empty && set_aside == 0;
        while self.waiting.front().is_some_and(|next| fits(next, set_aside))
            && let Some(WaitingMessage { waiting, shares }) = self.waiting.pop_front()
        {
            // A message whose time has run out was admitted without waiting any longer.
            if waiting.is_awaited() {
                set_aside += shares;
                self.admitted.push_back(AdmittedMessage { at: now, shares });
                admitted.push(waiting);
            }
        }
        admitted
    }

    /// Removes and returns all waiting messages.
    pub(super) fn take_all(&mut self) -> Vec<Waiting> {
        self.waiting.drain(..).map(|message| message.waiting).collect()
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
        let barriers: Vec<Barrier> = (0..10).map(|_| admission.enqueue(1)).collect();
        let ready = || barriers.iter().map(|barrier| barrier.wait(Duration::ZERO).is_ok()).collect::<Vec<_>>();
        assert_eq!(resolve(admission.admit(3, false, now)), 3);
        assert_eq!(ready().iter().position(|ready| !ready), Some(3));
        assert_eq!(resolve(admission.admit(3, false, now)), 0, "their shares are set aside");
        admission.arrive(1);
        assert_eq!(resolve(admission.admit(3, false, now)), 1);
        assert_eq!(ready().iter().filter(|ready| **ready).count(), 4);
    }

    #[test]
    fn a_share_that_brings_nothing_is_given_to_the_next() {
        let (mut admission, now) = (Admission::default(), Instant::now());
        let _barriers: Vec<Barrier> = (0..4).map(|_| admission.enqueue(1)).collect();
        assert_eq!(resolve(admission.admit(2, false, now)), 2);
        assert_eq!(resolve(admission.admit(2, false, now + SET_ASIDE_FOR / 2)), 0);
        assert_eq!(resolve(admission.admit(2, false, now + SET_ASIDE_FOR)), 2);
    }

    #[test]
    fn a_message_that_waits_no_more_takes_no_share() {
        let (mut admission, now) = (Admission::default(), Instant::now());
        drop(admission.enqueue(1));
        let next = admission.enqueue(1);
        assert_eq!(resolve(admission.admit(1, false, now)), 1);
        assert_eq!(next.wait(Duration::ZERO), Ok(()));
    }

    #[test]
    fn a_large_message_waits_for_all_of_its_shares_and_holds_up_those_behind_it() {
        let (mut admission, now) = (Admission::default(), Instant::now());
        let large = admission.enqueue(5);
        let small = admission.enqueue(1);
        assert_eq!(resolve(admission.admit(4, false, now)), 0);
        assert_eq!(resolve(admission.admit(5, false, now)), 1);
        assert_eq!((large.wait(Duration::ZERO).is_ok(), small.wait(Duration::ZERO).is_ok()), (true, false));
        assert_eq!(admission.set_aside(), 5);
        admission.arrive(1);
        assert_eq!(admission.set_aside(), 5, "that was another message");
        admission.arrive(5);
        assert_eq!(resolve(admission.admit(1, false, now)), 1);
    }

    #[test]
    fn a_message_that_is_larger_than_the_queue_is_admitted_into_an_empty_one() {
        let (mut admission, now) = (Admission::default(), Instant::now());
        let _barriers = [admission.enqueue(9), admission.enqueue(9)];
        assert_eq!(resolve(admission.admit(4, false, now)), 0);
        assert_eq!(resolve(admission.admit(4, true, now)), 1);
        assert_eq!(resolve(admission.admit(4, true, now)), 0, "the first has brought no fact yet");
    }
}
