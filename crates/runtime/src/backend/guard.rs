//! Keeps calls from a backend that fails again and again.
//!
//! As long as nothing fails, a call costs one look at a flag on its way there and one on its way back.

use crate::clock;
use crate::origin::Origin;
use serde::Serialize;
use signalbox_engine::back::BackCommand;
use signalbox_engine::breaker::{Breaker, BreakerRules, BreakerState, CallResult};
use signalbox_engine::{ExchangeId, Fault, FaultKind, SessionKey};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A call of a client.
pub(crate) type CallKey = (SessionKey, ExchangeId);

/// The breaker of a backend, and what it refused.
pub(crate) struct Guard {
    /// True while everything passes and no failure is remembered.
    quiet: AtomicBool,
    breaker: Option<Mutex<Breaker<CallKey>>>,
    refused: AtomicU64,
}

/// The state of a breaker.
#[derive(Clone, Debug, Serialize)]
pub struct BreakerStatus {
    /// `closed`, `open` or `half open`.
    pub state: &'static str,
    /// For how long nothing passes.
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

    /// Whether a call may pass. It ends within `timeout`, unless it gives signs of life.
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

    /// Takes what became of a call, or of a connection.
    pub(crate) fn settle(&self, backend: &str, who: Option<CallKey>, outcome: CallResult) {
        if outcome != CallResult::Failed && self.is_quiet() {
            return;
        }
        let now = clock::now();
        let Some(mut breaker) = self.lock() else { return };
        let before = breaker.state(now);
        breaker.settle(who.as_ref(), outcome, now);
        let (after, retry_in) = (breaker.state(now), breaker.retry_in(now));
        // Under the lock, so that the flag never lags behind a later failure.
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

    /// Takes what a connection says about a call of a client.
    pub(crate) fn watch(&self, backend: &str, command: &BackCommand<Origin>) {
        let (to, outcome) = match command {
            BackCommand::Answer { to, .. } | BackCommand::Unfinished { to, .. } | BackCommand::TaskMade { to, .. } => {
                (to, CallResult::Answered)
            }
            BackCommand::Fail { to, fault, .. } => (to, outcome(fault.kind)),
            _ => return,
        };
        if (outcome != CallResult::Failed && self.is_quiet()) || !to.is_call() {
            return;
        }
        self.settle(backend, to.call_key(), outcome);
    }

    /// Takes that a connection was lost with these calls on it. However many they were, that is one failure.
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

    /// The state at this moment; none where there is no breaker.
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
        Some(self.breaker.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What a fault says of the backend. A refusal of our own says nothing, and that something cannot be carried between
/// revisions is only known of an answer.
fn outcome(kind: FaultKind) -> CallResult {
    match kind {
        FaultKind::BackendDied | FaultKind::BackendDown | FaultKind::BackendGarbage | FaultKind::TimedOut => {
            CallResult::Failed
        }
        FaultKind::NotBridged => CallResult::Answered,
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
