//! The circuit breaker of a backend: refuses calls to one that fails repeatedly.
//!
//! While nothing fails, a call reads one flag on its way to the backend and one on its way back.

use crate::clock;
use crate::origin::Origin;
use serde::Serialize;
use signalbox_engine::back::BackCommand;
use signalbox_engine::breaker::{Breaker, BreakerRules, BreakerState, CallResult};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{ExchangeId, Fault, FaultKind, SessionKey};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

/// A call of a client.
pub(crate) type CallKey = (SessionKey, ExchangeId);

/// The breaker of a backend, and what it refused.
pub(crate) struct Guard {
    /// True while every call passes and no failure is counted.
    quiet: AtomicBool,
    breaker: Option<Mutex<Breaker<CallKey>>>,
    refused: AtomicU64,
}

/// The state of a breaker.
#[derive(Clone, Debug, Serialize)]
pub struct BreakerStatus {
    /// `closed`, `open` or `half open`.
    pub state: &'static str,
    /// How long until calls pass again.
    pub retry_in_ms: Option<u64>,
    /// Failures in a row so far.
    pub failures: u32,
    /// How often it has opened.
    pub opened: u64,
    /// How many calls it refused.
    pub refused: u64,
}

impl Guard {
    pub(crate) fn new(rules: Option<BreakerRules>) -> Self {
        let breaker = rules.map(|rules| Mutex::new(Breaker::new(rules)));
        Self { quiet: AtomicBool::new(true), breaker, refused: AtomicU64::new(0) }
    }

    fn is_quiet(&self) -> bool {
        self.quiet.load(Ordering::Relaxed)
    }

    /// Lets a call pass or refuses it. One that passes ends within `timeout` unless it shows progress.
    ///
    /// # Errors
    /// The refusal, which says when to try again.
    pub(crate) fn admit(&self, backend: &str, who: CallKey, timeout: impl FnOnce() -> Duration) -> Result<(), Fault> {
        if self.is_quiet() {
            return Ok(());
        }
        let now = clock::now();
        let Some(mut breaker) = self.lock() else { return Ok(()) };
        let Err(until) = breaker.admit(who, now + timeout(), now) else { return Ok(()) };
        let trial = breaker.state(now) == BreakerState::HalfOpen;
        drop(breaker);
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(refusal(backend, trial, until.saturating_duration_since(now)))
    }

    /// Counts the outcome of a call, or of a connection.
    pub(crate) fn settle(&self, backend: &str, who: Option<CallKey>, outcome: CallResult) {
        if outcome != CallResult::Failed && self.is_quiet() {
            return;
        }
        let now = clock::now();
        let Some(mut breaker) = self.lock() else { return };
        let before = breaker.state(now);
        breaker.settle(who.as_ref(), outcome, now);
        let (after, retry_in) = (breaker.state(now), breaker.retry_in(now));
        // Stored under the lock, so that the flag never lags behind a later failure.
        self.quiet.store(breaker.is_quiet(), Ordering::Relaxed);
        drop(breaker);
        match (before, after) {
            (BreakerState::Open, _) => {}
            (_, BreakerState::Open) => {
                let seconds = retry_in.unwrap_or_default().as_secs_f32();
                tracing::warn!(
                    backend,
                    seconds,
                    "the backend fails again and again: its breaker is open, calls are refused"
                );
            }
            (BreakerState::HalfOpen, BreakerState::Closed) => {
                tracing::info!(backend, "the backend answers again: its breaker is closed");
            }
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
        if (outcome != CallResult::Failed && self.is_quiet()) || !to.is_call() {
            return;
        }
        self.settle(backend, to.call_key(), outcome);
    }

    /// Counts the loss of a connection with these calls on it: one failure, however many calls there were.
    pub(crate) fn lost(&self, backend: &str, kind: FaultKind, calls: impl Iterator<Item = Option<CallKey>>) {
        let outcome = outcome(kind);
        let calls: Vec<Option<CallKey>> = calls.collect();
        let trial = calls.iter().flatten().find(|call| self.is_trial(call));
        if !calls.is_empty() {
            self.settle(backend, trial.copied(), outcome);
        }
    }

    fn is_trial(&self, call: &CallKey) -> bool {
        !self.is_quiet() && self.lock().is_some_and(|breaker| breaker.tries(call))
    }

    /// The state at this moment; `None` if there is no breaker.
    pub(crate) fn status(&self) -> Option<BreakerStatus> {
        let now = clock::now();
        let breaker = self.lock()?;
        let retry_in = breaker.retry_in(now).map(millis);
        Some(BreakerStatus {
            state: breaker.state(now).as_str(),
            retry_in_ms: retry_in,
            failures: breaker.in_a_row(),
            opened: breaker.opened(),
            refused: self.refused.load(Ordering::Relaxed),
        })
    }

    fn lock(&self) -> Option<MutexGuard<'_, Breaker<CallKey>>> {
        Some(self.breaker.as_ref()?.lock().unpoisoned())
    }
}

/// What a fault says about the backend. A refusal by the gateway says nothing. A backend that refused one request has answered, and
/// so has one whose result cannot be carried between revisions.
fn outcome(kind: FaultKind) -> CallResult {
    match kind {
        FaultKind::BackendDied | FaultKind::BackendDown | FaultKind::BackendGarbage | FaultKind::TimedOut => {
            CallResult::Failed
        }
        FaultKind::NotBridged | FaultKind::BackendRefused => CallResult::Answered,
        _ => CallResult::Unknown,
    }
}

fn refusal(backend: &str, trial: bool, wait: Duration) -> Fault {
    let text = if trial {
        format!(
            "backend `{backend}` has failed again and again; one call is tried on it right now, the others are refused"
        )
    } else {
        let seconds = wait.as_secs_f32().ceil();
        format!("backend `{backend}` has failed again and again and is left alone; it is tried again in {seconds} s")
    };
    Fault::new(FaultKind::BreakerOpen, text)
        .with_str("backend", backend)
        .with_raw("retryAfterMs", millis(wait).to_string())
}

fn millis(wait: Duration) -> u64 {
    u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)
}
