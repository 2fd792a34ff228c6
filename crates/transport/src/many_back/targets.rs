//! The addresses of one backend, the requests in flight at each, and which of them are failing.

use super::{Address, ManySpec};
use crate::backend_fault;
use signalbox_engine::balance::{Candidate, Turns};
use signalbox_engine::breaker::{Breaker, BreakerRules, CallResult};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::AddressStatus;
use signalbox_runtime::Connector;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum time without a result after which another trial at a failed address is allowed.
const TRIAL: Duration = Duration::from_secs(60);

/// All addresses of a backend.
pub(super) struct Targets {
    pub spec: ManySpec,
    pub all: Vec<BackendAddress>,
    turns: Mutex<Turns>,
    uses: AtomicU64,
    retried: AtomicU64,
}

/// State of one address.
pub(super) struct BackendAddress {
    pub label: String,
    pub connector: Arc<dyn Connector>,
    weight: u32,
    busy: AtomicUsize,
    sent: AtomicU64,
    failed: AtomicU64,
    breaker: Mutex<Breaker<u64>>,
}

/// A request or connection in flight at an address.
#[derive(Copy, Clone, Debug)]
pub(super) struct AddressUse {
    /// Index of the address.
    pub at: usize,
    number: u64,
}

impl Targets {
    pub(super) fn new(spec: ManySpec, addresses: Vec<Address>) -> Self {
        // One failure is enough: there are other addresses, and soon another trial.
        let rules = BreakerRules { failures: 1, successes: 1, recovery: spec.recovery, ..BreakerRules::default() };
        let target = |address: Address| BackendAddress {
            label: address.label,
            connector: address.connector,
            weight: address.weight,
            busy: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            failed: AtomicU64::new(0),
            breaker: Mutex::new(Breaker::new(rules)),
        };
        Self {
            spec,
            all: addresses.into_iter().map(target).collect(),
            turns: Mutex::default(),
            uses: AtomicU64::new(1),
            retried: AtomicU64::new(0),
        }
    }

    /// Chooses an address that was not tried yet, and starts a use of it. Returns `None` if all were tried.
    pub(super) fn choose(&self, tried: &[usize]) -> Option<AddressUse> {
        let now = now();
        let candidate = |(at, target): (usize, &BackendAddress)| Candidate {
            well: target.breaker().passes(now),
            tried: tried.contains(&at),
            busy: target.busy.load(Ordering::Relaxed),
            weight: target.weight,
        };
        let all: Vec<Candidate> = self.all.iter().enumerate().map(candidate).collect();
        let mut turns = self.turns.lock().unpoisoned();
        let at = turns.choose(self.spec.balance, &all, chance())?;
        drop(turns);
        self.begin(at)
    }

    /// Starts a use of this address even if it is failing, because the request can only be sent there.
    pub(super) fn begin(&self, at: usize) -> Option<AddressUse> {
        let target = self.all.get(at)?;
        let number = self.uses.fetch_add(1, Ordering::Relaxed);
        let now = now();
        // A refusal is ignored: the address was chosen because there is no other.
        let _ = target.breaker().admit(number, now + TRIAL, now);
        target.busy.fetch_add(1, Ordering::Relaxed);
        target.sent.fetch_add(1, Ordering::Relaxed);
        Some(AddressUse { at, number })
    }

    /// Ends a use of an address with its result.
    pub(super) fn end(&self, chosen: AddressUse, outcome: CallResult) {
        let Some(target) = self.all.get(chosen.at) else { return };
        target.busy.fetch_sub(1, Ordering::Relaxed);
        self.settle(chosen, outcome);
    }

    /// Records an intermediate result of a use that continues.
    pub(super) fn settle(&self, chosen: AddressUse, outcome: CallResult) {
        let Some(target) = self.all.get(chosen.at) else { return };
        let now = now();
        let mut breaker = target.breaker();
        let before = breaker.passes(now);
        breaker.settle(Some(&chosen.number), outcome, now);
        let fell = before && breaker.retry_in(now).is_some();
        drop(breaker);
        if outcome == CallResult::Failed {
            target.failed.fetch_add(1, Ordering::Relaxed);
        }
        if fell {
            let seconds = self.spec.recovery.as_secs_f32();
            tracing::warn!(backend = %self.spec.name, address = %target.label, seconds, "an address keeps failing and is skipped for now");
        }
    }

    /// Returns `true` if an address other than `but` is not known to be failing.
    pub(super) fn has_other(&self, but: usize) -> bool {
        let now = now();
        self.all.iter().enumerate().any(|(at, target)| at != but && target.breaker().passes(now))
    }

    pub(super) fn count_retry(&self) {
        self.retried.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn retried(&self) -> u64 {
        self.retried.load(Ordering::Relaxed)
    }

    pub(super) fn status(&self) -> Vec<AddressStatus> {
        let now = now();
        let one = |target: &BackendAddress| AddressStatus {
            address: target.label.clone(),
            weight: target.weight,
            breaker: target.breaker().state(now).as_str(),
            busy: target.busy.load(Ordering::Relaxed),
            sent: target.sent.load(Ordering::Relaxed),
            failed: target.failed.load(Ordering::Relaxed),
        };
        self.all.iter().map(one).collect()
    }

    /// Creates a fault of this backend. `text` continues after its name.
    pub(super) fn fault(&self, kind: FaultKind, text: &str) -> Fault {
        backend_fault::fault(&self.spec.name, kind, text)
    }
}

impl BackendAddress {
    fn breaker(&self) -> MutexGuard<'_, Breaker<u64>> {
        self.breaker.lock().unpoisoned()
    }
}

/// Returns what a fault says about the address.
pub(super) fn outcome(kind: FaultKind) -> CallResult {
    match kind {
        FaultKind::BackendDied | FaultKind::BackendDown | FaultKind::BackendGarbage | FaultKind::TimedOut => {
            CallResult::Failed
        }
        FaultKind::BackendRefused => CallResult::Answered,
        _ => CallResult::Unknown,
    }
}

/// Returns a random number, or 0 if the system has none; any number will do.
pub(super) fn chance() -> u64 {
    getrandom::u64().unwrap_or_default()
}

/// Returns the current time of tokio's clock, which timers use.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
