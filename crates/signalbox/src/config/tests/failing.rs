//! How failing backends are treated, as files say it.

use super::*;
use signalbox_engine::BreakerRules;
use signalbox_runtime::FailureRules;

fn rules(lines: &str) -> FailureRules {
    let text = format!("[backends.a]\ncommand = 'x'\n{lines}\n");
    load("/etc/box/signalbox.toml", &text).expect("a good file").config.backends.remove(0).failing
}

/// NO-10, SO-15: the numbers that the requirements name are the defaults.
#[test]
fn no10_so15_what_is_not_said_is_as_required() {
    let breaker = BreakerRules {
        failures: 5,
        percent: 50,
        least_calls: 10,
        window: Duration::from_secs(60),
        recovery: Duration::from_secs(30),
        successes: 3,
    };
    assert_eq!(rules("").breaker, Some(breaker));
    assert_eq!(rules(""), FailureRules::default());
}

#[test]
fn every_number_of_the_breaker_can_be_set() {
    let set =
        "breaker = { failures = 1, failure_percent = 2, min_calls = 3, window = 4, recovery = 0.5, successes = 6 }";
    let breaker = BreakerRules {
        failures: 1,
        percent: 2,
        least_calls: 3,
        window: Duration::from_secs(4),
        recovery: Duration::from_millis(500),
        successes: 6,
    };
    assert_eq!(rules(set).breaker, Some(breaker));
    assert_eq!(rules("breaker.enabled = false\nbreaker.failures = 7").breaker, None);
}
