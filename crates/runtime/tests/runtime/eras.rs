//! Finding out which era a backend speaks, and what must not be taken for an answer to that.

use crate::client::{Client, modern_call, text};
use crate::fake::{Fake, Heard, Shape, Step, plain, said};
use crate::{Setup, pass, start, status};
use serde_json::json;
use signalbox_engine::FaultKind;
use signalbox_engine::back::Wish;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A backend of the old era that dies of any question of the new one.
fn fragile(heard: &Heard) -> Vec<Step> {
    match &*heard.method {
        "server/discover" => vec![Step::Wait(300), Step::Die],
        _ => plain(heard),
    }
}

/// A backend of both eras, which says in which of them it was called.
fn both(heard: &Heard) -> Vec<Step> {
    let modern = heard.params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
    match &*heard.method {
        "server/discover" => vec![Step::Say(json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28", "2025-06-18"],
            "capabilities": {"tools": {}}
        }))],
        "tools/call" => vec![Step::Say(said(if modern { "new" } else { "old" }))],
        _ => plain(heard),
    }
}

/// A backend of both eras that takes longer than the probe to start comes up at its first start.
#[tokio::test(start_paused = true)]
async fn a_backend_that_starts_slowly_is_of_the_era_that_its_late_answer_tells() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "server/discover" => [vec![Step::Wait(6_000)], both(heard)].into_iter().flatten().collect(),
        // It came to the probe first, and takes no greeting of the other era on this pipe any more.
        "initialize" => vec![Step::Wait(1_100), Step::Deny(-32600)],
        _ => both(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Auto, ..Setup::default() });
    pass(8_000).await;
    assert_eq!(text(&modern_call(&gateway, "t1").await), "new");
    assert_eq!(fake.heard("initialize").len(), 1);
    assert_eq!((status(&gateway).restarts, fake.open_links()), (0, vec![1]));
}

/// A backend that is configured as old is never asked in the new era, and serves clients of it all the same.
#[tokio::test(start_paused = true)]
async fn a_backend_configured_as_old_serves_calls_of_the_new_era() {
    let fake = Fake::new(Shape::Pipe, fragile);
    let gateway = start(&fake, Setup::default());
    pass(500).await;
    for _ in 0..4 {
        assert_eq!(text(&modern_call(&gateway, "t1").await), "link 1");
    }
    assert_eq!(fake.heard("server/discover").len(), 0);
    assert_eq!(fake.open_links(), [1]);
}

/// So does one that was lost while it was asked which era it speaks.
#[tokio::test(start_paused = true)]
async fn a_backend_that_dies_of_the_probe_serves_calls_of_the_new_era() {
    let fake = Fake::new(Shape::Pipe, fragile);
    let gateway = start(&fake, Setup { wish: Wish::Auto, ..Setup::default() });
    pass(5_000).await;
    for _ in 0..4 {
        assert_eq!(text(&modern_call(&gateway, "t1").await), "link 2");
    }
    assert_eq!(fake.heard("server/discover").len(), 1);
    assert_eq!(fake.open_links(), [2]);
}

/// And it is in the first list, since it is greeted in the old way at once.
#[tokio::test(start_paused = true)]
async fn a_backend_that_dies_of_the_probe_is_in_the_first_list() {
    let fake = Fake::new(Shape::Pipe, fragile);
    let gateway = start(&fake, Setup { wish: Wish::Auto, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    let asked = tokio::time::Instant::now();
    assert_eq!(client.tools().await, ["t1"]);
    assert!(asked.elapsed().as_millis() < 900, "the greeting waited for {:?}", asked.elapsed());
    assert_eq!(status(&gateway).eras, ["old"]);
}

/// A handshake that failed on its way says nothing about eras.
#[tokio::test(start_paused = true)]
async fn a_failed_old_handshake_does_not_switch_the_old_era_off() {
    for kind in [FaultKind::BackendGarbage, FaultKind::BackendDied, FaultKind::BackendDown, FaultKind::TimedOut] {
        let broken = Arc::new(AtomicBool::new(true));
        let switch = Arc::clone(&broken);
        let fake = Fake::new(Shape::Web, move |heard| match &*heard.method {
            "initialize" if switch.load(Ordering::Relaxed) => vec![Step::Fail(kind)],
            _ => both(heard),
        });
        let gateway = start(&fake, Setup { wish: Wish::Auto, ..Setup::default() });
        assert_eq!(text(&modern_call(&gateway, "t1").await), "new");
        let client = Client::open(&gateway, json!({})).await;
        let refused = client.call("t1").await;
        assert!(refused["error"].is_object(), "{kind:?}: {refused}");
        broken.store(false, Ordering::Relaxed);
        pass(1_000).await;
        assert_eq!(text(&client.call("t1").await), "old", "{kind:?}");
        let other = Client::open(&gateway, json!({})).await;
        assert_eq!(text(&other.call("t1").await), "old", "{kind:?}");
    }
}

/// A backend that answers `initialize` with a refusal gets old clients over the bridge.
#[tokio::test(start_paused = true)]
async fn a_backend_that_refuses_the_old_era_gets_old_clients_over_the_bridge() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "initialize" => vec![Step::Deny(-32601)],
        _ => both(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Auto, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    for _ in 0..2 {
        assert_eq!(text(&client.call("t1").await), "new");
    }
    assert_eq!(fake.heard("initialize").len(), 1);
}
