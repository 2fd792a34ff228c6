//! Matching of answers to requests on one connection.
//!
//! Ids on a backend connection are the gateway's own counter, so two clients with the same id never collide. Answers
//! may come in any order. An answer that matches no request is an orphan, a second one a duplicate, one after the
//! time-out late: each is counted, and none reaches a client.

use crate::keys::KeyMap;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Maximum number of abandoned ids remembered, to distinguish late answers from duplicates.
pub const REMEMBERED: usize = 1024;

/// Maximum duration of a call, regardless of its progress.
pub const MAX_CALL: Duration = Duration::from_secs(24 * 3600);

/// Request that waits for its answer.
#[derive(Clone, Debug)]
pub struct PendingRequest<T> {
    /// Origin of the request.
    pub origin: T,
    /// Time it was sent.
    pub sent_at: Instant,
    /// Time at which it is given up.
    pub deadline: Instant,
    /// Maximum time without progress.
    pub timeout: Duration,
    /// Time until which its time-out is suspended because the backend waits for its client.
    pub held_until: Option<Instant>,
}

/// Reason why an answer matches no request in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StrayAnswer {
    /// The request was answered before.
    Duplicate,
    /// The request had been given up.
    Late,
    /// No such request was ever sent.
    Orphan,
}

/// Counts of messages that matched no request.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Strays {
    /// Number of answers to requests that were never sent.
    pub orphans: u64,
    /// Number of second answers.
    pub duplicates: u64,
    /// Number of answers after the time-out or cancellation.
    pub late: u64,
    /// Number of requests that timed out.
    pub timeouts: u64,
}

/// Requests in flight on one connection.
#[derive(Debug)]
pub struct Correlator<T> {
    first: u64,
    next: u64,
    pending: KeyMap<u64, PendingRequest<T>>,
    given_up: VecDeque<u64>,
    strays: Strays,
    earliest: Option<Instant>,
}

impl<T> Default for Correlator<T> {
    fn default() -> Self {
        Self::starting_at(1)
    }
}

impl<T> Correlator<T> {
    /// Creates a correlator that assigns ids from `first` on, so that a party that has not seen one cannot guess those
    /// in use.
    #[must_use]
    pub fn starting_at(first: u64) -> Self {
        Self {
            first,
            next: first,
            pending: KeyMap::default(),
            given_up: VecDeque::new(),
            strays: Strays::default(),
            earliest: None,
        }
    }

    /// Registers a request and returns its id.
    pub fn open(&mut self, origin: T, now: Instant, timeout: Duration) -> u64 {
        let id = self.next;
        self.next += 1;
        let deadline = now + timeout;
        self.earliest = Some(self.earliest.map_or(deadline, |known| known.min(deadline)));
        self.pending.insert(id, PendingRequest { origin, sent_at: now, deadline, timeout, held_until: None });
        id
    }

    /// Removes and returns the request that this answer is for.
    ///
    /// # Errors
    /// Returns the reason why the id is not that of a request in flight.
    pub fn close(&mut self, id: Option<u64>) -> Result<PendingRequest<T>, StrayAnswer> {
        if let Some(pending) = id.and_then(|id| self.pending.remove(&id)) {
            return Ok(pending);
        }
        let stray = match id {
            Some(id) if self.given_up.contains(&id) => StrayAnswer::Late,
            Some(id) if (self.first..self.next).contains(&id) => StrayAnswer::Duplicate,
            _ => StrayAnswer::Orphan,
        };
        match stray {
            StrayAnswer::Late => self.strays.late += 1,
            StrayAnswer::Duplicate => self.strays.duplicates += 1,
            StrayAnswer::Orphan => self.strays.orphans += 1,
        }
        Err(stray)
    }

    /// Abandons a request before its answer, because it was cancelled or the transport refused it.
    pub fn give_up(&mut self, id: u64) -> Option<PendingRequest<T>> {
        let pending = self.pending.remove(&id)?;
        if self.given_up.len() == REMEMBERED {
            self.given_up.pop_front();
        }
        self.given_up.push_back(id);
        Some(pending)
    }

    /// Returns the request in flight under this id.
    #[must_use]
    pub fn get(&self, id: u64) -> Option<&PendingRequest<T>> {
        self.pending.get(&id)
    }

    /// Returns the request in flight under this id, mutably.
    pub fn get_mut(&mut self, id: u64) -> Option<&mut PendingRequest<T>> {
        self.pending.get_mut(&id)
    }

    /// Suspends the time-out of a call until then.
    pub fn hold(&mut self, id: u64, until: Instant) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.held_until = Some(until + pending.timeout);
            pending.deadline = pending.deadline.max(until + pending.timeout);
        }
    }

    /// Ends the suspension of a call's time-out.
    pub fn release(&mut self, id: u64, now: Instant) {
        if let Some(pending) = self.pending.get_mut(&id) {
            pending.held_until = None;
        }
        self.touch(id, now);
    }

    /// Restarts the time-out of a call after progress.
    pub fn touch(&mut self, id: u64, now: Instant) {
        if let Some(pending) = self.pending.get_mut(&id) {
            let deadline = (now + pending.timeout).min(pending.sent_at + MAX_CALL);
            pending.deadline = pending.held_until.map_or(deadline, |held| held.max(deadline));
            self.earliest = self.earliest.map(|known| known.min(pending.deadline));
        }
    }

    /// Removes and returns every request whose time-out has passed.
    pub fn expire(&mut self, now: Instant) -> Vec<(u64, PendingRequest<T>)> {
        if self.earliest.is_none_or(|earliest| earliest > now) {
            return Vec::new();
        }
        let mut over: Vec<u64> =
            self.pending.iter().filter(|(_, one)| one.deadline <= now).map(|(id, _)| *id).collect();
        over.sort_unstable();
        let expired: Vec<_> = over.into_iter().filter_map(|id| self.give_up(id).map(|one| (id, one))).collect();
        self.strays.timeouts += expired.len() as u64;
        self.earliest = self.pending.values().map(|one| one.deadline).min();
        expired
    }

    /// Returns the id of any request in flight that fits.
    pub fn find(&self, fits: impl Fn(&T) -> bool) -> Option<u64> {
        self.pending.iter().find(|(_, one)| fits(&one.origin)).map(|(id, _)| *id)
    }

    /// Returns the id that the next request gets.
    #[must_use]
    pub fn next_id(&self) -> u64 {
        self.next
    }

    /// Returns the requests in flight.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &PendingRequest<T>)> {
        self.pending.iter().map(|(id, one)| (*id, one))
    }

    /// Removes and returns all requests, in the order they were sent.
    pub fn drain(&mut self) -> Vec<(u64, PendingRequest<T>)> {
        self.earliest = None;
        let mut all: Vec<_> = self.pending.drain().collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        all
    }

    /// Returns the number of requests in flight.
    #[must_use]
    pub fn len(&self) -> usize {
        self.pending.len()
    }

    /// Returns true if no request is in flight.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Returns the counts of messages that matched no request.
    #[must_use]
    pub fn strays(&self) -> Strays {
        self.strays
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    /// Proves S-13 and S-16.
    #[test]
    fn answers_may_come_in_any_order() {
        let now = Instant::now();
        let mut calls = Correlator::default();
        let ids: Vec<u64> = ["a", "b", "c"].into_iter().map(|who| calls.open(who, now, MINUTE)).collect();
        assert_eq!(ids, [1, 2, 3]);
        assert_eq!(calls.close(Some(3)).unwrap().origin, "c");
        assert_eq!(calls.close(Some(1)).unwrap().origin, "a");
        assert_eq!(calls.close(Some(2)).unwrap().origin, "b");
    }

    /// Proves S-13, S-15 and S-17.
    #[test]
    fn orphans_duplicates_and_late_answers_are_told_apart() {
        let now = Instant::now();
        let mut calls = Correlator::default();
        calls.open("a", now, MINUTE);
        calls.open("b", now, MINUTE);
        calls.close(Some(1)).unwrap();
        assert_eq!(calls.close(Some(1)).unwrap_err(), StrayAnswer::Duplicate);
        assert_eq!(calls.expire(now + MINUTE).len(), 1);
        assert_eq!(calls.close(Some(2)).unwrap_err(), StrayAnswer::Late);
        assert_eq!(calls.close(Some(77)).unwrap_err(), StrayAnswer::Orphan);
        assert_eq!(calls.close(None).unwrap_err(), StrayAnswer::Orphan);
        assert_eq!(calls.strays(), Strays { orphans: 2, duplicates: 1, late: 1, timeouts: 1 });
    }

    /// Proves S-13 and S-18.
    #[test]
    fn a_silent_call_times_out_and_progress_keeps_it_alive() {
        let now = Instant::now();
        let mut calls = Correlator::default();
        let quiet = calls.open("quiet", now, MINUTE);
        let busy = calls.open("busy", now, MINUTE);
        calls.touch(busy, now + MINUTE / 2);
        let over = calls.expire(now + MINUTE);
        assert_eq!(over.len(), 1);
        assert_eq!((over[0].0, over[0].1.origin), (quiet, "quiet"));
        assert_eq!(calls.expire(now + MINUTE + MINUTE / 2).len(), 1);
    }

    #[test]
    fn what_is_remembered_of_the_dead_is_bounded() {
        let now = Instant::now();
        let mut calls = Correlator::default();
        for _ in 0..3 * REMEMBERED {
            let id = calls.open((), now, MINUTE);
            calls.give_up(id);
        }
        assert_eq!(calls.given_up.len(), REMEMBERED);
    }
}
