//! The states of a breaker, and the ways between them.

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

/// NO-10: five failures, thirty seconds, half open.
#[test]
fn no10_five_failures_in_a_row_open_it_for_thirty_seconds() {
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

/// SO-15: half of at least ten.
#[test]
fn so15_half_of_ten_calls_opens_it() {
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

/// SO-15: three successes close it.
#[test]
fn so15_three_trials_one_after_the_other_close_it() {
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
