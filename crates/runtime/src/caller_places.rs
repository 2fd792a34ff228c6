//! Fairly shared slots, each held for a limited time: for questions to webhooks, and for connections to a backend.
//!
//! No caller gets more than its share, which is at most half of the slots, so that another caller finds a slot at once
//! or waits for the next free one. A free slot goes to the waiting caller that holds the fewest.

use signalbox_engine::Principal;
use signalbox_engine::lock::LockResultExt;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;

/// Minimum divisor of a caller's share, so that a single caller leaves slots to others.
const LEAST_CALLERS: usize = 2;

/// Semaphore with a fair share per caller.
pub struct CallerPlaces {
    most: AtomicUsize,
    refused: AtomicU64,
    taken: Mutex<TakenPlaces>,
}

#[derive(Default)]
struct TakenPlaces {
    /// Number of slots held by each caller, at least 1.
    by_caller: HashMap<Principal, usize>,
    total: usize,
    waiting: VecDeque<WaitingCaller>,
}

struct WaitingCaller {
    caller: Principal,
    grant: oneshot::Sender<CallerPlace>,
}

/// A slot held by a caller. Dropping it passes it to the next one.
pub struct CallerPlace {
    places: Arc<CallerPlaces>,
    caller: Principal,
}

/// Error: no slot became free in time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("all {most} places are taken, of which one caller has at most {share}")]
pub struct NoPlace {
    /// Number of slots in total.
    pub most: usize,
    /// Maximum number of slots of one caller at that time.
    pub share: usize,
}

impl CallerPlaces {
    /// Creates a semaphore with `most` free slots.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: AtomicUsize::new(most), refused: AtomicU64::new(0), taken: Mutex::default() })
    }

    /// Changes the number of slots. Slots in use stay valid.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Returns the number of times that no slot became free in time.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Acquires a slot for this caller, waiting if necessary.
    ///
    /// # Errors
    /// If no slot becomes free `within` this time.
    pub async fn enter(self: &Arc<Self>, caller: &Principal, within: Duration) -> Result<CallerPlace, NoPlace> {
        let granted = {
            let mut taken = self.lock();
            if taken.total < self.most() && taken.count(caller) < self.share(&taken, caller) {
                taken.add(caller);
                drop(taken);
                return Ok(CallerPlace { places: Arc::clone(self), caller: caller.clone() });
            }
            let (grant, granted) = oneshot::channel();
            taken.waiting.push_back(WaitingCaller { caller: caller.clone(), grant });
            granted
        };
        let place = tokio::time::timeout(within, granted).await.ok().and_then(Result::ok);
        place.ok_or_else(|| {
            self.refused.fetch_add(1, Ordering::Relaxed);
            NoPlace { most: self.most(), share: self.share(&self.lock(), caller) }
        })
    }

    /// Returns the maximum number of slots of one caller: an equal part for each caller that holds or awaits one.
    fn share(&self, taken: &TakenPlaces, caller: &Principal) -> usize {
        let is_new = usize::from(!taken.by_caller.contains_key(caller));
        (self.most() / (taken.by_caller.len() + is_new).max(LEAST_CALLERS)).max(1)
    }

    fn leave(self: &Arc<Self>, caller: &Principal) {
        let next = {
            let mut taken = self.lock();
            taken.remove(caller);
            self.next(&mut taken)
        };
        // Sent without the lock: a waiter that has gone meanwhile drops its slot, and the next one gets it.
        for WaitingCaller { caller, grant } in next {
            let _ = grant.send(CallerPlace { places: Arc::clone(self), caller });
        }
    }

    /// Reserves slots for the waiters that may have one now.
    fn next(&self, taken: &mut TakenPlaces) -> Vec<WaitingCaller> {
        taken.waiting.retain(|one| !one.grant.is_closed());
        let mut next = Vec::new();
        while taken.total < self.most() {
            let may_enter =
                |(_, one): &(usize, &WaitingCaller)| taken.count(&one.caller) < self.share(taken, &one.caller);
            let waiting = taken.waiting.iter().enumerate().filter(may_enter);
            let Some((at, _)) = waiting.min_by_key(|(_, one)| taken.count(&one.caller)) else { break };
            let Some(one) = taken.waiting.remove(at) else { break };
            taken.add(&one.caller);
            next.push(one);
        }
        next
    }

    fn lock(&self) -> MutexGuard<'_, TakenPlaces> {
        self.taken.lock().unpoisoned()
    }
}

impl TakenPlaces {
    fn count(&self, caller: &Principal) -> usize {
        self.by_caller.get(caller).copied().unwrap_or_default()
    }

    fn add(&mut self, caller: &Principal) {
        self.total += 1;
        *self.by_caller.entry(caller.clone()).or_default() += 1;
    }

    fn remove(&mut self, caller: &Principal) {
        self.total -= 1;
        if let Some(count) = self.by_caller.get_mut(caller) {
            *count -= 1;
            if *count == 0 {
                self.by_caller.remove(caller);
            }
        }
    }
}

impl Drop for CallerPlace {
    fn drop(&mut self) {
        self.places.leave(&self.caller);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Duration = Duration::from_millis(10);

    fn named(name: &str) -> Principal {
        Principal::named(name)
    }

    async fn fill(places: &Arc<CallerPlaces>, name: &str) -> Vec<CallerPlace> {
        let mut own = Vec::new();
        while let Ok(place) = places.enter(&named(name), SHORT).await {
            own.push(place);
        }
        own
    }

    #[tokio::test(start_paused = true)]
    async fn one_caller_has_half_of_the_places_and_another_finds_one() {
        let places = CallerPlaces::new(8);
        let ada = fill(&places, "ada").await;
        assert_eq!(ada.len(), 4);
        assert_eq!(fill(&places, "vic").await.len(), 4);
        drop(ada);
        assert_eq!(fill(&places, "eve").await.len(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_caller_gets_the_next_free_place_before_those_that_have_some() {
        let places = CallerPlaces::new(4);
        let (mut ada, eve) = (fill(&places, "ada").await, fill(&places, "eve").await);
        assert_eq!((ada.len(), eve.len()), (2, 2));
        let wait = |name: &'static str| {
            let places = Arc::clone(&places);
            tokio::spawn(async move { places.enter(&named(name), Duration::from_secs(5)).await })
        };
        let (first, second) = (wait("ada"), wait("vic"));
        tokio::time::sleep(SHORT).await;
        ada.pop();
        let vic = second.await.unwrap().unwrap();
        assert!(first.await.unwrap().is_err(), "ada has its share");
        drop((vic, ada, eve));
        assert_eq!(places.lock().total, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_gives_up_leaves_its_turn_to_the_next() {
        let places = CallerPlaces::new(1);
        let only = places.enter(&named("ada"), SHORT).await.unwrap();
        let wait = |name: &'static str| {
            let places = Arc::clone(&places);
            tokio::spawn(async move { places.enter(&named(name), Duration::from_secs(5)).await.is_ok() })
        };
        let (gone, next) = (wait("eve"), wait("vic"));
        tokio::time::sleep(SHORT).await;
        gone.abort();
        let _ = gone.await;
        drop(only);
        assert!(next.await.unwrap());
        tokio::task::yield_now().await;
        assert_eq!(places.lock().total, 0);
    }
}
