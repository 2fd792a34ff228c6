//! Circuit breakers of one backend: one for each caller whose calls fail, and one for all callers.
//!
//! A call can fail because of its own content: its answer is too large or too slow, or its tool ends the process. So a
//! failure counts only against its caller, and no caller can take a backend away from the others. Calls of all callers
//! are refused once the circuits of [`WITNESSES`] callers have opened and the backend has answered no call and no ping
//! meanwhile. An answer or an answered ping ends that.
//!
//! While the shared circuit is half open, a caller whose trial fails is refused for the recovery time, and the next
//! trial goes to another caller.
//!
//! Only callers with failures are stored, so nothing is stored while nothing fails.

use crate::bounded::make_room;
use crate::breaker::{Breaker, BreakerRules, BreakerState, CallResult};
use std::collections::HashMap;
use std::hash::Hash;
use std::time::{Duration, Instant};

/// Number of callers whose circuits must have opened for all callers to be refused.
pub const WITNESSES: usize = 2;
/// Maximum number of callers with a circuit of their own. Beyond that, the one that failed longest ago is dropped.
pub const MAX_CIRCUITS: usize = 1024;
/// Minimum time between two searches for expired circuits.
const PRUNE_EACH: Duration = Duration::from_secs(1);

/// Breakers of one backend. `C` identifies callers, and `K` calls.
#[derive(Debug)]
pub struct BackendBreaker<C, K> {
    rules: BreakerRules,
    /// Circuit of all callers. Only witnesses open it.
    shared: Breaker<K>,
    circuits: HashMap<C, Circuit<K>>,
    /// Callers whose circuits have opened since the backend last answered, at most [`WITNESSES`].
    witnesses: Vec<C>,
    /// Caller and time of the last answered call, while some circuit is not quiet.
    answered: Option<(C, Instant)>,
    opened: u64,
    pruned: Option<Instant>,
}

#[derive(Debug)]
struct Circuit<K> {
    breaker: Breaker<K>,
    failed: Instant,
}

/// Refusal by a breaker.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BreakerRefusal {
    /// Earliest time to retry.
    pub until: Instant,
    /// True while one call is let through for a trial.
    pub is_tried: bool,
    /// True if the calls of all callers are refused.
    pub is_for_all: bool,
}

/// Summary of the breakers of a backend.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BreakerSummary {
    /// State for all callers. A backend that only failed counts as open, even if all failures were one caller's.
    pub state: BreakerState,
    /// Time left until the first trial, if the breaker is open.
    pub retry_in: Option<Duration>,
    /// Highest number of consecutive failures of one caller.
    pub in_a_row: u32,
    /// Number of callers whose own circuit is not closed.
    pub callers: usize,
    /// Number of times that a circuit has opened.
    pub opened: u64,
}

impl<C: Eq + Hash + Clone, K: PartialEq> BackendBreaker<C, K> {
    /// Creates closed circuits for all callers.
    #[must_use]
    pub fn new(rules: BreakerRules) -> Self {
        Self {
            rules,
            shared: Breaker::new(rules),
            circuits: HashMap::new(),
            witnesses: Vec::new(),
            answered: None,
            opened: 0,
            pruned: None,
        }
    }

    /// Decides if a call may pass. `until` is the latest time at which it will have ended.
    ///
    /// # Errors
    /// Returns a refusal if the caller's circuit, or that of all callers, is open.
    pub fn admit(&mut self, caller: &C, call: K, until: Instant, now: Instant) -> Result<(), BreakerRefusal>
    where
        K: Clone,
    {
        if let Some(circuit) = self.circuits.get_mut(caller)
            && !circuit.breaker.passes(now)
        {
            let is_tried = circuit.breaker.state(now) == BreakerState::HalfOpen;
            let until = circuit.breaker.admit(call, until, now).err().unwrap_or(until);
            return Err(BreakerRefusal { until, is_tried, is_for_all: false });
        }
        if let Err(until) = self.shared.admit(call.clone(), until, now) {
            let is_tried = self.shared.state(now) == BreakerState::HalfOpen;
            return Err(BreakerRefusal { until, is_tried, is_for_all: true });
        }
        match self.circuits.get_mut(caller) {
            Some(circuit) => circuit.breaker.admit(call, until, now).map_err(|until| BreakerRefusal {
                until,
                is_tried: true,
                is_for_all: false,
            }),
            None => Ok(()),
        }
    }

    /// Counts the result of a call, or of a connection with calls of this caller on it.
    pub fn settle(&mut self, caller: &C, call: Option<&K>, outcome: CallResult, now: Instant) {
        match outcome {
            CallResult::Unknown => {
                self.shared.settle(call, outcome, now);
                if let Some(circuit) = self.circuits.get_mut(caller) {
                    circuit.breaker.settle(call, outcome, now);
                }
            }
            CallResult::Answered => self.answered(caller, call, now),
            CallResult::Failed => self.failed(caller, call, now),
        }
    }

    fn answered(&mut self, caller: &C, call: Option<&K>, now: Instant) {
        if call.is_some_and(|call| self.shared.tries(call)) {
            self.shared.settle(call, CallResult::Answered, now);
        } else {
            self.shared.close();
        }
        self.witnesses.clear();
        if let Some(circuit) = self.circuits.get_mut(caller) {
            circuit.breaker.settle(call, CallResult::Answered, now);
            if circuit.breaker.is_quiet() {
                self.circuits.remove(caller);
            }
        }
        self.prune(now);
        self.answered = (!self.circuits.is_empty()).then(|| (caller.clone(), now));
    }

    fn failed(&mut self, caller: &C, call: Option<&K>, now: Instant) {
        let is_trial = call.is_some_and(|call| self.shared.tries(call));
        // A failed trial proves only that its own caller's calls fail. The next trial is for another caller.
        self.shared.settle(call, CallResult::Unknown, now);
        if !self.circuits.contains_key(caller) {
            self.make_room();
        }
        let fresh = || Circuit { breaker: Breaker::new(self.rules), failed: now };
        let circuit = self.circuits.entry(caller.clone()).or_insert_with(fresh);
        circuit.failed = now;
        let before = circuit.breaker.opened();
        circuit.breaker.settle(call, CallResult::Failed, now);
        if is_trial && circuit.breaker.retry_in(now).is_none() {
            circuit.breaker.trip(now);
        }
        if circuit.breaker.opened() == before {
            return;
        }
        self.opened += 1;
        if !self.witnesses.contains(caller) && self.witnesses.len() < WITNESSES {
            self.witnesses.push(caller.clone());
        }
        if self.witnesses.len() >= WITNESSES && self.shared.state(now) == BreakerState::Closed {
            self.shared.trip(now);
        }
    }

    /// Counts an answer to the gateway itself, such as that to a ping, which proves that the backend is alive.
    pub fn pinged(&mut self) {
        self.witnesses.clear();
        self.shared.close();
    }

    fn make_room(&mut self) {
        make_room(&mut self.circuits, MAX_CIRCUITS, |circuit| circuit.failed);
    }

    /// Drops callers whose last failure is too old to matter to their circuits.
    fn prune(&mut self, now: Instant) {
        if self.pruned.is_some_and(|then| now.saturating_duration_since(then) < PRUNE_EACH) {
            return;
        }
        self.pruned = Some(now);
        let age = self.rules.window.saturating_add(self.rules.recovery);
        self.circuits.retain(|_, circuit| now.saturating_duration_since(circuit.failed) < age);
    }

    /// Returns true if this call was let through for a trial.
    #[must_use]
    pub fn tries(&self, caller: &C, call: &K) -> bool {
        self.shared.tries(call) || self.circuits.get(caller).is_some_and(|circuit| circuit.breaker.tries(call))
    }

    /// Returns true if all circuits are closed and an answer would change nothing.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.shared.is_quiet() && self.circuits.is_empty()
    }

    /// Summarises the circuits for status and metrics.
    #[must_use]
    pub fn summary(&self, now: Instant) -> BreakerSummary {
        let (mut worst, answers_others) = (&self.shared, self.answers_others(now));
        let (mut callers, mut in_a_row) = (0, 0);
        for Circuit { breaker, .. } in self.circuits.values() {
            in_a_row = in_a_row.max(breaker.in_a_row());
            callers += usize::from(breaker.state(now) != BreakerState::Closed);
            if !answers_others && rank(breaker.state(now)) > rank(worst.state(now)) {
                worst = breaker;
            }
        }
        let (state, retry_in) = (worst.state(now), worst.retry_in(now));
        BreakerSummary { state, retry_in, in_a_row, callers, opened: self.opened }
    }

    /// Returns true if a caller whose circuit is closed was answered within the window.
    fn answers_others(&self, now: Instant) -> bool {
        self.answered.as_ref().is_some_and(|(caller, then)| {
            let is_closed = |circuit: &Circuit<K>| circuit.breaker.state(now) == BreakerState::Closed;
            now.saturating_duration_since(*then) < self.rules.window && self.circuits.get(caller).is_none_or(is_closed)
        })
    }
}

fn rank(state: BreakerState) -> u8 {
    match state {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const MINUTE: Duration = Duration::from_secs(60);
    const SECOND: Duration = Duration::from_secs(1);

    type Breakers = BackendBreaker<&'static str, u32>;

    /// Lets calls of this caller fail. Returns the number of those that were let through.
    fn fail(breakers: &mut Breakers, caller: &'static str, calls: u32, now: Instant) -> u32 {
        let mut passed = 0;
        for call in 0..calls {
            if breakers.admit(&caller, call, now + MINUTE, now).is_ok() {
                breakers.settle(&caller, Some(&call), CallResult::Failed, now);
                passed += 1;
            }
        }
        passed
    }

    fn succeed(breakers: &mut Breakers, caller: &'static str, now: Instant) -> bool {
        let passes = breakers.admit(&caller, 9000, now + MINUTE, now).is_ok();
        if passes {
            breakers.settle(&caller, Some(&9000), CallResult::Answered, now);
        }
        passes
    }

    /// The failures of one caller refuse its own calls alone, whether or not others call meanwhile.
    #[test]
    fn one_caller_opens_its_own_circuit_alone() {
        for vic_calls in [true, false] {
            let mut now = Instant::now();
            let mut breakers = Breakers::new(BreakerRules::default());
            for _ in 0..200 {
                fail(&mut breakers, "ada", 3, now);
                assert!(!vic_calls || succeed(&mut breakers, "vic", now));
                now += SECOND;
            }
            let refused = breakers.admit(&"ada", 1, now + MINUTE, now).unwrap_err();
            assert!(!refused.is_for_all);
            assert!(succeed(&mut breakers, "vic", now));
            assert_eq!(breakers.summary(now).state, BreakerState::Closed);
            assert_eq!(breakers.summary(now).callers, 1);
        }
    }

    /// A backend that fails for its only caller is left alone, and shown as open.
    #[test]
    fn a_single_caller_is_protected_from_a_dead_backend() {
        let now = Instant::now();
        let mut breakers = Breakers::new(BreakerRules::default());
        assert!(succeed(&mut breakers, "ada", now));
        assert_eq!(fail(&mut breakers, "ada", 20, now), 5);
        let summary = breakers.summary(now);
        assert_eq!((summary.state, summary.callers, summary.opened), (BreakerState::Open, 1, 1));
        assert_eq!(summary.retry_in, Some(30 * SECOND));
    }

    #[test]
    fn the_failures_of_two_callers_open_it_for_all() {
        let now = Instant::now();
        let mut breakers = Breakers::new(BreakerRules::default());
        assert_eq!(fail(&mut breakers, "ada", 9, now), 5);
        assert_eq!(fail(&mut breakers, "eve", 9, now), 5);
        let refused = breakers.admit(&"vic", 1, now + MINUTE, now).unwrap_err();
        assert_eq!(refused, BreakerRefusal { until: now + 30 * SECOND, is_tried: false, is_for_all: true });
    }

    #[test]
    fn an_answer_between_them_or_a_ping_keeps_it_closed() {
        let now = Instant::now();
        for ping in [true, false] {
            let mut breakers = Breakers::new(BreakerRules::default());
            fail(&mut breakers, "ada", 9, now);
            if ping {
                breakers.pinged()
            } else {
                assert!(succeed(&mut breakers, "vic", now))
            }
            fail(&mut breakers, "eve", 9, now);
            assert!(succeed(&mut breakers, "vic", now));
        }
    }

    #[test]
    fn an_answered_ping_or_a_late_answer_closes_it_for_all() {
        let now = Instant::now();
        for ping in [true, false] {
            let mut breakers = Breakers::new(BreakerRules::default());
            breakers.admit(&"vic", 7, now + MINUTE, now).unwrap();
            fail(&mut breakers, "ada", 9, now);
            fail(&mut breakers, "eve", 9, now);
            assert!(!succeed(&mut breakers, "vic", now));
            if ping {
                breakers.pinged()
            } else {
                breakers.settle(&"vic", Some(&7), CallResult::Answered, now)
            }
            assert!(succeed(&mut breakers, "vic", now));
            assert!(breakers.admit(&"ada", 1, now + MINUTE, now).is_err(), "its own circuit stays open");
        }
    }

    /// Two callers whose trials fail do not keep a third one from its trial.
    #[test]
    fn a_failed_trial_leaves_the_next_one_to_another_caller() {
        let begin = Instant::now();
        let mut breakers = Breakers::new(BreakerRules::default());
        fail(&mut breakers, "ada", 9, begin);
        fail(&mut breakers, "eve", 9, begin);
        let now = begin + 30 * SECOND;
        assert_eq!(fail(&mut breakers, "ada", 5, now), 1);
        assert_eq!(fail(&mut breakers, "new", 5, now), 1, "one trial for each caller");
        assert_eq!(fail(&mut breakers, "eve", 5, now), 1);
        for _ in 0..4 {
            assert!(succeed(&mut breakers, "vic", now));
        }
        assert_eq!(breakers.summary(now).state, BreakerState::Closed);
    }

    #[test]
    fn three_trials_close_the_circuit_of_a_single_caller() {
        let begin = Instant::now();
        let mut breakers = Breakers::new(BreakerRules::default());
        fail(&mut breakers, "ada", 5, begin);
        let now = begin + 30 * SECOND;
        for _ in 0..3 {
            assert_eq!(breakers.summary(now).state, BreakerState::HalfOpen);
            assert!(succeed(&mut breakers, "ada", now));
        }
        assert_eq!(breakers.summary(now).state, BreakerState::Closed);
        assert!(breakers.is_quiet());
    }

    /// A caller that failed and never came back is forgotten, so that calls do not ask the breakers for ever.
    #[test]
    fn callers_that_went_away_are_forgotten() {
        let now = Instant::now();
        let mut breakers = Breakers::new(BreakerRules::default());
        fail(&mut breakers, "ada", 9, now);
        succeed(&mut breakers, "vic", now + MINUTE);
        assert!(!breakers.is_quiet());
        succeed(&mut breakers, "vic", now + 2 * MINUTE);
        assert!(breakers.is_quiet());
    }

    #[test]
    fn circuits_are_bounded() {
        let now = Instant::now();
        let mut breakers = BackendBreaker::<usize, u32>::new(BreakerRules::default());
        for caller in 0..MAX_CIRCUITS + 50 {
            breakers.settle(&caller, None, CallResult::Failed, now + u32::try_from(caller).unwrap() * SECOND);
        }
        assert_eq!(breakers.circuits.len(), MAX_CIRCUITS);
        assert!(!breakers.circuits.contains_key(&0));
    }

    proptest! {
        /// Whatever ada does, and however often time passes: vic, whose calls are answered, is never refused.
        #[test]
        fn no_caller_is_refused_for_the_failures_of_another(
            steps in proptest::collection::vec((0..4_u32, 0..50_u32, 0..3_u8), 0..300),
        ) {
            let mut now = Instant::now();
            let mut breakers = Breakers::new(BreakerRules::default());
            for (call, seconds, step) in steps {
                match step {
                    0 => now += seconds * SECOND,
                    1 => drop(breakers.admit(&"ada", call, now + MINUTE, now)),
                    _ => breakers.settle(&"ada", Some(&call), CallResult::Failed, now),
                }
                prop_assert!(succeed(&mut breakers, "vic", now));
            }
        }
    }
}
