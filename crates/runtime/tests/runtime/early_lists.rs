//! Lists for clients that hear of changes: they need not wait for a backend that hangs.

use crate::client::{Client, Modern, answer, caller, names, next};
use crate::fake::{Fake, OPEN, Shape, Step, plain, tools};
use crate::{Setup, spec, start};
use serde_json::{Value, json};
use signalbox_engine::back::Wish;
use signalbox_engine::front::Mode;
use signalbox_runtime::list_wait::{DECLARED_LIST_WAIT, EARLY_LIST_WAIT};
use signalbox_runtime::{Backend, Gateway, Lifetime, StreamReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::time::Instant;

/// How long the slow backend takes to start.
const SLOW: Duration = Duration::from_secs(20);
const CHANGED: &str = "notifications/tools/list_changed";

/// A gateway with a backend that is quick and one that is slow.
fn quick_and_slow() -> Arc<Gateway> {
    let slow = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        OPEN => vec![Step::Wait(u64::try_from(SLOW.as_millis()).unwrap())],
        "tools/list" => vec![Step::Say(tools(&["late"]))],
        _ => plain(heard),
    });
    let gateway = start(&Fake::new(Shape::Pipe, plain), Setup::default());
    let mut backends = gateway.backends().to_vec();
    backends.push(Backend::new("slow", Arc::new(slow), spec(Lifetime::default(), |_| true)));
    gateway.replace(backends);
    gateway
}

fn meta(name: &str) -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}
    })
}

fn modern(gateway: &Arc<Gateway>, name: &str, method: &str, params: &Value) -> StreamReader {
    let principal = Modern::askable(gateway).principal;
    let session = gateway.open_session(caller(&principal), Mode::Stateless, "", "test").unwrap();
    let mut params = params.clone();
    params["_meta"] = meta(name);
    Client { session }.post(method, params)
}

async fn listed(stream: &StreamReader) -> Vec<String> {
    names(&answer(stream).await.expect("no answer"), "tools")
}

#[tokio::test(start_paused = true)]
async fn an_old_client_with_a_general_stream_gets_the_others_lists_early_and_is_told_of_the_rest() {
    let gateway = quick_and_slow();
    let begun = Instant::now();
    let client = Client::open(&gateway, json!({})).await;
    let general = client.session.open_general().unwrap();
    assert_eq!(client.tools().await, ["t1"]);
    assert_eq!(begun.elapsed().as_secs(), EARLY_LIST_WAIT.as_secs());
    // The quick backend was new to the client too.
    while next(&general).await.expect("the general stream ended")["method"] != CHANGED || begun.elapsed() < SLOW {}
    assert_eq!(client.tools().await, ["t1", "late"]);
}

#[tokio::test(start_paused = true)]
async fn whoever_hears_of_nothing_waits_in_full() {
    let gateway = quick_and_slow();
    let begun = Instant::now();
    let client = Client::open(&gateway, json!({})).await;
    let new = modern(&gateway, "c", "tools/list", &json!({}));
    assert_eq!(client.tools().await, ["t1", "late"]);
    assert!(begun.elapsed() >= SLOW);
    assert_eq!(listed(&new).await, ["t1", "late"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_client_that_listens_gets_the_others_lists_early_and_is_told_of_the_rest() {
    let gateway = quick_and_slow();
    let begun = Instant::now();
    // Its list may come before its listen request.
    let list = modern(&gateway, "c", "tools/list", &json!({}));
    let other_list = modern(&gateway, "c", "prompts/list", &json!({}));
    let stranger = modern(&gateway, "d", "tools/list", &json!({}));
    let stream = modern(&gateway, "c", "subscriptions/listen", &json!({"notifications": {"toolsListChanged": true}}));
    assert_eq!(listed(&list).await, ["t1"]);
    assert_eq!(begun.elapsed().as_secs(), EARLY_LIST_WAIT.as_secs());
    let word = next(&stream).await.unwrap();
    assert_eq!(word["params"]["notifications"], json!({"toolsListChanged": true}), "{word}");
    assert_eq!(begun.elapsed().as_secs(), EARLY_LIST_WAIT.as_secs());
    assert_eq!(next(&stream).await.unwrap()["method"], CHANGED);
    assert!(begun.elapsed() >= SLOW);
    assert_eq!(listed(&stranger).await, ["t1", "late"], "another client does not hear of it");
    let prompts = answer(&other_list).await.unwrap();
    assert_eq!(names(&prompts, "prompts").len(), 2, "changes of prompts were not asked for: {prompts}");
}

/// A gateway in front of a server of both eras whose processes take [`SLOW`] to start.
fn slow_of_both_eras() -> Arc<Gateway> {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        OPEN => vec![Step::Wait(u64::try_from(SLOW.as_millis()).unwrap())],
        "server/discover" => vec![Step::Say(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28", "2025-06-18"], "capabilities": {"tools": {}}
        }))],
        _ => plain(heard),
    });
    start(&fake, Setup { wish: Wish::Auto, ..Setup::default() })
}

/// A backend of both eras is started a second time for clients of the old era, which need not wait for that: they are
/// shown what the first process listed.
#[tokio::test(start_paused = true)]
async fn an_old_client_is_shown_what_the_process_of_the_new_era_listed() {
    let gateway = slow_of_both_eras();
    let begun = Instant::now();
    let client = Client::open(&gateway, json!({})).await;
    let early = client.post("tools/list", json!({}));
    assert_eq!(listed(&early).await, ["t1"]);
    assert!(begun.elapsed() < SLOW + Duration::from_secs(1), "{:?}", begun.elapsed());
    let again = Instant::now();
    assert_eq!(client.tools().await, ["t1"]);
    assert!(again.elapsed() < Duration::from_secs(1), "{:?}", again.elapsed());
}

/// Lists of the new era do not depend on a process, so capabilities make no difference.
#[tokio::test(start_paused = true)]
async fn an_old_client_that_declares_capabilities_is_shown_them_too() {
    for is_told in [false, true] {
        let gateway = slow_of_both_eras();
        let begun = Instant::now();
        let client = Client::open(&gateway, json!({"roots": {}, "elicitation": {}})).await;
        let general = is_told.then(|| client.session.open_general().unwrap());
        assert_eq!(client.tools().await, ["t1"]);
        assert!(begun.elapsed() < SLOW + Duration::from_secs(1), "{:?}", begun.elapsed());
        drop(general);
    }
}

/// An old server whose second process, for clients that declare capabilities, is slow.
fn slow_for_capabilities() -> Arc<Gateway> {
    let opened = AtomicUsize::new(0);
    let fake = Fake::new(Shape::Pipe, move |heard| match &*heard.method {
        OPEN if opened.fetch_add(1, Ordering::Relaxed) > 0 => {
            vec![Step::Wait(u64::try_from(SLOW.as_millis()).unwrap())]
        }
        _ => plain(heard),
    });
    start(&fake, Setup::default())
}

/// An old server may show more to a client that declares capabilities, and this one would not hear of it.
#[tokio::test(start_paused = true)]
async fn a_client_that_declares_capabilities_waits_for_lists_of_its_own_kind() {
    let gateway = slow_for_capabilities();
    let bare = Client::open(&gateway, json!({})).await;
    assert_eq!(bare.tools().await, ["t1"]);
    for (is_told, least) in [(true, DECLARED_LIST_WAIT), (false, EARLY_LIST_WAIT)] {
        let begun = Instant::now();
        let client = Client::open(&gateway, json!({"sampling": {}})).await;
        let general = is_told.then(|| client.session.open_general().unwrap());
        assert_eq!(client.tools().await, ["t1"]);
        assert!(begun.elapsed() >= least, "{:?}", begun.elapsed());
        assert!(!is_told || begun.elapsed() < EARLY_LIST_WAIT, "{:?}", begun.elapsed());
        drop(general);
    }
}

/// A call of a tool that nobody has listed yet may be one of the slow backend.
#[tokio::test(start_paused = true)]
async fn a_call_waits_in_full_for_the_backend_that_may_have_its_tool() {
    let gateway = quick_and_slow();
    let client = Client::open(&gateway, json!({})).await;
    let _general = client.session.open_general().unwrap();
    let called = client.call("late").await;
    assert!(called["result"].is_object(), "{called}");
}

/// Nothing to show is no better than a wait.
#[tokio::test(start_paused = true)]
async fn where_no_backend_has_lists_everybody_waits() {
    let slow = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        OPEN => vec![Step::Wait(u64::try_from(SLOW.as_millis()).unwrap())],
        _ => plain(heard),
    });
    let gateway = start(&slow, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    let _general = client.session.open_general().unwrap();
    assert_eq!(client.tools().await, ["t1"]);
}
