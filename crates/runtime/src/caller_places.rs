//! Places that callers share, where each place is free again after a while: for questions to webhooks, and for
//! connections to a backend.
//!
//! No caller has more than its share, which is at most half of the places, so that another caller finds a place at once
//! or waits for the next one that is free. Free places go to the waiting caller with the fewest.

use signalbox_engine::Principal;
use signalbox_engine::lock::LockResultExt;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::oneshot;

/// Places are divided by no less than this, so that a single caller leaves some of them to others.
const LEAST_CALLERS: usize = 2;

/// Places for something that callers compete for, such as questions to webhooks, and their holders.
pub struct CallerPlaces {
    most: AtomicUsize,
    refused: AtomicU64,
    taken: Mutex<TakenPlaces>,
}

#[derive(Default)]
struct TakenPlaces {
    /// Number of places of each caller, at least 1.
    by_caller: HashMap<Principal, usize>,
    total: usize,
    waiting: VecDeque<WaitingCaller>,
}

struct WaitingCaller {
    caller: Principal,
    grant: oneshot::Sender<CallerPlace>,
}

/// A place of a caller. Dropping it leaves it to the next one.
pub struct CallerPlace {
    places: Arc<CallerPlaces>,
    caller: Principal,
}

/// No place came free in time.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("all {most} places are taken, of which one caller has at most {share}")]
pub struct NoPlace {
    /// The number of places.
    pub most: usize,
    /// Most places of one caller at that time.
    pub share: usize,
}

impl CallerPlaces {
    /// Makes this many places, all of them free.
    #[must_use]
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most: AtomicUsize::new(most), refused: AtomicU64::new(0), taken: Mutex::default() })
    }

    /// Changes the number of places. Those that are taken stay.
    pub fn set_most(&self, most: usize) {
        self.most.store(most, Ordering::Relaxed);
    }

    /// Number of times that no place came free in time.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Takes a place for this caller, or waits for one.
    ///
    /// # Errors
    /// If none comes free `within` this time.
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

    /// Most places of one caller: an equal part for each that has or awaits one.
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
        // Sent without the lock: a caller that has gone meanwhile drops its place, and the next one gets it.
        for WaitingCaller { caller, grant } in next {
            let _ = grant.send(CallerPlace { places: Arc::clone(self), caller });
        }
    }

    /// Takes places for those that may have one now.
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
