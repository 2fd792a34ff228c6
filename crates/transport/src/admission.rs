//! Admission rules of a front: allowed hosts and origins, and the number of open connections. Both can change at
//! runtime.

use crate::http_front::OriginGuard;
use arc_swap::ArcSwap;
use http::HeaderMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Number of places beyond the limit for connections whose caller is not known yet. They are used only while all others
/// are taken, and each only until the first request is read.
pub const RESERVE: usize = 256;

/// Numbers of places for the connections of a front.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct FrontPlaces {
    /// Maximum number of connections of any caller.
    pub most: usize,
    /// Maximum number of further connections whose caller is not known yet.
    pub reserve: usize,
}

impl From<usize> for FrontPlaces {
    fn from(most: usize) -> Self {
        Self { most, reserve: RESERVE }
    }
}

/// Admission rules of a front.
pub struct Admission {
    most: AtomicUsize,
    reserve: AtomicUsize,
    open: AtomicUsize,
    reserved: AtomicUsize,
    guard: ArcSwap<OriginGuard>,
}

impl Admission {
    /// Creates the rules. `origins` and `hosts` are allowed besides those of this machine.
    #[must_use]
    pub fn new(places: impl Into<FrontPlaces>, origins: &[String], hosts: &[String]) -> Arc<Self> {
        let FrontPlaces { most, reserve } = places.into();
        Arc::new(Self {
            most: AtomicUsize::new(most),
            reserve: AtomicUsize::new(reserve),
            open: AtomicUsize::new(0),
            reserved: AtomicUsize::new(0),
            guard: ArcSwap::from_pointee(OriginGuard::new(origins, hosts)),
        })
    }

    /// Replaces the rules. Open connections stay; the new rules apply to their next requests.
    pub fn set(&self, places: impl Into<FrontPlaces>, origins: &[String], hosts: &[String]) {
        let FrontPlaces { most, reserve } = places.into();
        self.most.store(most, Ordering::Relaxed);
        self.reserve.store(reserve, Ordering::Relaxed);
        self.guard.store(Arc::new(OriginGuard::new(origins, hosts)));
    }

    /// Maximum number of open connections.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most.load(Ordering::Relaxed)
    }

    /// Maximum number of connections in the reserve.
    #[must_use]
    pub fn reserve(&self) -> usize {
        self.reserve.load(Ordering::Relaxed)
    }

    /// Takes a place for a connection, if one is free.
    #[must_use]
    pub fn enter(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let most = self.most();
        let one_more = |open: usize| (open < most).then_some(open + 1);
        let entered = self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
        entered.then(|| ConnectionPermit { admission: Arc::clone(self), is_provisional: false })
    }

    /// Takes a place in the reserve for a connection whose caller is not known yet, if one is free.
    #[must_use]
    pub fn enter_reserve(self: &Arc<Self>) -> Option<ConnectionPermit> {
        let most = self.reserve();
        let one_more = |open: usize| (open < most).then_some(open + 1);
        let entered = self.reserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more).is_ok();
        entered.then(|| ConnectionPermit { admission: Arc::clone(self), is_provisional: true })
    }

    /// Returns `true` if a request with these headers may be processed. `has_origin` says whether `Origin` must be
    /// checked.
    #[must_use]
    pub fn admits(&self, headers: &HeaderMap, has_origin: bool) -> bool {
        self.guard.load().admits(headers, has_origin)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("most", &self.most).field("open", &self.open).finish_non_exhaustive()
    }
}

/// A place for a connection. Dropping it frees the place.
pub struct ConnectionPermit {
    admission: Arc<Admission>,
    is_provisional: bool,
}

impl ConnectionPermit {
    /// Returns `true` for a place in the reserve.
    #[must_use]
    pub fn is_provisional(&self) -> bool {
        self.is_provisional
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let count = if self.is_provisional { &self.admission.reserved } else { &self.admission.open };
        count.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::header::HOST;

    #[test]
    fn the_number_of_places_follows_the_rules_while_some_are_taken() {
        let admission = Admission::new(2, &[], &[]);
        let (first, second) = (admission.enter(), admission.enter());
        assert!(first.is_some() && second.is_some() && admission.enter().is_none());
        admission.set(1, &[], &[]);
        drop(first);
        assert!(admission.enter().is_none(), "one is still there, which is the most");
        drop(second);
        let only = admission.enter();
        assert!(only.is_some() && admission.enter().is_none());
    }

    #[test]
    fn hosts_follow_the_rules() {
        let mut headers = HeaderMap::new();
        headers.insert(HOST, "box.example".parse().unwrap());
        let admission = Admission::new(1, &[], &[]);
        assert!(!admission.admits(&headers, true));
        admission.set(1, &[], &["box.example".to_owned()]);
        assert!(admission.admits(&headers, true));
        admission.set(1, &[], &[]);
        assert!(!admission.admits(&headers, true));
    }
}
