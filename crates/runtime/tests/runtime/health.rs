//! Backends that hang, and how that is found out.

use crate::client::{Client, answer, text};
use crate::fake::{Fake, OPEN, Shape, Step, plain, said};
use crate::{Setup, pass, start, status};
use serde_json::json;
use signalbox_engine::back::Wish;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A backend that answers no pings while it hangs. Only its first connection can.
fn hanging(shape: Shape) -> (Fake, Arc<AtomicBool>) {
    let hangs = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&hangs);
    let fake = Fake::new(shape, move |heard| match (&*heard.method, heard.link) {
        ("ping", 1) if switch.load(Ordering::Relaxed) => Vec::new(),
        _ => plain(heard),
    });
    (fake, hangs)
}

fn health(gateway: &signalbox_runtime::Gateway) -> &'static str {
    status(gateway).health.unwrap().state
}

/// Pings every 300 s, the first of them early.
/// Proves NO-10.
#[tokio::test(start_paused = true)]
async fn a_backend_is_pinged_every_five_minutes() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    pass(29_000).await;
    assert_eq!((fake.heard("ping").len(), health(&gateway)), (0, "not pinged yet"));
    pass(2_000).await;
    assert_eq!((fake.heard("ping").len(), health(&gateway)), (1, "well"));
    pass(298_000).await;
    assert_eq!(fake.heard("ping").len(), 1);
    pass(3_000).await;
    assert_eq!(fake.heard("ping").len(), 2);
}

/// Three pings without an answer, thirty seconds apart; two answers make it well again.
/// Proves SO-15 and NO-10.
#[tokio::test(start_paused = true)]
async fn a_hung_child_is_found_out_and_started_again() {
    let (fake, hangs) = hanging(Shape::Pipe);
    let gateway = start(&fake, Setup::default());
    pass(31_000).await;
    hangs.store(true, Ordering::Relaxed);
    pass(306_000).await;
    assert_eq!((health(&gateway), fake.open_links()), ("in doubt", vec![1]));
    assert!(gateway.is_ready());
    pass(72_000).await;
    assert_eq!((health(&gateway), fake.open_links()), ("unwell", vec![2]));
    let told = status(&gateway);
    assert_eq!((told.state, told.health.unwrap().failed), ("up", 3));
    assert!(!gateway.is_ready(), "nobody is sent here until it has proved itself");
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(text(&client.call("t1").await), "link 2", "whoever comes all the same is served");
    pass(35_000).await;
    assert_eq!(health(&gateway), "unwell");
    pass(30_000).await;
    assert_eq!(health(&gateway), "well");
    assert!(gateway.is_ready());
    assert_eq!(fake.heard(OPEN).len(), 2);
}

/// A server that cannot be reached any more is found out, though nobody calls it.
/// Proves NO-10.
#[tokio::test(start_paused = true)]
async fn a_remote_server_that_is_gone_is_shown_as_down() {
    use signalbox_engine::FaultKind;
    let gone = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&gone);
    let fake = Fake::new(Shape::Web, move |heard| match &*heard.method {
        OPEN => plain(heard),
        _ if switch.load(Ordering::Relaxed) => vec![Step::Fail(FaultKind::BackendDown)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    pass(31_000).await;
    gone.store(true, Ordering::Relaxed);
    pass(380_000).await;
    assert_eq!(status(&gateway).state, "down");
    assert!(!gateway.is_ready());
    gone.store(false, Ordering::Relaxed);
    pass(120_000).await;
    assert_eq!((status(&gateway).state, health(&gateway)), ("up", "well"));
}

/// A server that never says anything to a ping is not judged by pings.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_know_pings_is_left_in_peace() {
    let (fake, hangs) = hanging(Shape::Pipe);
    hangs.store(true, Ordering::Relaxed);
    let gateway = start(&fake, Setup::default());
    pass(3_600_000).await;
    assert_eq!((fake.open_links(), status(&gateway).restarts), (vec![1], 0));
    assert!(fake.heard("ping").len() > 3);
}

/// A server that works on one thing at a time answers no ping while it works.
#[tokio::test(start_paused = true)]
async fn a_child_at_work_is_not_taken_for_hung() {
    let hangs = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&hangs);
    let fake = Fake::new(Shape::Pipe, move |heard| match &*heard.method {
        "ping" if switch.load(Ordering::Relaxed) => Vec::new(),
        "tools/call" => vec![Step::Wait(2_000_000), Step::Say(said("done"))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { timeout: Duration::from_secs(3600), ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    pass(31_000).await;
    hangs.store(true, Ordering::Relaxed);
    let call = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    for _ in 0..50 {
        pass(40_000).await;
    }
    assert_eq!(text(&answer(&call).await.unwrap()), "done");
    assert_eq!(fake.heard(OPEN).len(), 1);
}

/// In the new era there are no pings.
/// Proves NO-10.
#[tokio::test(start_paused = true)]
async fn a_server_of_the_new_era_is_asked_what_every_client_asks() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "server/discover" => vec![Step::Say(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}
        }))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    pass(31_000).await;
    assert_eq!((fake.heard("server/discover").len(), fake.heard("ping").len()), (2, 0));
    assert_eq!(health(&gateway), "well");
}
