//! Backends that are started again: how often, how gently, and what waits for them meanwhile.

use crate::client::{Client, answer, text};
use crate::fake::{Fake, OPEN, Shape, Step, plain};
use crate::{Setup, pass, start, status};
use serde_json::json;
use signalbox_engine::FaultKind;
use signalbox_runtime::FailureRules;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const MINUTE: u64 = 60_000;

fn call() -> serde_json::Value {
    json!({"name": "t1", "arguments": {}})
}

/// A backend that dies of the greeting while the switch is on.
fn stillborn(shape: Shape) -> (Fake, Arc<AtomicBool>) {
    let dies = Arc::new(AtomicBool::new(true));
    let switch = Arc::clone(&dies);
    let fake = Fake::new(shape, move |heard| match &*heard.method {
        "initialize" if switch.load(Ordering::Relaxed) => vec![Step::Die],
        _ => plain(heard),
    });
    (fake, dies)
}

/// Five restarts, then it has failed, and is started again only when that is asked for.
/// Proves NO-4.
#[tokio::test(start_paused = true)]
async fn a_child_that_does_not_live_is_started_six_times_in_all() {
    let (fake, dies) = stillborn(Shape::Pipe);
    let gateway = start(&fake, Setup::default());
    for _ in 0..60 {
        pass(MINUTE).await;
    }
    let told = status(&gateway);
    assert_eq!((told.state, told.restarts, fake.heard(OPEN).len()), ("failed", 5, 6));
    let why = told.last_error.unwrap();
    assert!(why.contains("5 times") && why.contains("reload"), "{why}");
    assert!(!gateway.is_ready());

    dies.store(false, Ordering::Relaxed);
    gateway.backend("a").unwrap().try_now();
    pass(1_000).await;
    assert_eq!((status(&gateway).state, fake.heard(OPEN).len()), ("up", 7));
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(text(&client.call("t1").await), "link 7");
}

/// A child that lives for a minute has earned as many restarts again.
/// Proves NO-4.
#[tokio::test(start_paused = true)]
async fn the_count_begins_anew_after_sixty_seconds() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    for _ in 0..12 {
        pass(62_000).await;
        let links = fake.open_links();
        fake.kill(links[0]);
    }
    pass(3_000).await;
    assert_eq!((status(&gateway).state, status(&gateway).restarts), ("up", 12));
    for _ in 0..6 {
        if let Some(link) = fake.open_links().first() {
            fake.kill(*link);
        }
        pass(40_000).await;
    }
    assert_eq!(status(&gateway).state, "failed");
    let client = Client::open(&gateway, json!({})).await;
    let refused = client.call("t1").await;
    assert_eq!(refused["error"]["data"]["reason"], "backend_down", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("reload"), "{refused}");
}

/// What waits for a child that then fails for good is told so.
/// Proves NO-4.
#[tokio::test(start_paused = true)]
async fn calls_that_wait_are_refused_when_the_child_has_failed() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        ("tools/call", _) => vec![Step::Die],
        _ => plain(heard),
    });
    let failing = FailureRules { max_restarts: Some(1), breaker: None, ..FailureRules::default() };
    let gateway = start(&fake, Setup { failing, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    assert!(client.call("t1").await["error"].is_object());
    let last = client.call("t1").await;
    assert_eq!(last["error"]["data"]["reason"], "backend_died", "{last}");
    let refused = client.call("t1").await;
    assert_eq!(refused["error"]["data"]["reason"], "backend_down", "{refused}");
    assert_eq!(status(&gateway).state, "failed");
}

/// `restart_on_exit = false`.
/// Proves NO-15.
#[tokio::test(start_paused = true)]
async fn a_child_that_is_not_to_be_started_again_stays_ended() {
    let fake = Fake::new(Shape::Pipe, plain);
    let failing = FailureRules { max_restarts: Some(0), breaker: None, ..FailureRules::default() };
    let gateway = start(&fake, Setup { failing, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    assert!(client.call("t1").await["result"].is_object());
    // Even after it has lived for long.
    pass(2 * MINUTE).await;
    fake.kill(fake.open_links()[0]);
    pass(10 * MINUTE).await;
    assert_eq!((status(&gateway).state, fake.open_links().len()), ("failed", 0));
    let refused = client.call("t1").await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("`restart = false`"), "{refused}");
}

/// The bound on restarts is about processes: a remote server may come back by itself.
/// Proves NO-4.
#[tokio::test(start_paused = true)]
async fn a_remote_server_is_tried_again_for_ever() {
    let (fake, dies) = stillborn(Shape::Web);
    let gateway = start(&fake, Setup::default());
    for _ in 0..60 {
        pass(MINUTE).await;
    }
    assert_eq!(status(&gateway).state, "down");
    dies.store(false, Ordering::Relaxed);
    pass(61_000).await;
    assert_eq!(status(&gateway).state, "up");
}

/// The queue of what waits for a backend has a bound, which is named.
#[tokio::test(start_paused = true)]
async fn calls_beyond_the_queue_are_refused_by_name_and_number() {
    let fake = Fake::new(Shape::Pipe, plain);
    let failing = FailureRules { max_queue: 2, ..FailureRules::default() };
    let gateway = start(&fake, Setup { failing, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    fake.kill(1);
    let waiting = [client.post("tools/call", call()), client.post("tools/call", call())];
    let refused = client.call("t1").await;
    assert_eq!(refused["error"]["data"]["reason"], "overloaded", "{refused}");
    let text_of = refused["error"]["message"].as_str().unwrap();
    assert!(text_of.contains("2 calls already wait for backend `a`") && text_of.contains("max_queue"), "{text_of}");
    let told = status(&gateway);
    assert_eq!((told.waiting, told.max_queue, told.queue_refused), (2, 2, 1));
    for one in &waiting {
        assert_eq!(text(&answer(one).await.unwrap()), "link 2");
    }
    assert_eq!((status(&gateway).waiting, status(&gateway).queue_refused), (0, 1));
}

/// The same bound holds for calls that wait for a connection of their own.
#[tokio::test(start_paused = true)]
async fn the_queue_of_a_connection_of_its_own_has_the_same_bound() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        ("initialize", 2) => [Step::Wait(3_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let failing = FailureRules { max_queue: 1, ..FailureRules::default() };
    let gateway = start(&fake, Setup { failing, ..Setup::default() });
    pass(500).await;
    let client = Client::open(&gateway, json!({})).await;
    let waiting = client.post("tools/call", call());
    let refused = client.call("t1").await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("max_queue"), "{refused}");
    assert_eq!((status(&gateway).waiting, status(&gateway).queue_refused), (1, 1));
    assert_eq!(text(&answer(&waiting).await.unwrap()), "link 2");
}

/// A backend that was started again gets few calls at first.
#[tokio::test(start_paused = true)]
async fn a_restarted_backend_gets_its_calls_by_and_by() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => [Step::Wait(300)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    fake.kill(1);
    let calls: Vec<_> = (0..200).map(|_| client.post("tools/call", call())).collect();
    pass(1_150).await;
    let first = fake.heard_on(2, "tools/call").len();
    assert!((1..=4).contains(&first), "{first} calls at once");
    pass(1_000).await;
    let more = fake.heard_on(2, "tools/call").len();
    assert!(more > first && more < 100, "{more} calls after a second");
    for one in &calls {
        assert_eq!(text(&answer(one).await.unwrap()), "link 2");
    }
    assert_eq!(fake.heard_on(2, "tools/call").len(), 200, "each ran once");
    pass(3_000).await;
    let again: Vec<_> = (0..200).map(|_| client.post("tools/call", call())).collect();
    pass(100).await;
    assert_eq!(fake.heard_on(2, "tools/call").len(), 400, "after its start it gets all at once");
    drop(again);
}

/// A connection that cannot be opened has processed nothing, so its calls are tried again after a moment.
/// Proves NO-3.
#[tokio::test(start_paused = true)]
async fn calls_of_a_connection_that_is_refused_are_tried_again() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        (OPEN, 2 | 3) => vec![Step::Refuse(FaultKind::BackendDown)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    pass(500).await;
    let client = Client::open(&gateway, json!({"sampling": {}})).await;
    assert_eq!(text(&client.call("t1").await), "link 4");
    assert_eq!((fake.heard("tools/call").len(), status(&gateway).retries), (1, 2));
}

/// But not forever.
/// Proves NO-3.
#[tokio::test(start_paused = true)]
async fn a_call_is_tried_again_twice_and_then_fails() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        (OPEN, 2..) => vec![Step::Refuse(FaultKind::BackendDown)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    pass(500).await;
    let client = Client::open(&gateway, json!({"sampling": {}})).await;
    let refused = client.call("t1").await;
    assert_eq!(refused["error"]["data"]["reason"], "backend_down", "{refused}");
    assert_eq!((fake.heard(OPEN).len(), status(&gateway).retries), (4, 2));
}
