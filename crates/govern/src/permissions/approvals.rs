//! What people agreed to: one call each, bound to what it was when they were asked.

use aws_lc_rs::digest::{SHA256, digest};
use signalbox_engine::ExchangeId;
use signalbox_engine::keys::KeyMap;
use signalbox_engine::lock::LockResultExt as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Most calls about which somebody is being asked or has agreed.
pub const MAX_APPROVALS: usize = 10_000;
/// How long an approval is remembered for further rounds of its call.
const KEPT: Duration = Duration::from_secs(3600);

/// A digest of everything that an approval is bound to.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct Bound([u8; 32]);

impl Bound {
    /// Binds to these parts, in this order.
    #[must_use]
    pub fn to(parts: &[&[u8]]) -> Self {
        let mut all = Vec::new();
        for part in parts {
            all.extend_from_slice(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
            all.extend_from_slice(part);
        }
        let mut bound = [0; 32];
        bound.copy_from_slice(digest(&SHA256, &all).as_ref());
        Self(bound)
    }
}

#[derive(Copy, Clone, Debug)]
struct Approval {
    bound: Bound,
    granted: bool,
    since: Instant,
}

/// The calls about which somebody is being asked, and those that were approved.
#[derive(Debug, Default)]
pub struct Approvals(Mutex<KeyMap<ExchangeId, Approval>>);

impl Approvals {
    /// Somebody is asked about a call. False if there is no room for more.
    pub fn ask(&self, call: ExchangeId, bound: Bound, now: Instant) -> bool {
        let mut all = self.0.lock().unpoisoned();
        if all.len() >= MAX_APPROVALS {
            all.retain(|_, approval| now.saturating_duration_since(approval.since) < KEPT);
        }
        all.len() < MAX_APPROVALS
            && all.insert(call, Approval { bound, granted: false, since: now }).is_none_or(|_| true)
    }

    /// Somebody agreed. False if the call is not what it was when they were asked.
    pub fn grant(&self, call: ExchangeId, bound: Bound) -> bool {
        let mut all = self.0.lock().unpoisoned();
        let Some(approval) = all.get_mut(&call).filter(|approval| approval.bound == bound) else { return false };
        approval.granted = true;
        true
    }

    /// True if somebody agreed to exactly this call.
    #[must_use]
    pub fn covers(&self, call: ExchangeId, bound: Bound) -> bool {
        self.0.lock().unpoisoned().get(&call).is_some_and(|approval| approval.granted && approval.bound == bound)
    }

    /// Nobody is asked any more, or the call is over.
    pub fn forget(&self, call: ExchangeId) {
        self.0.lock().unpoisoned().remove(&call);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T34: what was approved is one call with these arguments, of this tool, under this policy, by this caller.
    #[test]
    fn t34_an_approval_is_for_what_was_asked_about_and_nothing_else() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        let (bound, other) = (Bound::to(&[b"ab", b"c"]), Bound::to(&[b"a", b"bc"]));
        assert_ne!(bound, other, "parts do not run into each other");
        assert!(!approvals.grant(ExchangeId(1), bound), "nobody was asked");
        assert!(approvals.ask(ExchangeId(1), bound, now) && !approvals.covers(ExchangeId(1), bound));
        assert!(!approvals.grant(ExchangeId(1), other) && approvals.grant(ExchangeId(1), bound));
        assert!(approvals.covers(ExchangeId(1), bound));
        assert!(!approvals.covers(ExchangeId(1), other) && !approvals.covers(ExchangeId(2), bound));
        approvals.forget(ExchangeId(1));
        assert!(!approvals.covers(ExchangeId(1), bound));
    }

    #[test]
    fn old_approvals_make_room() {
        let (approvals, start) = (Approvals::default(), Instant::now());
        let bound = Bound::to(&[]);
        assert!((0..MAX_APPROVALS as u64).all(|call| approvals.ask(ExchangeId(call), bound, start)));
        assert!(!approvals.ask(ExchangeId(u64::MAX), bound, start));
        assert!(approvals.ask(ExchangeId(u64::MAX), bound, start + KEPT));
    }
}
