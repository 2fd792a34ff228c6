//! Backends that fail again and again, and when they are tried again.

use crate::client::{Client, answer, modern_call, text};
use crate::fake::{Fake, Shape, Step, plain};
use crate::{Setup, pass, start, status};
use serde_json::{Value, json};
use signalbox_engine::health::PingRules;
use signalbox_engine::{BreakerRules, FaultKind};
use signalbox_runtime::{FailureRules, Gateway};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Whether a backend fails at the moment.
#[derive(Clone, Default)]
struct Switch(Arc<AtomicBool>);

impl Switch {
    fn set(&self, on: bool) {
        self.0.store(on, Ordering::Relaxed);
    }

    /// A backend whose calls end like this while the switch is on.
    fn backend(&self, shape: Shape, bad: fn() -> Step) -> Fake {
        let switch = self.clone();
        Fake::new(shape, move |heard| match &*heard.method {
            "tools/call" if switch.0.load(Ordering::Relaxed) => vec![bad()],
            _ => plain(heard),
        })
    }
}

fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["reason"].as_str().unwrap_or_else(|| panic!("no reason: {answer}"))
}

fn state(gateway: &Gateway) -> &'static str {
    status(gateway).breaker.unwrap().state
}

/// Five failures in a row, thirty seconds, one call for a trial; three of them close it.
/// Proves SO-15 and NO-10.
#[tokio::test(start_paused = true)]
async fn a_backend_that_fails_five_times_is_left_alone_for_thirty_seconds() {
    let switch = Switch::default();
    let fake = switch.backend(Shape::Web, || Step::Fail(FaultKind::BackendGarbage));
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(text(&client.call("t1").await), "link 2");
    switch.set(true);
    for failures in 1..=5 {
        assert_eq!(reason(&client.call("t1").await), "backend_garbage");
        let breaker = status(&gateway).breaker.unwrap();
        assert_eq!((breaker.state == "open", breaker.failures), (failures == 5, failures % 5));
    }
    let refused = client.call("t1").await;
    assert_eq!((refused["error"]["code"].as_i64(), reason(&refused)), (Some(-32007), "breaker_open"), "{refused}");
    assert_eq!(refused["error"]["data"]["backend"], "a");
    let wait = refused["error"]["data"]["retryAfterMs"].as_u64().unwrap();
    assert!((25_000..=30_000).contains(&wait), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("tried again in"), "{refused}");
    assert_eq!(modern_call(&gateway, "t1").await["error"]["code"], 5030, "the range of -32007 is not the new era's");
    assert_eq!(fake.heard("tools/call").len(), 6, "what is refused is not sent");

    pass(30_000).await;
    assert_eq!(state(&gateway), "half open");
    assert_eq!(reason(&client.call("t1").await), "backend_garbage");
    assert_eq!((state(&gateway), reason(&client.call("t1").await)), ("open", "breaker_open"));

    switch.set(false);
    pass(30_000).await;
    for _ in 0..3 {
        assert_eq!(state(&gateway), "half open");
        assert_eq!(text(&client.call("t1").await), "link 2");
    }
    let breaker = status(&gateway).breaker.unwrap();
    assert_eq!((breaker.state, breaker.opened, breaker.refused), ("closed", 2, 3));
}

/// Half open means one call.
/// Proves NO-10.
#[tokio::test(start_paused = true)]
async fn one_call_at_a_time_is_let_through_for_a_trial() {
    let switch = Switch::default();
    let fake = {
        let switch = switch.clone();
        Fake::new(Shape::Web, move |heard| match (&*heard.method, switch.0.load(Ordering::Relaxed)) {
            ("tools/call", true) => vec![Step::Fail(FaultKind::TimedOut)],
            ("tools/call", false) => [Step::Wait(2_000)].into_iter().chain(plain(heard)).collect(),
            _ => plain(heard),
        })
    };
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    switch.set(true);
    for _ in 0..5 {
        assert_eq!(reason(&client.call("t1").await), "timed_out");
    }
    switch.set(false);
    pass(30_000).await;
    let trial = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    pass(100).await;
    for _ in 0..10 {
        assert_eq!(reason(&client.call("t1").await), "breaker_open");
    }
    assert_eq!(text(&answer(&trial).await.unwrap()), "link 2");
    assert_eq!(fake.heard("tools/call").len(), 6);
}

/// A trial that its client takes back says nothing, and makes room for the next.
#[tokio::test(start_paused = true)]
async fn a_cancelled_trial_makes_room_for_another() {
    let switch = Switch::default();
    let fake = switch.backend(Shape::Web, || Step::Fail(FaultKind::BackendDied));
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    switch.set(true);
    for _ in 0..5 {
        client.call("t1").await;
    }
    pass(30_000).await;
    switch.set(false);
    let stream = client.session.open_stream().unwrap();
    let call = json!({"jsonrpc": "2.0", "id": "trial", "method": "tools/call",
                      "params": {"name": "t1", "arguments": {}}});
    client.session.receive(&stream, crate::client::envelope(&call));
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "trial"}});
    client.session.receive(&client.session.open_stream().unwrap(), crate::client::envelope(&note));
    assert_eq!(text(&client.call("t1").await), "link 2");
    assert_eq!(state(&gateway), "half open");
}

/// What a backend answers is an answer, and what we refuse ourselves is none of its doing.
#[tokio::test(start_paused = true)]
async fn errors_of_the_backend_and_refusals_of_ours_do_not_count() {
    for bad in [(|| Step::Deny(-32603)) as fn() -> Step, || Step::Refuse(FaultKind::Overloaded)] {
        let switch = Switch::default();
        let gateway = start(&switch.backend(Shape::Web, bad), Setup::default());
        let client = Client::open(&gateway, json!({})).await;
        client.tools().await;
        switch.set(true);
        for _ in 0..30 {
            assert!(client.call("t1").await["error"].is_object());
        }
        let breaker = status(&gateway).breaker.unwrap();
        assert_eq!((breaker.state, breaker.failures, breaker.opened), ("closed", 0, 0));
    }
}

/// A connection that dies with many calls on it has failed once.
#[tokio::test(start_paused = true)]
async fn a_death_with_many_calls_is_one_failure() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" if heard.link == 1 => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let calls: Vec<_> = (0..20).map(|_| client.post("tools/call", json!({"name": "t1", "arguments": {}}))).collect();
    fake.kill(1);
    for call in calls {
        assert_eq!(reason(&answer(&call).await.unwrap()), "backend_died");
    }
    let breaker = status(&gateway).breaker.unwrap();
    assert_eq!((breaker.state, breaker.failures), ("closed", 1));
    assert_eq!(text(&client.call("t1").await), "link 2");
    assert_eq!(status(&gateway).breaker.unwrap().failures, 0);
}

/// A child that dies of every call is left alone, though it is started again each time.
#[tokio::test(start_paused = true)]
async fn a_child_that_dies_of_every_call_opens_the_breaker() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => vec![Step::Die],
        _ => plain(heard),
    });
    let rules = BreakerRules { failures: 3, ..BreakerRules::default() };
    let failing = FailureRules { breaker: Some(rules), ..FailureRules::default() };
    let gateway = start(&fake, Setup { failing, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    for _ in 0..3 {
        assert_eq!(reason(&client.call("t1").await), "backend_died");
        pass(10_000).await;
    }
    assert_eq!(reason(&client.call("t1").await), "breaker_open");
    assert_eq!(fake.heard("tools/call").len(), 3);
}

/// A caller whose calls fail is refused, and another one is not, whether or not it calls meanwhile.
#[tokio::test(start_paused = true)]
async fn the_failures_of_one_caller_refuse_that_caller_alone() {
    for bad in [FaultKind::TimedOut, FaultKind::BackendGarbage, FaultKind::BackendDied, FaultKind::BackendDown] {
        let fake = Fake::new(Shape::Web, move |heard| match &*heard.method {
            "tools/call" if heard.params["arguments"]["bad"] == true => vec![Step::Fail(bad)],
            _ => plain(heard),
        });
        let gateway = start(&fake, Setup::default());
        let ada = Client::open_by(&gateway, "user:ada", json!({})).await;
        let vic = Client::open_by(&gateway, "user:vic", json!({})).await;
        let fails = async || {
            let call = ada.post("tools/call", json!({"name": "t1", "arguments": {"bad": true}}));
            answer(&call).await.unwrap()
        };
        vic.call("t1").await;
        for _ in 0..5 {
            assert_ne!(reason(&fails().await), "breaker_open");
        }
        for round in 0..50 {
            let refused = fails().await;
            if round == 0 {
                assert_eq!(reason(&refused), "breaker_open", "{refused}");
                assert!(refused["error"]["message"].as_str().unwrap().contains("on calls of this caller"), "{refused}");
            }
            assert!(vic.call("t1").await["result"].is_object(), "after {bad:?}");
            pass(5_000).await;
        }
        let breaker = status(&gateway).breaker.unwrap();
        assert_eq!((breaker.state, breaker.callers), ("closed", 1), "after {bad:?}");
    }
}

/// A backend that fails for two callers and answers none is left alone by all, until it answers a ping.
#[tokio::test(start_paused = true)]
async fn the_failures_of_two_callers_refuse_all_until_a_ping_is_answered() {
    let switch = Switch::default();
    let fake = switch.backend(Shape::Web, || Step::Fail(FaultKind::TimedOut));
    let ping = PingRules { interval: Duration::from_secs(10), ..PingRules::default() };
    let failing = FailureRules { ping: Some(ping), ..FailureRules::default() };
    let gateway = start(&fake, Setup { failing, ..Setup::default() });
    let [ada, eve, vic] = ["user:ada", "user:eve", "user:vic"].map(|name| Client::open_by(&gateway, name, json!({})));
    let (ada, eve, vic) = (ada.await, eve.await, vic.await);
    for client in [&ada, &eve, &vic] {
        assert!(client.call("t1").await["result"].is_object());
    }
    switch.set(true);
    for client in [&ada, &eve] {
        for _ in 0..5 {
            client.call("t1").await;
        }
    }
    switch.set(false);
    assert_eq!(reason(&vic.call("t1").await), "breaker_open");
    pass(11_000).await;
    assert!(vic.call("t1").await["result"].is_object());
    assert_eq!(reason(&ada.call("t1").await), "breaker_open", "its own circuit stays open for thirty seconds");
}

/// A backend without a breaker is called whatever happens.
#[tokio::test(start_paused = true)]
async fn a_breaker_can_be_left_out() {
    let switch = Switch::default();
    let fake = switch.backend(Shape::Web, || Step::Fail(FaultKind::BackendDied));
    let failing = FailureRules { breaker: None, ..FailureRules::default() };
    let gateway = start(&fake, Setup { failing, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    switch.set(true);
    for _ in 0..20 {
        assert_eq!(reason(&client.call("t1").await), "backend_died");
    }
    assert!(status(&gateway).breaker.is_none());
}
