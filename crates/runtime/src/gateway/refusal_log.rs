//! Refusals before there is a session. A fixed number of each source is recorded in each second, and the others are
//! counted: a flood from one address must not hide what other callers were refused.

use crate::allowance::PerSecond;
use signalbox_engine::caller::{Principal, Proof};
use signalbox_engine::fact::RefusedFact;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_engine::lock::LockResultExt as _;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Most refusals of a proved caller that are recorded in one second, for each reason.
pub const MAX_REFUSALS: u32 = 100;
/// Most refusals of an address that are recorded in one second, for each reason and apart for wrong credentials.
pub const MAX_ADDRESS_REFUSALS: u32 = 20;
/// Most refusals of all addresses that are recorded in one second. Each address has one besides.
pub const MAX_UNPROVED_REFUSALS: u32 = 500;
/// Most callers that are told apart, and most addresses. Further ones share one number.
pub const MAX_REFUSED_SOURCES: usize = 512;
const SECOND: Duration = Duration::from_secs(1);

/// Decides which refusals are recorded one by one.
#[derive(Debug)]
pub struct RefusalLog {
    proved: Mutex<HashMap<Source, Share>>,
    unproved: Mutex<HashMap<Source, Share>>,
    /// Beyond the first of each address.
    all_unproved: PerSecond,
}

/// Refusals that share a number.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Source {
    who: Who,
    reason: &'static str,
    /// It showed a credential that is not good here. Guesses at a key are not hidden by requests without any.
    wrong_credential: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum Who {
    Principal(Principal),
    Address(Option<IpAddr>),
    /// Those for whom there is no room.
    Others,
}

/// The refusals of one source in this second.
#[derive(Debug)]
struct Share {
    since: Instant,
    taken: u32,
    left_out: Option<LeftOut>,
}

/// Refusals that were not recorded since the last one that was.
#[derive(Debug)]
struct LeftOut {
    count: u64,
    last: RefusedFact,
}

impl Default for RefusalLog {
    fn default() -> Self {
        let all_unproved = PerSecond::new(MAX_UNPROVED_REFUSALS);
        Self { proved: Mutex::default(), unproved: Mutex::default(), all_unproved }
    }
}

impl RefusalLog {
    /// Returns the refusal for this fault if it is to be recorded, with the number of those of its source that
    /// were left out before.
    pub fn admit(&self, mut refused: RefusedFact, fault: &Fault) -> Option<RefusedFact> {
        let identity = refused.caller.identity();
        let (is_proved, now) = (identity.proof != Proof::Unproved, refused.at);
        let who = match is_proved {
            true => Who::Principal(identity.principal.clone()),
            false => Who::Address(identity.address.map(|address| network(address.ip()))),
        };
        let source = Source { who, reason: refused.reason, wrong_credential: is_wrong_credential(fault) };
        let (table, each) = match is_proved {
            true => (&self.proved, MAX_REFUSALS),
            false => (&self.unproved, MAX_ADDRESS_REFUSALS),
        };
        let mut table = table.lock().unpoisoned();
        let share = share_of(&mut table, source, now);
        if now.saturating_duration_since(share.since) >= SECOND {
            (share.since, share.taken) = (now, 0);
        }
        share.taken = share.taken.saturating_add(1);
        let has_room = share.taken <= each && (is_proved || share.taken == 1 || self.all_unproved.take(now));
        if !has_room {
            let count = share.left_out.as_ref().map_or(0, |left_out| left_out.count) + 1;
            share.left_out = Some(LeftOut { count, last: refused });
            return None;
        }
        if let Some(LeftOut { count, .. }) = share.left_out.take() {
            refused.detail.push_str(&format!(" ({count} other refusals before it were not recorded)"));
        }
        Some(refused)
    }

    /// Returns the last refusal of each source that was left out, with the number of them, if no recorded one has
    /// told of it yet.
    pub fn take_left_out(&self) -> Vec<RefusedFact> {
        let mut last_ones = Vec::new();
        for table in [&self.proved, &self.unproved] {
            let mut table = table.lock().unpoisoned();
            for LeftOut { count, mut last } in table.values_mut().filter_map(|share| share.left_out.take()) {
                last.detail.push_str(&format!(" (the last of {count} refusals that were not recorded one by one)"));
                last_ones.push(last);
            }
        }
        last_ones
    }
}

/// The share of a source. Sources of earlier seconds make room for others.
fn share_of(table: &mut HashMap<Source, Share>, mut source: Source, now: Instant) -> &mut Share {
    if !table.contains_key(&source) && table.len() >= MAX_REFUSED_SOURCES {
        table.retain(|_, share| share.left_out.is_some() || now.saturating_duration_since(share.since) < SECOND);
        if table.len() >= MAX_REFUSED_SOURCES {
            source.who = Who::Others;
        }
    }
    table.entry(source).or_insert(Share { since: now, taken: 0, left_out: None })
}

fn is_wrong_credential(fault: &Fault) -> bool {
    match fault.kind {
        // The word of OAuth for what is wrong with the credential; there is none where none was given.
        FaultKind::Unauthenticated => fault.data.iter().any(|(name, _)| *name == "error"),
        FaultKind::Signature(_) => true,
        _ => false,
    }
}

/// The network that one caller has to itself: of IPv6 the upper half, since a single machine has all of the lower one.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
        }
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_engine::caller::Identity;
    use signalbox_engine::{Caller, SessionKey};

    fn missing() -> Fault {
        Fault::new(FaultKind::Unauthenticated, "no key")
    }

    fn refusal(caller: Caller, fault: &Fault, at: Instant) -> RefusedFact {
        RefusedFact {
            at,
            caller,
            session: SessionKey::GATEWAY,
            status: Some(401),
            reason: fault.reason(),
            detail: fault.message.clone(),
            exchange: None,
            unreached: None,
        }
    }

    fn from(address: &str) -> Caller {
        let unproved = Caller::anonymous("http").identity().clone();
        Caller::new(Identity { address: Some(format!("{address}:1").parse().unwrap()), ..unproved })
    }

    /// Issue 31, point 15: refusals beyond the allowance are told of without another refusal, once.
    #[test]
    fn refusals_that_were_left_out_are_told_by_the_next_one_or_without_it() {
        let (log, start, fault) = (RefusalLog::default(), Instant::now(), missing());
        let admit = |at| log.admit(refusal(from("192.0.2.1"), &fault, at), &fault);
        let admitted = (0..MAX_ADDRESS_REFUSALS + 3).filter(|_| admit(start).is_some()).count();
        assert_eq!(admitted, MAX_ADDRESS_REFUSALS as usize);
        let told = log.take_left_out();
        assert_eq!((told.len(), told[0].reason, told[0].status), (1, "unauthenticated", Some(401)));
        assert_eq!(told[0].detail, "no key (the last of 3 refusals that were not recorded one by one)");
        assert!(log.take_left_out().is_empty());
        assert!(admit(start).is_none());
        let next = admit(start + Duration::from_secs(2)).unwrap();
        assert_eq!(next.detail, "no key (1 other refusals before it were not recorded)");
        assert!(log.take_left_out().is_empty());
    }

    /// E7: a flood leaves room for proved callers, for other addresses, for other reasons, and for wrong credentials.
    #[test]
    fn a_flood_from_one_address_does_not_hide_others() {
        let (log, start) = (RefusalLog::default(), Instant::now());
        let admit = |caller: Caller, fault: &Fault| log.admit(refusal(caller, fault, start), fault).is_some();
        let flood = |log_of: &str| (0..10_000).filter(|_| admit(from(log_of), &missing())).count();
        assert_eq!(flood("192.0.2.1"), MAX_ADDRESS_REFUSALS as usize);
        let wrong = missing().with_str("error", "invalid_token");
        let origin = Fault::new(FaultKind::InvalidRequest, "not from there");
        let vic = Caller::of(Principal::named("user:vic"), Proof::ApiKey, "http");
        let no_session = Fault::new(FaultKind::SessionClosed, "no such session");
        for round in 0..15 {
            assert!(admit(from("192.0.2.1"), &wrong), "{round}");
            assert!(admit(from("192.0.2.1"), &origin), "{round}");
            assert!(admit(from("192.0.2.2"), &missing()), "{round}");
            assert!(admit(from("[2001:db8::1]"), &missing()), "{round}");
            assert!(admit(vic.clone(), &no_session), "{round}");
        }
        assert_eq!(flood("[2001:db8::2]"), MAX_ADDRESS_REFUSALS as usize - 15, "the same network");
    }

    /// E7: a flood from very many addresses is bounded, and each of them is still recorded until there is
    /// no room for more.
    #[test]
    fn many_addresses_together_are_bounded() {
        let (log, start, fault) = (RefusalLog::default(), Instant::now(), missing());
        let admit = |number: usize, at| {
            let address = from(&format!("10.1.{}.{}", number / 256, number % 256));
            log.admit(refusal(address, &fault, at), &fault).is_some()
        };
        let count = |at| (0..4).map(|_| (0..1_000).filter(|number| admit(*number, at)).count()).sum::<usize>();
        let bound = MAX_REFUSED_SOURCES + 1 + MAX_UNPROVED_REFUSALS as usize;
        assert_eq!(count(start), bound);
        assert!(log.take_left_out().len() <= MAX_REFUSED_SOURCES + 1);
        let later = start + Duration::from_secs(2);
        assert!((2_000..2_400).all(|number| admit(number, later)), "former sources make room");
    }
}
