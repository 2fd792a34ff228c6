//! Circuit breakers of a backend: refuse the calls of a caller whose calls keep failing, or all calls.
//!
//! As long as nothing fails, a call reads one flag before it is sent and one flag when it returns.

use crate::clock;
use crate::origin::Origin;
use crate::session::Session;
use serde::Serialize;
use signalbox_engine::back::BackCommand;
use signalbox_engine::backend_breaker::{BackendBreaker, BreakerRefusal};
use signalbox_engine::breaker::{BreakerRules, BreakerState, CallResult};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{ExchangeId, Fault, FaultKind, Principal, SessionKey};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Identifies a call of a client.
pub(crate) type CallKey = (SessionKey, ExchangeId);

/// A call of a client and its caller. Has no key once the client has abandoned it.
pub(crate) struct GuardedCall {
    pub caller: Principal,
    pub key: Option<CallKey>,
}

impl GuardedCall {
    pub(crate) fn of(session: &Session, exchange: Option<ExchangeId>) -> Self {
        let key = exchange.map(|exchange| (session.key, exchange));
        Self { caller: session.principal.clone(), key }
    }
}

/// Breakers of a backend, and the number of calls that they refused.
pub(crate) struct Guard {
    /// True while every call passes and no failure is counted.
    quiet: AtomicBool,
    breaker: Option<Mutex<BackendBreaker<Principal, CallKey>>>,
    refused: AtomicU64,
}

/// Public state of a breaker.
#[derive(Clone, Debug, Serialize)]
pub struct BreakerStatus {
    /// `closed`, `open` or `half open`.
    pub state: &'static str,
    /// Time until calls pass again, in milliseconds.
    pub retry_in_ms: Option<u64>,
    /// Number of consecutive failures.
    pub failures: u32,
    /// Number of times that the breaker has opened.
    pub opened: u64,
    /// Number of refused calls.
    pub refused: u64,
    /// Number of callers that are refused because their own calls fail.
    pub callers: usize,
}

impl Guard {
    pub(crate) fn new(rules: Option<BreakerRules>) -> Self {
        let breaker = rules.map(|rules| Mutex::new(BackendBreaker::new(rules)));
        Self { quiet: AtomicBool::new(true), breaker, refused: AtomicU64::new(0) }
    }

    fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// Admits or refuses a call. An admitted call ends within `timeout` unless it reports progress.
    ///
    /// # Errors
    /// The refusal, with the time of the next attempt.
    pub(crate) fn admit(
        &self,
        backend: &str,
        session: &Session,
        exchange: ExchangeId,
        timeout: impl FnOnce() -> Duration,
    ) -> Result<(), Fault> {
        if self.is_quiet() {
            return Ok(());
        }
        let now = clock::now();
        let Some(mut breaker) = self.lock() else { return Ok(()) };
        let key = (session.key, exchange);
        let Err(refused) = breaker.admit(&session.principal, key, now + timeout(), now) else { return Ok(()) };
        drop(breaker);
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(refusal(backend, &refused, refused.until.saturating_duration_since(now)))
    }

    /// Records that a call has ended without evidence about the backend.
    pub(crate) fn release(&self, backend: &str, session: &Session, exchange: ExchangeId) {
        if !self.is_quiet() {
            self.settle(backend, &GuardedCall::of(session, Some(exchange)), CallResult::Unknown);
        }
    }

    /// Records an answer to the gateway's own ping.
    pub(crate) fn pinged(&self, backend: &str) {
        if !self.is_quiet() {
            self.update(backend, |breaker, _| breaker.pinged());
        }
    }

    /// Counts the outcome of a call, or of a connection that carried calls of this caller.
    fn settle(&self, backend: &str, call: &GuardedCall, outcome: CallResult) {
        self.update(backend, |breaker, now| breaker.settle(&call.caller, call.key.as_ref(), outcome, now));
    }

    fn update(&self, backend: &str, change: impl FnOnce(&mut BackendBreaker<Principal, CallKey>, Instant)) {
        let now = clock::now();
        let Some(mut breaker) = self.lock() else { return };
        let before = breaker.summary(now);
        change(&mut breaker, now);
        let after = breaker.summary(now);
        // Stored under the lock, so that the flag never lags behind a later failure.
        self.quiet.store(breaker.is_quiet(), Ordering::Relaxed);
        drop(breaker);
        let seconds = after.retry_in.unwrap_or_default().as_secs_f32();
        match (before.state, after.state) {
            (BreakerState::Closed | BreakerState::HalfOpen, BreakerState::Open) => tracing::warn!(
                backend,
                seconds,
                "the backend fails again and again: its breaker is open, calls are refused"
            ),
            (BreakerState::HalfOpen | BreakerState::Open, BreakerState::Closed) => {
                tracing::info!(backend, "the backend answers again: its breaker is closed");
            }
            _ if after.opened > before.opened => tracing::warn!(
                backend,
                callers = after.callers,
                "the calls of a caller fail again and again while others are answered: its calls are refused"
            ),
            _ => {}
        }
    }

    /// Counts the outcome that a connection reports for a client's call.
    pub(crate) fn watch(&self, backend: &str, command: &BackCommand<Origin>) {
        let (to, outcome) = match command {
            BackCommand::Answer { to, .. } | BackCommand::Unfinished { to, .. } | BackCommand::TaskMade { to, .. } => {
                (to, CallResult::Answered)
            }
            BackCommand::Fail { to, fault, .. } | BackCommand::SignIn { to, fault, .. } => (to, outcome(fault.kind)),
            _ => return,
        };
        if outcome != CallResult::Failed && self.is_quiet() {
            return;
        }
        if let Some(call) = to.guarded_call() {
            self.settle(backend, &call, outcome);
        }
    }

    /// Counts the loss of a connection with these calls: one failure per caller, however many calls it had.
    pub(crate) fn lost(&self, backend: &str, kind: FaultKind, calls: impl Iterator<Item = GuardedCall>) {
        let outcome = outcome(kind);
        let mut callers: HashMap<Principal, GuardedCall> = HashMap::new();
        for call in calls {
            if self.is_trial(&call) || !callers.contains_key(&call.caller) {
                callers.insert(call.caller.clone(), call);
            }
        }
        for call in callers.values() {
            if outcome == CallResult::Failed || !self.is_quiet() {
                self.settle(backend, call, outcome);
            }
        }
    }

    fn is_trial(&self, call: &GuardedCall) -> bool {
        let tries = |key| self.lock().is_some_and(|breaker| breaker.tries(&call.caller, key));
        !self.is_quiet() && call.key.as_ref().is_some_and(tries)
    }

    /// Returns the current state. `None` if there is no breaker.
    pub(crate) fn status(&self) -> Option<BreakerStatus> {
        let now = clock::now();
        let summary = self.lock()?.summary(now);
        Some(BreakerStatus {
            state: summary.state.as_str(),
            retry_in_ms: summary.retry_in.map(millis),
            failures: summary.in_a_row,
            opened: summary.opened,
            refused: self.refused.load(Ordering::Relaxed),
            callers: summary.callers,
        })
    }

    fn lock(&self) -> Option<MutexGuard<'_, BackendBreaker<Principal, CallKey>>> {
        Some(self.breaker.as_ref()?.lock().unpoisoned())
    }
}

/// Maps a fault to its evidence about the backend. A refusal by the gateway is no evidence. A backend that refused a
/// request has answered, and so has one whose result cannot be carried between revisions.
fn outcome(kind: FaultKind) -> CallResult {
    match kind {
        FaultKind::BackendDied | FaultKind::BackendDown | FaultKind::BackendGarbage | FaultKind::TimedOut => {
            CallResult::Failed
        }
        FaultKind::NotBridged | FaultKind::BackendRefused => CallResult::Answered,
        _ => CallResult::Unknown,
    }
}

fn refusal(backend: &str, refused: &BreakerRefusal, wait: Duration) -> Fault {
    let on = if refused.is_for_all { "" } else { " on calls of this caller" };
    let text = if refused.is_tried {
        format!(
            "backend `{backend}` has failed again and again{on}; one call is tried on it right now, the others are refused"
        )
    } else {
        let seconds = wait.as_secs_f32().ceil();
        format!(
            "backend `{backend}` has failed again and again{on} and is left alone; it is tried again in {seconds} s"
        )
    };
    Fault::new(FaultKind::BreakerOpen, text)
        .with_str("backend", backend)
        .with_raw("retryAfterMs", millis(wait).to_string())
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}
