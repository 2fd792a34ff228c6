//! Lists that change, grow old, and are pushed out.

use crate::client::{Client, modern_ask, names, next, text};
use crate::fake::{Fake, Heard, Shape, Step, plain, tools};
use crate::{Setup, pass, start};
use serde_json::{Value, json};
use signalbox_engine::back::Wish;
use signalbox_engine::catalog::MAX_VIEWS;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A change that is told while the lists are read for the first time is read after them, and nobody is shown a half.
#[tokio::test(start_paused = true)]
async fn a_change_during_the_first_read_is_not_lost_and_nothing_is_shown_half() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.nth) {
        ("tools/list", 1) => {
            vec![Step::Say(tools(&["t1"])), Step::Tell("notifications/tools/list_changed", json!({}))]
        }
        ("tools/list", _) => vec![Step::Say(tools(&["t1", "t2"]))],
        ("prompts/list", 1) => [Step::Wait(1_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    let prompts = client.ask("prompts/list", json!({})).await;
    assert_eq!(names(&prompts, "prompts"), ["p"], "the tools were stored before the prompts were read");
    pass(3_000).await;
    assert_eq!(client.tools().await, ["t1", "t2"], "the change was overwritten by what was read before it");
    assert_eq!(fake.heard("tools/list").len(), 2);
}

/// What an earlier run saved is shown at once, and read again for every capability set.
#[tokio::test(start_paused = true)]
async fn lists_of_an_earlier_run_are_read_again_for_every_capability_set() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("catalog.json");
    let setup = || Setup { catalog_file: Some(file.clone()), ..Setup::default() };
    let sets = || [json!({}), json!({"sampling": {}}), json!({"elicitation": {}})];

    let gateway = start(&Fake::new(Shape::Pipe, plain), setup());
    for set in sets() {
        assert_eq!(Client::open(&gateway, set).await.tools().await, ["t1"]);
    }
    gateway.shut_down(Duration::ZERO).await;

    let upgraded = |heard: &Heard| match &*heard.method {
        "tools/list" => vec![Step::Say(tools(&["t1", "t2"]))],
        _ => plain(heard),
    };
    let gateway = start(&Fake::new(Shape::Pipe, upgraded), setup());
    for set in sets() {
        let client = Client::open(&gateway, set.clone()).await;
        let known = client.tools().await;
        assert!(known.contains(&"t1".to_owned()), "{set}: what was saved is known: {known:?}");
        assert!(text(&client.call("t1").await).starts_with("link "));
        pass(1_000).await;
        assert_eq!(client.tools().await, ["t1", "t2"], "{set}");
    }
}

/// M3: lists that others pushed out are read again over the connection that showed them.
#[tokio::test(start_paused = true)]
async fn evicted_lists_come_back() {
    let gateway = start(&Fake::new(Shape::Web, plain), Setup::default());
    let set = |number: usize| -> Value { json!({"sampling": {"number": number}}) };
    let first = Client::open(&gateway, set(0)).await;
    assert_eq!(first.tools().await, ["t1"]);
    for number in 1..MAX_VIEWS + 3 {
        let other = Client::open(&gateway, set(number)).await;
        assert_eq!(other.tools().await, ["t1"], "set {number}");
        other.session.close();
    }
    let asked = tokio::time::Instant::now();
    assert_eq!(first.tools().await, ["t1"]);
    assert!(asked.elapsed() < Duration::from_secs(1), "it waited for {:?}", asked.elapsed());
}

/// A backend that tells of no changes says for how long its lists are good; after that they are read again.
#[tokio::test]
async fn lists_that_nobody_tells_changes_of_are_read_again_after_their_time() {
    let more = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&more);
    let fake = Fake::new(Shape::Web, move |heard| match &*heard.method {
        "server/discover" => vec![Step::Say(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}
        }))],
        "tools/list" => {
            let names: &[&str] = if switch.load(Ordering::Relaxed) { &["t1", "t2"] } else { &["t1"] };
            let mut list = tools(names);
            list["ttlMs"] = json!(1);
            vec![Step::Say(list)]
        }
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    more.store(true, Ordering::Relaxed);
    let reads = fake.heard("tools/list").len();
    assert_eq!(client.tools().await, ["t1"], "a crowd of clients is no crowd at the backend");
    assert_eq!(fake.heard("tools/list").len(), reads);
    pass(1_100).await;
    assert_eq!(client.tools().await, ["t1", "t2"]);
}

/// A server's word that its lists changed is passed on though nothing in them is new, once for many.
#[tokio::test(start_paused = true)]
async fn a_change_that_changes_nothing_is_told_once() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => {
            let change = || Step::Tell("notifications/tools/list_changed", json!({}));
            [change(), change(), change()].into_iter().chain(plain(heard)).collect()
        }
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    let general = client.session.open_general().unwrap();
    for _ in 0..2 {
        client.call("t1").await;
        assert_eq!(next(&general).await.unwrap()["method"], "notifications/tools/list_changed");
        pass(1_000).await;
    }
    client.session.close();
    assert_eq!(next(&general).await, None, "the same was told again");
}

/// How long a list is good, and for whom, is what its server says, less its age.
#[tokio::test(start_paused = true)]
async fn how_long_a_list_is_good_is_passed_on() {
    let fake = Fake::new(Shape::Web, move |heard| match &*heard.method {
        "server/discover" => vec![Step::Say(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": true}}
        }))],
        "tools/list" => {
            let mut list = tools(&["t1"]);
            (list["ttlMs"], list["cacheScope"]) = (json!(60_000), json!("public"));
            vec![Step::Say(list)]
        }
        "subscriptions/listen" => vec![],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let listed = async || {
        let list = modern_ask(&gateway, "tools/list").await;
        assert_eq!(list["result"]["cacheScope"], "public", "{list}");
        list["result"]["ttlMs"].as_u64().unwrap()
    };
    let first = listed().await;
    assert!((59_000..=60_000).contains(&first), "{first}");
    pass(10_000).await;
    let later = listed().await;
    assert!((49_000..=50_000).contains(&later), "{later}");
    pass(60_000).await;
    assert_eq!(listed().await, 0);
}
