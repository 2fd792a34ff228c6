//! How failing backends are treated, as files say it.

use super::*;
use signalbox_engine::BreakerRules;
use signalbox_engine::balance::Balance;
use signalbox_engine::health::PingRules;
use signalbox_runtime::FailureRules;

fn rules(lines: &str) -> FailureRules {
    let text = format!("[backends.a]\ncommand = 'x'\n{lines}\n");
    load("/etc/box/signalbox.toml", &text).expect("a good file").config.backends.remove(0).failing
}

/// The numbers that the requirements name are the defaults.
/// Proves SO-15 and NO-10.
#[test]
fn what_is_not_said_is_as_required() {
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
    let ping = PingRules {
        interval: Duration::from_secs(300),
        doubt_interval: Duration::from_secs(30),
        timeout: Duration::from_secs(5),
        failures: 3,
        successes: 2,
    };
    assert_eq!((rules("").ping, rules("").max_restarts), (Some(ping), Some(5)));
}

/// Proves NO-15.
#[test]
fn pings_retries_restarts_and_the_queue_can_be_set() {
    let set = "ping = { interval = 1, doubt_interval = 2, timeout = 3, failures = 4, successes = 5 }\n\
               retries = 0\nmax_queue = 7\nslow_start = 8\nmax_restarts = 9";
    let ping = PingRules {
        interval: Duration::from_secs(1),
        doubt_interval: Duration::from_secs(2),
        timeout: Duration::from_secs(3),
        failures: 4,
        successes: 5,
    };
    let expected = FailureRules {
        ping: Some(ping),
        retries: 0,
        max_queue: 7,
        slow_start: Duration::from_secs(8),
        max_restarts: Some(9),
        ..FailureRules::default()
    };
    assert_eq!(rules(set), expected);
    assert_eq!(rules("restart = false").max_restarts, Some(0), "NO-15: it is never started again");
    assert_eq!((rules("max_restarts = 0").max_restarts, rules("ping.enabled = false").ping), (None, None));
}

fn addresses(lines: &str) -> Result<Addresses, ConfigError> {
    let text = format!("[backends.a]\n{lines}\n");
    let loaded = load("signalbox.toml", &text)?;
    Ok(loaded.config.backends.into_iter().next().expect("one backend").addresses)
}

/// Several addresses, and how one of them is chosen.
/// Proves SO-15.
#[test]
fn several_addresses_with_weights() {
    let read =
        addresses("url = 'http://a/'\nurls = ['http://b/x', { url = 'http://c/', weight = 3 }]\nbalance = 'weighted'");
    let read = read.expect("good addresses");
    let all: Vec<(String, u32)> = read.all.iter().map(|(url, weight)| (url.to_string(), *weight)).collect();
    assert_eq!(all, [("http://a/".to_owned(), 1), ("http://b/x".to_owned(), 1), ("http://c/".to_owned(), 3)]);
    assert_eq!(read.balance, Balance::Weighted);
    assert!(!format!("{read:?}").contains("/x"));
    let only = addresses("urls = ['ws://a/', 'ws://b/']").expect("good addresses");
    assert_eq!((only.all.len(), only.balance), (2, Balance::RoundRobin));
    assert_eq!(addresses("url = 'http://a/'").expect("one address"), Addresses::default());
}

#[test]
fn addresses_that_do_not_go_together_are_refused() {
    for (lines, why) in [
        ("urls = []", "backends.a.urls: expected 1 to 64 addresses"),
        ("urls = ['http://a/', 'ws://b/']", "backends.a.urls: expected addresses of one kind"),
        ("urls = ['http://a/', 'nonsense']", "backends.a.urls[1]: expected an address like"),
        (
            "urls = [{ url = 'http://a/', weight = 2 }]",
            "backends.a.urls: expected weights only with `balance = \"weighted\"`",
        ),
        ("urls = [{ url = 'http://a/', wait = 2 }]", "backends.a.urls[0]: unknown key"),
        ("urls = [{ url = 'http://a/', weight = 0 }]", "backends.a.urls[0]: expected a `weight` from 1 to 1000"),
        ("urls = [{ weight = 2 }]", "expected a `url`"),
        ("urls = ['http://a/']\nbalance = 'fastest'", "backends.a.balance: expected `round_robin`"),
        ("url = 'http://a/'\nbalance = 'random'", "backends.a.balance: applies only with `urls`"),
        ("command = 'x'\nbalance = 'random'", "backends.a.balance: applies only with `url`"),
        ("url = 'http://a/'\nmax_restarts = 3", "backends.a.max_restarts: applies only with `command`"),
    ] {
        let error = addresses(lines).expect_err(lines).to_string();
        assert!(error.contains(why), "{lines}\n{error}");
    }
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
