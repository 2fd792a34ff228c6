//! What people agreed to: one call each, bound to what it was when they were asked.

use aws_lc_rs::digest::{SHA256, digest};
use signalbox_engine::keys::KeyMap;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{ExchangeId, Principal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Most calls about which somebody is being asked or has agreed.
pub const MAX_APPROVALS: usize = 10_000;
/// Most calls of one caller about which somebody is being asked.
pub const MAX_APPROVALS_EACH: usize = MAX_APPROVALS / 4;
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

/// One message of a call that wants to be covered.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Use {
    /// The call: the exchange of its first round.
    pub call: ExchangeId,
    /// The exchange that carries the message.
    pub exchange: ExchangeId,
    /// Which round of the call it is.
    pub round: u32,
}

/// What becomes of somebody's consent.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Granted {
    /// It counts.
    Yes,
    /// The call is not what it was when they were asked, or nobody was asked about it.
    Changed,
    /// It comes too late.
    Expired,
    /// It was used before.
    Used,
}

/// Why nobody can be asked about one more call.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApprovalsFull {
    /// The caller has too many calls that wait.
    #[error("{} calls of yours wait for a decision already, which is the limit for one caller", MAX_APPROVALS_EACH)]
    OfCaller,
    /// All callers together have too many.
    #[error(
        "{} calls of all callers wait for a decision or have one, which is the limit of the gateway",
        MAX_APPROVALS
    )]
    OfGateway,
}

#[derive(Clone, Debug)]
struct Approval {
    caller: Principal,
    bound: Bound,
    /// The last message that it covered; `None` while nobody has agreed.
    covered: Option<(u32, ExchangeId)>,
    /// When it is forgotten.
    until: Instant,
}

/// The calls about which somebody is being asked, and those that were approved.
#[derive(Debug, Default)]
pub struct Approvals(Mutex<KeyMap<ExchangeId, Approval>>);

impl Approvals {
    /// Registers that somebody is asked about a call, with a deadline.
    ///
    /// # Errors
    /// The bound that is met.
    pub fn ask(
        &self,
        call: ExchangeId,
        caller: &Principal,
        bound: Bound,
        now: Instant,
        within: Duration,
    ) -> Result<(), ApprovalsFull> {
        let mut all = self.0.lock().unpoisoned();
        if all.len() >= MAX_APPROVALS {
            all.retain(|_, approval| approval.until > now);
        }
        let is_new = !all.contains_key(&call);
        if is_new && all.len() >= MAX_APPROVALS_EACH {
            let waits = |one: &&Approval| one.caller == *caller && one.covered.is_none() && one.until > now;
            if all.values().filter(waits).count() >= MAX_APPROVALS_EACH {
                return Err(ApprovalsFull::OfCaller);
            }
        }
        if is_new && all.len() >= MAX_APPROVALS {
            return Err(ApprovalsFull::OfGateway);
        }
        all.insert(call, Approval { caller: caller.clone(), bound, covered: None, until: now + within });
        Ok(())
    }

    /// Somebody agreed to this message.
    pub fn grant(&self, used: Use, bound: Bound, now: Instant) -> Granted {
        let mut all = self.0.lock().unpoisoned();
        match all.get_mut(&used.call) {
            None => Granted::Changed,
            Some(approval) if approval.covered.is_some() => Granted::Used,
            Some(approval) if approval.until < now => Granted::Expired,
            Some(approval) if approval.bound != bound => Granted::Changed,
            Some(approval) => {
                approval.covered = Some((used.round, used.exchange));
                approval.until = now + KEPT;
                Granted::Yes
            }
        }
    }

    /// True if somebody agreed to exactly this call, and the message is the one that they agreed to or a later round, which no other
    /// message has been: what is sent twice is not covered twice.
    #[must_use]
    pub fn covers(&self, used: Use, bound: Bound) -> bool {
        let mut all = self.0.lock().unpoisoned();
        let Some(approval) = all.get_mut(&used.call).filter(|approval| approval.bound == bound) else { return false };
        let Some((round, exchange)) = approval.covered else { return false };
        let covers = used.exchange == exchange || used.round > round;
        if covers {
            approval.covered = Some((used.round, used.exchange));
        }
        covers
    }

    /// Nobody is asked any more. What was agreed to stays.
    pub fn withdraw(&self, call: ExchangeId) {
        let mut all = self.0.lock().unpoisoned();
        if all.get(&call).is_some_and(|approval| approval.covered.is_none()) {
            all.remove(&call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WITHIN: Duration = Duration::from_secs(60);

    fn asks(approvals: &Approvals, call: u64, bound: Bound, now: Instant) -> bool {
        approvals.ask(ExchangeId(call), &Principal::named("ann"), bound, now, WITHIN).is_ok()
    }

    fn first(call: u64) -> Use {
        Use { call: ExchangeId(call), exchange: ExchangeId(call), round: 1 }
    }

    /// T34: what was approved is one call with these arguments, of this tool, under this policy, by this caller.
    #[test]
    fn t34_an_approval_is_for_what_was_asked_about_and_nothing_else() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        let (bound, other) = (Bound::to(&[b"ab", b"c"]), Bound::to(&[b"a", b"bc"]));
        assert_ne!(bound, other, "parts do not run into each other");
        assert_eq!(approvals.grant(first(1), bound, now), Granted::Changed, "nobody was asked");
        assert!(asks(&approvals, 1, bound, now) && !approvals.covers(first(1), bound));
        assert_eq!(approvals.grant(first(1), other, now), Granted::Changed);
        assert_eq!(approvals.grant(first(1), bound, now), Granted::Yes);
        assert!(approvals.covers(first(1), bound) && !approvals.covers(first(1), other));
        assert!(!approvals.covers(first(2), bound));
        approvals.withdraw(ExchangeId(1));
        assert!(approvals.covers(first(1), bound), "what was agreed to stays");
    }

    /// T34: consent is used once. Further rounds of the call are covered, each by one message.
    #[test]
    fn t34_an_approval_is_used_once() {
        let (approvals, now, bound) = (Approvals::default(), Instant::now(), Bound::to(&[]));
        let message = |exchange, round| Use { call: ExchangeId(1), exchange: ExchangeId(exchange), round };
        assert!(asks(&approvals, 1, bound, now));
        assert_eq!(approvals.grant(message(2, 2), bound, now), Granted::Yes);
        assert!(approvals.covers(message(2, 2), bound), "the same message is looked at again");
        assert_eq!(approvals.grant(message(3, 2), bound, now), Granted::Used);
        assert!(!approvals.covers(message(3, 2), bound), "the same answer comes twice");
        assert!(approvals.covers(message(4, 3), bound) && !approvals.covers(message(5, 3), bound));
    }

    #[test]
    fn t34_an_approval_that_comes_too_late_does_not_count() {
        let (approvals, now, bound) = (Approvals::default(), Instant::now(), Bound::to(&[]));
        assert!(asks(&approvals, 1, bound, now));
        assert_eq!(approvals.grant(first(1), bound, now + WITHIN * 2), Granted::Expired);
        assert!(!approvals.covers(first(1), bound));
    }

    #[test]
    fn old_approvals_make_room() {
        let (approvals, start, bound) = (Approvals::default(), Instant::now(), Bound::to(&[]));
        let ask = |call: u64, now| {
            let caller = Principal::named(&(call % 8).to_string());
            approvals.ask(ExchangeId(call), &caller, bound, now, WITHIN)
        };
        assert!((0..MAX_APPROVALS as u64).all(|call| ask(call, start).is_ok()));
        assert_eq!(ask(u64::MAX, start), Err(ApprovalsFull::OfGateway));
        assert!(ask(1, start).is_ok(), "the same call is asked about anew");
        assert!(ask(u64::MAX, start + WITHIN).is_ok());
    }

    /// Issue 31, point 14.
    #[test]
    fn a_caller_who_fills_its_share_leaves_the_rest_to_others() {
        let (approvals, now, bound) = (Approvals::default(), Instant::now(), Bound::to(&[]));
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let ask = |call: usize, caller| approvals.ask(ExchangeId(call as u64), caller, bound, now, WITHIN);
        assert!((0..MAX_APPROVALS_EACH).all(|call| ask(call, &ann).is_ok()));
        assert_eq!(ask(MAX_APPROVALS_EACH, &ann), Err(ApprovalsFull::OfCaller));
        assert!(ask(MAX_APPROVALS_EACH, &bob).is_ok());
        let decided = Use { call: ExchangeId(0), exchange: ExchangeId(0), round: 1 };
        assert_eq!(approvals.grant(decided, bound, now), Granted::Yes);
        assert!(ask(MAX_APPROVALS_EACH + 1, &ann).is_ok(), "one was decided");
    }
}
