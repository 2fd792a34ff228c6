//! Log of refusals that happen before there is a session. Records a fixed number per source and second and counts the
//! others: a flood from one address must not hide the refusals of other callers.

use crate::allowance::PerSecond;
use signalbox_engine::caller::{Principal, Proof};
use signalbox_engine::fact::RefusedFact;
use signalbox_engine::fault::{Fault, FaultKind};
use signalbox_engine::lock::LockResultExt as _;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Maximum number of recorded refusals per second of an authenticated caller, for each reason.
pub const MAX_REFUSALS: u32 = 100;
/// Maximum number of recorded refusals per second of an address, for each reason, with wrong credentials counted apart.
pub const MAX_ADDRESS_REFUSALS: u32 = 20;
/// Maximum number of recorded refusals per second of all addresses. The first one of each address does not count.
pub const MAX_UNPROVED_REFUSALS: u32 = 500;
/// Maximum number of callers, and of addresses, that are counted separately. Further ones share one count.
pub const MAX_REFUSED_SOURCES: usize = 512;
const SECOND: Duration = Duration::from_secs(1);

/// Decides which refusals are recorded individually.
#[derive(Debug)]
pub struct RefusalLog {
    proved: Mutex<HashMap<Source, SourceCount>>,
    unproved: Mutex<HashMap<Source, SourceCount>>,
    /// Limit for all addresses together, beyond the first refusal of each.
    all_unproved: PerSecond,
}

/// Key of refusals that are counted together.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Source {
    key: SourceKey,
    reason: &'static str,
    /// Set if the caller presented an invalid credential. Requests without any must not hide guesses at a key.
    wrong_credential: bool,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
enum SourceKey {
    Principal(Principal),
    Address(Option<IpAddr>),
    /// All sources beyond the first [`MAX_REFUSED_SOURCES`].
    Others,
}

/// Count of refusals of one source in the current second.
#[derive(Debug)]
struct SourceCount {
    since: Instant,
    taken: u32,
    omitted: Option<OmittedRefusals>,
}

/// Refusals that were omitted since the last recorded one.
#[derive(Debug)]
struct OmittedRefusals {
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
    /// Returns the refusal for this fault if it is to be recorded, with the number of omitted refusals of its source.
    pub fn admit(&self, mut refused: RefusedFact, fault: &Fault) -> Option<RefusedFact> {
        let identity = refused.caller.identity();
        let (is_proved, now) = (identity.proof != Proof::Unproved, refused.at);
        let key = match is_proved {
            true => SourceKey::Principal(identity.principal.clone()),
            false => SourceKey::Address(identity.address.map(|address| network(address.ip()))),
        };
        let source = Source { key, reason: refused.reason, wrong_credential: is_wrong_credential(fault) };
        let (table, each) = match is_proved {
            true => (&self.proved, MAX_REFUSALS),
            false => (&self.unproved, MAX_ADDRESS_REFUSALS),
        };
        let mut table = table.lock().unpoisoned();
        let tally = count_of(&mut table, source, now);
        if now.saturating_duration_since(tally.since) >= SECOND {
            (tally.since, tally.taken) = (now, 0);
        }
        tally.taken = tally.taken.saturating_add(1);
        let has_room = tally.taken <= each && (is_proved || tally.taken == 1 || self.all_unproved.take(now));
        if !has_room {
            let count = tally.omitted.as_ref().map_or(0, |omitted| omitted.count) + 1;
            tally.omitted = Some(OmittedRefusals { count, last: refused });
            return None;
        }
        if let Some(OmittedRefusals { count, .. }) = tally.omitted.take() {
            refused.detail.push_str(&format!(" ({count} other refusals before it were not recorded)"));
        }
        Some(refused)
    }

    /// Returns the last omitted refusal of each source, with their number, unless a recorded refusal has reported it.
    pub fn take_omitted(&self) -> Vec<RefusedFact> {
        let mut last_ones = Vec::new();
        for table in [&self.proved, &self.unproved] {
            let mut table = table.lock().unpoisoned();
            for OmittedRefusals { count, mut last } in table.values_mut().filter_map(|tally| tally.omitted.take()) {
                last.detail.push_str(&format!(" (the last of {count} refusals that were not recorded one by one)"));
                last_ones.push(last);
            }
        }
        last_ones
    }
}

/// Returns the count of a source. Sources of earlier seconds are evicted first.
fn count_of(table: &mut HashMap<Source, SourceCount>, mut source: Source, now: Instant) -> &mut SourceCount {
    if !table.contains_key(&source) && table.len() >= MAX_REFUSED_SOURCES {
        table.retain(|_, tally| tally.omitted.is_some() || now.saturating_duration_since(tally.since) < SECOND);
        if table.len() >= MAX_REFUSED_SOURCES {
            source.key = SourceKey::Others;
        }
    }
    table.entry(source).or_insert(SourceCount { since: now, taken: 0, omitted: None })
}

fn is_wrong_credential(fault: &Fault) -> bool {
    match fault.kind {
        // The OAuth error code says what is wrong with the credential. It is absent if no credential was given.
        FaultKind::Unauthenticated => fault.data.iter().any(|(name, _)| *name == "error"),
        FaultKind::Signature(_) => true,
        _ => false,
    }
}

/// Returns the network that belongs to one caller: the upper half of an IPv6 address, since one machine has all of the
/// lower half.
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
            notification: None,
        }
    }

    fn from(address: &str) -> Caller {
        let unproved = Caller::anonymous("http").identity().clone();
        Caller::new(Identity { address: Some(format!("{address}:1").parse().unwrap()), ..unproved })
    }

    /// Refusals beyond the allowance are told of without another refusal, once.
    #[test]
    fn refusals_that_were_left_out_are_told_by_the_next_one_or_without_it() {
        let (log, start, fault) = (RefusalLog::default(), Instant::now(), missing());
        let admit = |at| log.admit(refusal(from("192.0.2.1"), &fault, at), &fault);
        let admitted = (0..MAX_ADDRESS_REFUSALS + 3).filter(|_| admit(start).is_some()).count();
        assert_eq!(admitted, MAX_ADDRESS_REFUSALS as usize);
        let told = log.take_omitted();
        assert_eq!((told.len(), told[0].reason, told[0].status), (1, "unauthenticated", Some(401)));
        assert_eq!(told[0].detail, "no key (the last of 3 refusals that were not recorded one by one)");
        assert!(log.take_omitted().is_empty());
        assert!(admit(start).is_none());
        let next = admit(start + Duration::from_secs(2)).unwrap();
        assert_eq!(next.detail, "no key (1 other refusals before it were not recorded)");
        assert!(log.take_omitted().is_empty());
    }

    /// A flood leaves room for proved callers, for other addresses, for other reasons, and for wrong credentials.
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

    /// A flood from very many addresses is bounded, and each of them is still recorded until there is no room for more.
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
        assert!(log.take_omitted().len() <= MAX_REFUSED_SOURCES + 1);
        let later = start + Duration::from_secs(2);
        assert!((2_000..2_400).all(|number| admit(number, later)), "former sources make room");
    }
}
