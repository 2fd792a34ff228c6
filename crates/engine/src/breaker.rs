//! The circuit breaker of one backend: a backend that fails again and again is left alone for a while.
//!
//! It starts closed, and every call passes. After a number of failures in a row, or when too large a share of the
//! calls in a window failed, it opens, and no call passes. After the recovery time it is half open: one call at a
//! time passes as a trial. Enough successful trials close it; one failure opens it again. Calls that were sent before
//! it opened are not counted.
//!
//! A window starts with a failure, so nothing is counted while nothing fails.

use std::time::{Duration, Instant};

/// The retry delay reported while a trial is in flight.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// When a breaker opens, and when it closes again.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BreakerRules {
    /// Failures in a row that open it.
    pub failures: u32,
    /// Percentage of failed calls within the window that opens it.
    pub percent: u32,
    /// The least number of calls in the window for the percentage to count.
    pub least_calls: u32,
    /// The length of the window.
    pub window: Duration,
    /// How long it stays open before the first trial.
    pub recovery: Duration,
    /// Trials that must succeed before it closes.
    pub successes: u32,
}

impl Default for BreakerRules {
    fn default() -> Self {
        Self {
            failures: 5,
            percent: 50,
            least_calls: 10,
            window: Duration::from_secs(60),
            recovery: Duration::from_secs(30),
            successes: 3,
        }
    }
}

/// The result of a call, as far as the breaker cares.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CallResult {
    /// The backend answered, possibly with an error.
    Answered,
    /// The call failed.
    Failed,
    /// Unknown: the call was cancelled, or never reached the backend.
    Unknown,
}

/// The state of a breaker, as it is reported.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BreakerState {
    /// Everything passes.
    Closed,
    /// Nothing passes.
    Open,
    /// One call at a time passes for a trial.
    HalfOpen,
}

impl BreakerState {
    /// The word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half open",
        }
    }
}

/// The breaker. `K` tells calls apart.
#[derive(Clone, Debug)]
pub struct Breaker<K> {
    rules: BreakerRules,
    phase: Phase<K>,
    opened: u64,
}

#[derive(Clone, Debug)]
enum Phase<K> {
    Closed { in_a_row: u32, window: Option<Window> },
    Open { until: Instant },
    HalfOpen { successes: u32, trial: Option<Trial<K>> },
}

#[derive(Copy, Clone, Debug)]
struct Window {
    began: Instant,
    calls: u32,
    failures: u32,
}

#[derive(Clone, Debug)]
struct Trial<K> {
    who: K,
    /// When it counts as lost if nothing is heard of it.
    until: Instant,
}

impl<K: PartialEq> Breaker<K> {
    /// A closed breaker.
    #[must_use]
    pub fn new(rules: BreakerRules) -> Self {
        Self { rules, phase: Phase::Closed { in_a_row: 0, window: None }, opened: 0 }
    }

    /// Decides whether a call may pass. `until` is when it will have ended at the latest.
    ///
    /// # Errors
    /// How long to wait before trying again.
    pub fn admit(&mut self, who: K, until: Instant, now: Instant) -> Result<(), Instant> {
        if let Phase::Open { until } = self.phase {
            if now < until {
                return Err(until);
            }
            self.phase = Phase::HalfOpen { successes: 0, trial: None };
        }
        if let Phase::HalfOpen { trial, .. } = &mut self.phase {
            if let Some(under_way) = trial.as_ref().filter(|trial| now < trial.until) {
                return Err(under_way.until.min(now + TRIAL_WAIT));
            }
            *trial = Some(Trial { who, until });
        }
        Ok(())
    }

    /// True if a call would be let through now.
    #[must_use]
    pub fn passes(&self, now: Instant) -> bool {
        match &self.phase {
            Phase::Closed { .. } => true,
            Phase::Open { until } => *until <= now,
            Phase::HalfOpen { trial, .. } => trial.as_ref().is_none_or(|trial| trial.until <= now),
        }
    }

    /// Takes in the result of a call, or of a connection that nobody called on.
    pub fn settle(&mut self, who: Option<&K>, outcome: CallResult, now: Instant) {
        match &mut self.phase {
            Phase::Closed { in_a_row, window } => match outcome {
                CallResult::Unknown => {}
                CallResult::Answered => {
                    *in_a_row = 0;
                    *window = window.filter(|window| self.rules.is_running(window, now));
                    if let Some(window) = window {
                        window.calls = window.calls.saturating_add(1);
                    }
                }
                CallResult::Failed => {
                    *in_a_row = in_a_row.saturating_add(1);
                    let running = window.filter(|window| self.rules.is_running(window, now));
                    let counted = running.unwrap_or(Window { began: now, calls: 0, failures: 0 }).failed();
                    *window = Some(counted);
                    if *in_a_row >= self.rules.failures || self.rules.too_many(&counted) {
                        self.open(now);
                    }
                }
            },
            Phase::HalfOpen { successes, trial } => {
                if !trial.as_ref().is_some_and(|trial| Some(&trial.who) == who) {
                    return;
                }
                *trial = None;
                match outcome {
                    CallResult::Unknown => {}
                    CallResult::Failed => self.open(now),
                    CallResult::Answered => {
                        *successes += 1;
                        if *successes >= self.rules.successes {
                            self.phase = Phase::Closed { in_a_row: 0, window: None };
                        }
                    }
                }
            }
            Phase::Open { .. } => {}
        }
    }

    /// True if this call was let through for a trial.
    #[must_use]
    pub fn tries(&self, who: &K) -> bool {
        matches!(&self.phase, Phase::HalfOpen { trial: Some(trial), .. } if trial.who == *who)
    }

    /// True if it is closed and an answer would change nothing.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        matches!(self.phase, Phase::Closed { in_a_row: 0, window: None })
    }

    /// The state now. A breaker whose recovery time is over counts as half open even before the first trial.
    #[must_use]
    pub fn state(&self, now: Instant) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until } if now < until => BreakerState::Open,
            Phase::Open { .. } | Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// The time left until the first trial, if it is open.
    #[must_use]
    pub fn retry_in(&self, now: Instant) -> Option<Duration> {
        match self.phase {
            Phase::Open { until } if now < until => Some(until - now),
            _ => None,
        }
    }

    /// The number of failures in a row; 0 unless it is closed.
    #[must_use]
    pub fn in_a_row(&self) -> u32 {
        match self.phase {
            Phase::Closed { in_a_row, .. } => in_a_row,
            Phase::Open { .. } | Phase::HalfOpen { .. } => 0,
        }
    }

    /// How often it has opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    fn open(&mut self, now: Instant) {
        self.opened += 1;
        self.phase = Phase::Open { until: now + self.rules.recovery };
    }
}

impl BreakerRules {
    fn is_running(&self, window: &Window, now: Instant) -> bool {
        now.saturating_duration_since(window.began) < self.window
    }

    fn too_many(&self, window: &Window) -> bool {
        let (failures, calls) = (u64::from(window.failures), u64::from(window.calls));
        window.calls >= self.least_calls && failures * 100 >= calls * u64::from(self.percent)
    }
}

impl Window {
    fn failed(mut self) -> Self {
        self.calls = self.calls.saturating_add(1);
        self.failures = self.failures.saturating_add(1);
        self
    }
}

#[cfg(test)]
mod tests;
