//! Approvals of held calls. Each covers one call, bound to its content at the time of the request.

use aws_lc_rs::digest::{SHA256, digest};
use signalbox_engine::keys::KeyMap;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_engine::{ExchangeId, Principal};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Maximum number of calls with a pending or granted approval.
pub const MAX_APPROVALS: usize = 10_000;
/// Maximum number of pending approvals per caller.
pub const MAX_APPROVALS_EACH: usize = MAX_APPROVALS / 4;
/// Time an approval is remembered for further rounds of its call.
const GRANT_LIFETIME: Duration = Duration::from_secs(3600);

/// Digest of everything that an approval is bound to.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub struct ApprovalDigest([u8; 32]);

impl ApprovalDigest {
    /// Hashes these parts, in this order.
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

/// One message of a call that needs to be covered by an approval.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ApprovalUse {
    /// The call: the exchange of its first round.
    pub call: ExchangeId,
    /// Exchange that carries the message.
    pub exchange: ExchangeId,
    /// Round of the call.
    pub round: u32,
}

/// Outcome of granting an approval.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum GrantOutcome {
    /// The approval is in force.
    Yes,
    /// The call has changed since the request, or no approval was requested.
    Changed,
    /// The deadline has passed.
    Expired,
    /// The approval was already used.
    Used,
}

/// Error when no further approval can be requested.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ApprovalsFull {
    /// The caller has too many pending approvals.
    #[error("{} calls of yours wait for a decision already, which is the limit for one caller", MAX_APPROVALS_EACH)]
    OfCaller,
    /// All callers together have too many approvals.
    #[error(
        "{} calls of all callers wait for a decision or have one, which is the limit of the gateway",
        MAX_APPROVALS
    )]
    OfGateway,
}

#[derive(Clone, Debug)]
struct Approval {
    caller: Principal,
    bound: ApprovalDigest,
    /// Round and exchange of the last message covered; `None` while the approval is pending.
    covered: Option<(u32, ExchangeId)>,
    /// Time at which it is dropped.
    until: Instant,
}

/// Pending and granted approvals, by call.
#[derive(Debug, Default)]
pub struct Approvals(Mutex<KeyMap<ExchangeId, Approval>>);

impl Approvals {
    /// Registers an approval request with a deadline.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn ask(
        &self,
        call: ExchangeId,
        caller: &Principal,
        bound: ApprovalDigest,
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

    /// Grants the approval for this message.
    pub fn grant(&self, used: ApprovalUse, bound: ApprovalDigest, now: Instant) -> GrantOutcome {
        let mut all = self.0.lock().unpoisoned();
        match all.get_mut(&used.call) {
            None => GrantOutcome::Changed,
            Some(approval) if approval.covered.is_some() => GrantOutcome::Used,
            Some(approval) if approval.until < now => GrantOutcome::Expired,
            Some(approval) if approval.bound != bound => GrantOutcome::Changed,
            Some(approval) => {
                approval.covered = Some((used.round, used.exchange));
                approval.until = now + GRANT_LIFETIME;
                GrantOutcome::Yes
            }
        }
    }

    /// Returns true if the call is approved and `used` is the approved message or a later round of it. Each round is
    /// covered by one exchange only, so a message that is sent twice is not covered twice.
    #[must_use]
    pub fn covers(&self, used: ApprovalUse, bound: ApprovalDigest) -> bool {
        let mut all = self.0.lock().unpoisoned();
        let Some(approval) = all.get_mut(&used.call).filter(|approval| approval.bound == bound) else { return false };
        let Some((round, exchange)) = approval.covered else { return false };
        let covers = used.exchange == exchange || used.round > round;
        if covers {
            approval.covered = Some((used.round, used.exchange));
        }
        covers
    }

    /// Removes a pending approval request. A granted approval stays.
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

    fn asks(approvals: &Approvals, call: u64, bound: ApprovalDigest, now: Instant) -> bool {
        approvals.ask(ExchangeId(call), &Principal::named("ann"), bound, now, WITHIN).is_ok()
    }

    fn first(call: u64) -> ApprovalUse {
        ApprovalUse { call: ExchangeId(call), exchange: ExchangeId(call), round: 1 }
    }

    /// What was approved is one call with these arguments, of this tool, under this policy, by this caller.
    #[test]
    fn an_approval_is_for_what_was_asked_about_and_nothing_else() {
        let (approvals, now) = (Approvals::default(), Instant::now());
        let (bound, other) = (ApprovalDigest::to(&[b"ab", b"c"]), ApprovalDigest::to(&[b"a", b"bc"]));
        assert_ne!(bound, other, "parts do not run into each other");
        assert_eq!(approvals.grant(first(1), bound, now), GrantOutcome::Changed, "nobody was asked");
        assert!(asks(&approvals, 1, bound, now) && !approvals.covers(first(1), bound));
        assert_eq!(approvals.grant(first(1), other, now), GrantOutcome::Changed);
        assert_eq!(approvals.grant(first(1), bound, now), GrantOutcome::Yes);
        assert!(approvals.covers(first(1), bound) && !approvals.covers(first(1), other));
        assert!(!approvals.covers(first(2), bound));
        approvals.withdraw(ExchangeId(1));
        assert!(approvals.covers(first(1), bound), "what was agreed to stays");
    }

    /// Consent is used once. Further rounds of the call are covered, each by one message.
    #[test]
    fn an_approval_is_used_once() {
        let (approvals, now, bound) = (Approvals::default(), Instant::now(), ApprovalDigest::to(&[]));
        let message = |exchange, round| ApprovalUse { call: ExchangeId(1), exchange: ExchangeId(exchange), round };
        assert!(asks(&approvals, 1, bound, now));
        assert_eq!(approvals.grant(message(2, 2), bound, now), GrantOutcome::Yes);
        assert!(approvals.covers(message(2, 2), bound), "the same message is looked at again");
        assert_eq!(approvals.grant(message(3, 2), bound, now), GrantOutcome::Used);
        assert!(!approvals.covers(message(3, 2), bound), "the same answer comes twice");
        assert!(approvals.covers(message(4, 3), bound) && !approvals.covers(message(5, 3), bound));
    }

    #[test]
    fn an_approval_that_comes_too_late_does_not_count() {
        let (approvals, now, bound) = (Approvals::default(), Instant::now(), ApprovalDigest::to(&[]));
        assert!(asks(&approvals, 1, bound, now));
        assert_eq!(approvals.grant(first(1), bound, now + WITHIN * 2), GrantOutcome::Expired);
        assert!(!approvals.covers(first(1), bound));
    }

    #[test]
    fn old_approvals_make_room() {
        let (approvals, start, bound) = (Approvals::default(), Instant::now(), ApprovalDigest::to(&[]));
        let ask = |call: u64, now| {
            let caller = Principal::named(&(call % 8).to_string());
            approvals.ask(ExchangeId(call), &caller, bound, now, WITHIN)
        };
        assert!((0..MAX_APPROVALS as u64).all(|call| ask(call, start).is_ok()));
        assert_eq!(ask(u64::MAX, start), Err(ApprovalsFull::OfGateway));
        assert!(ask(1, start).is_ok(), "the same call is asked about anew");
        assert!(ask(u64::MAX, start + WITHIN).is_ok());
    }

    #[test]
    fn a_caller_who_fills_its_share_leaves_the_rest_to_others() {
        let (approvals, now, bound) = (Approvals::default(), Instant::now(), ApprovalDigest::to(&[]));
        let (ann, bob) = (Principal::named("ann"), Principal::named("bob"));
        let ask = |call: usize, caller| approvals.ask(ExchangeId(call as u64), caller, bound, now, WITHIN);
        assert!((0..MAX_APPROVALS_EACH).all(|call| ask(call, &ann).is_ok()));
        assert_eq!(ask(MAX_APPROVALS_EACH, &ann), Err(ApprovalsFull::OfCaller));
        assert!(ask(MAX_APPROVALS_EACH, &bob).is_ok());
        let decided = ApprovalUse { call: ExchangeId(0), exchange: ExchangeId(0), round: 1 };
        assert_eq!(approvals.grant(decided, bound, now), GrantOutcome::Yes);
        assert!(ask(MAX_APPROVALS_EACH + 1, &ann).is_ok(), "one was decided");
    }
}
