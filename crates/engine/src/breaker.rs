//! A circuit breaker: an operation that keeps failing is suspended for a while.
//!
//! It starts closed, and every call passes. It opens after a number of consecutive failures, or when too large a share
//! of the calls in a window failed, and then no call passes. After the recovery time it is half open: one call at a
//! time passes as a trial. Enough successful trials close it; one failure opens it again. Calls that were sent before
//! it opened are not counted.
//!
//! A window starts with a failure, so nothing is counted while nothing fails.

use std::time::{Duration, Instant};

/// Retry delay reported while a trial is in flight.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// Thresholds for opening and closing a breaker.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BreakerRules {
    /// Number of consecutive failures that open it.
    pub failures: u32,
    /// Percentage of failed calls within the window that opens it.
    pub percent: u32,
    /// Minimum number of calls in the window for the percentage to count.
    pub least_calls: u32,
    /// Length of the window.
    pub window: Duration,
    /// Time it stays open before the first trial.
    pub recovery: Duration,
    /// Number of trials that must succeed before it closes.
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

/// Result of a call for the breaker.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum CallResult {
    /// The backend answered, possibly with an error.
    Answered,
    /// The call failed at the backend.
    Failed,
    /// The call was cancelled, or never reached the backend.
    Unknown,
}

/// Reported state of a breaker.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum BreakerState {
    /// Calls pass without restriction.
    Closed,
    /// Calls fail without reaching the backend.
    Open,
    /// One call at a time passes for a trial.
    HalfOpen,
}

impl BreakerState {
    /// Returns the word for this state.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half open",
        }
    }
}

/// Circuit breaker. `K` identifies calls.
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
    /// Time at which the trial counts as lost if no result arrives.
    until: Instant,
}

impl<K: PartialEq> Breaker<K> {
    /// Creates a closed breaker.
    #[must_use]
    pub fn new(rules: BreakerRules) -> Self {
        Self { rules, phase: Phase::Closed { in_a_row: 0, window: None }, opened: 0 }
    }

    /// Decides if a call may pass. `until` is the latest time at which it will have ended.
    ///
    /// # Errors
    /// Returns the earliest time to retry.
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

    /// Returns true if a call would be let through now.
    #[must_use]
    pub fn passes(&self, now: Instant) -> bool {
        match &self.phase {
            Phase::Closed { .. } => true,
            Phase::Open { until } => *until <= now,
            Phase::HalfOpen { trial, .. } => trial.as_ref().is_none_or(|trial| trial.until <= now),
        }
    }

    /// Counts the result of a call, or of a connection without calls.
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
                        self.trip(now);
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
                    CallResult::Failed => self.trip(now),
                    CallResult::Answered => {
                        *successes += 1;
                        if *successes >= self.rules.successes {
                            self.close();
                        }
                    }
                }
            }
            Phase::Open { .. } => {}
        }
    }

    /// Returns true if this call was let through for a trial.
    #[must_use]
    pub fn tries(&self, who: &K) -> bool {
        matches!(&self.phase, Phase::HalfOpen { trial: Some(trial), .. } if trial.who == *who)
    }

    /// Returns true if the breaker is closed and an answer would change nothing.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        matches!(self.phase, Phase::Closed { in_a_row: 0, window: None })
    }

    /// Returns the current state. A breaker whose recovery time is over counts as half open even before the first
    /// trial.
    #[must_use]
    pub fn state(&self, now: Instant) -> BreakerState {
        match self.phase {
            Phase::Closed { .. } => BreakerState::Closed,
            Phase::Open { until } if now < until => BreakerState::Open,
            Phase::Open { .. } | Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }

    /// Returns the time left until the first trial, if the breaker is open.
    #[must_use]
    pub fn retry_in(&self, now: Instant) -> Option<Duration> {
        match self.phase {
            Phase::Open { until } if now < until => Some(until - now),
            _ => None,
        }
    }

    /// Returns the number of consecutive failures; 0 unless the breaker is closed.
    #[must_use]
    pub fn in_a_row(&self) -> u32 {
        match self.phase {
            Phase::Closed { in_a_row, .. } => in_a_row,
            Phase::Open { .. } | Phase::HalfOpen { .. } => 0,
        }
    }

    /// Returns the number of times it has opened.
    #[must_use]
    pub fn opened(&self) -> u64 {
        self.opened
    }

    /// Opens the breaker regardless of its counts.
    pub fn trip(&mut self, now: Instant) {
        self.opened += 1;
        self.phase = Phase::Open { until: now + self.rules.recovery };
    }

    /// Closes the breaker and resets its counts.
    pub fn close(&mut self) {
        self.phase = Phase::Closed { in_a_row: 0, window: None };
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
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    fn tripped(rules: BreakerRules, now: Instant) -> Breaker<u32> {
        let mut breaker = Breaker::new(rules);
        for _ in 0..rules.failures {
            breaker.settle(None, CallResult::Failed, now);
        }
        assert_eq!(breaker.state(now), BreakerState::Open);
        breaker
    }

    /// Five failures, thirty seconds, half open.
    /// Proves NO-10.
    #[test]
    fn five_failures_in_a_row_open_it_for_thirty_seconds() {
        let now = Instant::now();
        let mut breaker = Breaker::new(BreakerRules::default());
        for call in 0..4 {
            assert_eq!(breaker.admit(call, now + MINUTE, now), Ok(()));
            breaker.settle(Some(&call), CallResult::Failed, now);
            assert_eq!((breaker.state(now), breaker.in_a_row()), (BreakerState::Closed, call + 1));
        }
        breaker.settle(Some(&4), CallResult::Failed, now);
        assert_eq!(breaker.admit(5, now + MINUTE, now), Err(now + 30 * SECOND));
        assert_eq!(breaker.admit(5, now + MINUTE, now + 29 * SECOND), Err(now + 30 * SECOND));
        assert_eq!(breaker.state(now + 30 * SECOND), BreakerState::HalfOpen);
        assert_eq!(breaker.admit(5, now + MINUTE, now + 30 * SECOND), Ok(()));
    }

    #[test]
    fn an_answer_in_between_starts_the_count_anew() {
        let now = Instant::now();
        let mut breaker = Breaker::<u32>::new(BreakerRules { least_calls: 1000, ..BreakerRules::default() });
        for _ in 0..50 {
            for _ in 0..4 {
                breaker.settle(None, CallResult::Failed, now);
            }
            breaker.settle(None, CallResult::Answered, now);
        }
        assert_eq!(breaker.state(now), BreakerState::Closed);
    }

    /// Half of at least ten.
    /// Proves SO-15.
    #[test]
    fn half_of_ten_calls_opens_it() {
        let now = Instant::now();
        let mut breaker = Breaker::<u32>::new(BreakerRules::default());
        for call in 0..9 {
            let outcome = if call % 2 == 0 { CallResult::Failed } else { CallResult::Answered };
            breaker.settle(None, outcome, now);
            assert_eq!(breaker.state(now), BreakerState::Closed, "after {} calls", call + 1);
        }
        breaker.settle(None, CallResult::Failed, now);
        assert_eq!(breaker.state(now), BreakerState::Open);
    }

    #[test]
    fn what_failed_before_the_window_is_not_counted_with_what_fails_in_it() {
        let mut now = Instant::now();
        let mut breaker = Breaker::<u32>::new(BreakerRules::default());
        for _ in 0..20 {
            breaker.settle(None, CallResult::Failed, now);
            breaker.settle(None, CallResult::Answered, now + SECOND);
            now += MINUTE;
        }
        assert_eq!(breaker.state(now), BreakerState::Closed);
        breaker.settle(None, CallResult::Answered, now);
        assert!(breaker.is_quiet());
    }

    /// Three successes close it.
    /// Proves SO-15.
    #[test]
    fn three_trials_one_after_the_other_close_it() {
        let begin = Instant::now();
        let mut breaker = tripped(BreakerRules::default(), begin);
        let now = begin + 30 * SECOND;
        for call in 0..3 {
            assert_eq!(breaker.admit(call, now + MINUTE, now), Ok(()));
            assert_eq!(breaker.admit(99, now + MINUTE, now), Err(now + SECOND), "only one at a time");
            assert_eq!(breaker.state(now), BreakerState::HalfOpen);
            breaker.settle(Some(&call), CallResult::Answered, now);
        }
        assert_eq!((breaker.state(now), breaker.is_quiet(), breaker.opened()), (BreakerState::Closed, true, 1));
    }

    #[test]
    fn a_failed_trial_opens_it_again() {
        let begin = Instant::now();
        let mut breaker = tripped(BreakerRules::default(), begin);
        let now = begin + 30 * SECOND;
        breaker.admit(1, now + MINUTE, now).unwrap();
        breaker.settle(Some(&1), CallResult::Answered, now);
        breaker.admit(2, now + MINUTE, now).unwrap();
        breaker.settle(Some(&2), CallResult::Failed, now);
        assert_eq!((breaker.retry_in(now), breaker.opened()), (Some(30 * SECOND), 2));
    }

    #[test]
    fn a_trial_that_is_cancelled_or_lost_makes_room_for_the_next() {
        let begin = Instant::now();
        let mut breaker = tripped(BreakerRules::default(), begin);
        let now = begin + 30 * SECOND;
        breaker.admit(1, now + MINUTE, now).unwrap();
        breaker.settle(Some(&1), CallResult::Unknown, now);
        assert_eq!(breaker.admit(2, now + MINUTE, now), Ok(()));
        assert!(breaker.admit(3, now + 2 * MINUTE, now + 59 * SECOND).is_err());
        assert_eq!(breaker.admit(3, now + 2 * MINUTE, now + MINUTE), Ok(()));
        breaker.settle(Some(&2), CallResult::Failed, now + MINUTE);
        assert_eq!(breaker.state(now + MINUTE), BreakerState::HalfOpen, "the lost trial says nothing any more");
    }

    /// What happens to a breaker.
    #[derive(Clone, Debug)]
    enum Step {
        Admit(u32),
        Settle(Option<u32>, CallResult),
        Pass(u32),
    }

    fn step() -> impl Strategy<Value = Step> {
        let outcome = prop_oneof![Just(CallResult::Answered), Just(CallResult::Failed), Just(CallResult::Unknown)];
        prop_oneof![
            3 => (0..6_u32).prop_map(Step::Admit),
            4 => (proptest::option::of(0..6_u32), outcome).prop_map(|(who, outcome)| Step::Settle(who, outcome)),
            1 => (0..40_u32).prop_map(Step::Pass),
        ]
    }

    fn rules() -> impl Strategy<Value = BreakerRules> {
        (1..6_u32, 1..=100_u32, 1..12_u32, 1..90_u32, 1..40_u32, 1..4_u32).prop_map(
            |(failures, percent, least_calls, window, recovery, successes)| BreakerRules {
                failures,
                percent,
                least_calls,
                window: window * SECOND,
                recovery: recovery * SECOND,
                successes,
            },
        )
    }

    proptest! {
        /// The states and the ways between them, whatever happens in whatever order.
        #[test]
        fn it_goes_only_the_ways_it_may(rules in rules(), steps in proptest::collection::vec(step(), 0..300)) {
            let mut now = Instant::now();
            let mut breaker = Breaker::new(rules);
            let (mut trial, mut in_a_row, mut successes) = (None, 0, 0);
            for step in steps {
                let (before, opened) = (breaker.state(now), breaker.opened());
                match step {
                    Step::Pass(seconds) => {
                        now += seconds * SECOND;
                        prop_assert!(before == breaker.state(now) || before == BreakerState::Open);
                    }
                    Step::Admit(who) => {
                        let passes = breaker.passes(now);
                        let free = trial.is_none_or(|(_, until)| until <= now);
                        let admitted = breaker.admit(who, now + 20 * SECOND, now);
                        prop_assert_eq!(passes, admitted.is_ok());
                        match (before, admitted) {
                            (BreakerState::Closed, passed) => prop_assert_eq!(passed, Ok(())),
                            (BreakerState::Open, passed) => prop_assert!(passed.is_err_and(|until| until > now)),
                            (BreakerState::HalfOpen, Ok(())) => {
                                prop_assert!(free, "a second call was let through for a trial");
                                trial = Some((who, now + 20 * SECOND));
                            }
                            (BreakerState::HalfOpen, Err(until)) => prop_assert!(!free && until > now),
                        }
                        prop_assert_eq!(breaker.state(now), before);
                    }
                    Step::Settle(who, outcome) => {
                        breaker.settle(who.as_ref(), outcome, now);
                        let after = breaker.state(now);
                        let is_trial = trial.is_some_and(|(trial, _)| Some(trial) == who);
                        match before {
                            BreakerState::Closed => {
                                in_a_row = match outcome {
                                    CallResult::Failed => in_a_row + 1,
                                    CallResult::Answered => 0,
                                    CallResult::Unknown => in_a_row,
                                };
                                prop_assert!(after != BreakerState::HalfOpen);
                                prop_assert!(after == BreakerState::Closed || outcome == CallResult::Failed);
                                prop_assert!(after == BreakerState::Open || in_a_row < rules.failures);
                            }
                            BreakerState::HalfOpen if is_trial => {
                                successes += u32::from(outcome == CallResult::Answered);
                                let expected = match outcome {
                                    CallResult::Failed => BreakerState::Open,
                                    _ if successes >= rules.successes => BreakerState::Closed,
                                    _ => BreakerState::HalfOpen,
                                };
                                prop_assert_eq!(after, expected);
                                trial = None;
                            }
                            BreakerState::Open | BreakerState::HalfOpen => prop_assert_eq!(after, before),
                        }
                        if after != BreakerState::Closed && before == BreakerState::Closed || outcome == CallResult::Failed {
                            successes = if after == BreakerState::Open { 0 } else { successes };
                        }
                        if after == BreakerState::Closed && before != BreakerState::Closed {
                            (in_a_row, successes) = (0, 0);
                        }
                        prop_assert_eq!(breaker.opened() - opened, u64::from(before != after && after == BreakerState::Open));
                    }
                }
                if breaker.is_quiet() {
                    prop_assert_eq!(breaker.state(now), BreakerState::Closed);
                }
            }
        }
    }
}
