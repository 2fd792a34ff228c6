//! Subscriptions between the eras.

use crate::client::{Client, caller, next};
use crate::fake::{Fake, Heard, OPEN, Shape, Step, plain};
use crate::{Setup, pass, start};
use serde_json::{Value, json};
use signalbox_engine::back::Wish;
use signalbox_engine::front::Mode;
use signalbox_engine::{FaultKind, Principal};
use signalbox_runtime::{Gateway, StreamReader};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";

pub fn new_era(heard: &Heard) -> Vec<Step> {
    match &*heard.method {
        "server/discover" => vec![Step::Say(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": {"tools": {}, "prompts": {}, "resources": {"subscribe": true}}
        }))],
        "subscriptions/listen" => {
            // An acknowledgement names what is followed; one that names nothing would refuse everything.
            vec![Step::TellHere(ACKNOWLEDGED, json!({"notifications": heard.params["notifications"]}))]
        }
        _ => plain(heard),
    }
}

fn listen(gateway: &Arc<Gateway>, who: &Principal) -> StreamReader {
    listen_to(gateway, who, &["x://y"])
}

fn listen_to(gateway: &Arc<Gateway>, who: &Principal, uris: &[&str]) -> StreamReader {
    let session = gateway.open_session(caller(who), Mode::Stateless, "", "test").unwrap();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let params = json!({"notifications": {"resourceSubscriptions": uris}, "_meta": meta});
    Client { session }.post("subscriptions/listen", params)
}

async fn drained(stream: &StreamReader) -> Vec<Value> {
    let mut all = Vec::new();
    while let Ok(Some(out)) = tokio::time::timeout(Duration::from_millis(500), stream.next()).await {
        all.push(serde_json::from_slice(out.bytes()).unwrap());
    }
    all
}

fn updates(all: &[Value]) -> usize {
    all.iter().filter(|one| one["method"] == UPDATED).count()
}

async fn old_client(gateway: &Arc<Gateway>, who: &Principal, external: &str) -> Client {
    let client = Client { session: gateway.open_session(caller(who), Mode::Session, external, "test").unwrap() };
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}});
    client.ask("initialize", hello).await;
    let stream = client.session.open_stream().unwrap();
    let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    client.session.receive(&stream, crate::client::envelope(&note));
    client
}

/// An old backend tells every connection of a change; each belongs to another principal.
#[tokio::test(start_paused = true)]
async fn a_change_reaches_the_listeners_of_every_principal() {
    let fake = Fake::new(Shape::Web, plain);
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let (me, you) = (Principal::local("me"), Principal::local("you"));
    let streams = [listen(&gateway, &me), listen(&gateway, &you)];
    pass(6_000).await;
    for stream in &streams {
        assert_eq!(next(stream).await.unwrap()["method"], ACKNOWLEDGED);
    }
    let links: Vec<usize> = fake.heard("resources/subscribe").iter().map(|one| one.link).collect();
    assert_eq!(links.len(), 2, "{links:?}");
    for link in links {
        fake.tell(link, UPDATED, &json!({"uri": "x://y"}));
    }
    let heard = [updates(&drained(&streams[0]).await), updates(&drained(&streams[1]).await)];
    assert_eq!(heard, [1, 1], "who is told second hears nothing");
}

/// An old session that stops following takes the resource away from a listen request on the same connection.
#[tokio::test(start_paused = true)]
async fn an_old_session_that_unsubscribes_does_not_make_a_listener_deaf() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    let old = Client::open(&gateway, json!({})).await;
    old.tools().await;
    let stream = listen(&gateway, &Principal::anonymous());
    assert_eq!(next(&stream).await.unwrap()["method"], ACKNOWLEDGED);
    old.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    old.ask("resources/unsubscribe", json!({"uri": "x://y"})).await;
    assert_eq!(fake.heard("resources/unsubscribe").len(), 0, "a listen request still follows it on this connection");
}

/// A stream of the backend that ends is opened again, else the client listens to nothing forever.
#[tokio::test(start_paused = true)]
async fn a_listen_request_whose_backend_stream_ended_is_made_again() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.nth) {
        ("subscriptions/listen", 1) => {
            let mut steps = new_era(heard);
            steps.extend([Step::Wait(1_000), Step::Say(json!({"resultType": "complete"}))]);
            steps
        }
        _ => new_era(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    Client::open(&gateway, json!({})).await.tools().await;
    let stream = listen(&gateway, &Principal::anonymous());
    assert_eq!(next(&stream).await.unwrap()["method"], ACKNOWLEDGED);
    pass(60_000).await;
    let ended = drained(&stream).await.iter().any(|one| one.get("result").is_some());
    let again = fake.heard("subscriptions/listen").len() > 1;
    assert!(again || ended, "neither is it made again, nor is the client told that it is over");
}

/// The acknowledgement is the first message of a listen request.
#[tokio::test(start_paused = true)]
async fn nothing_comes_before_the_acknowledgement() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.nth) {
        ("resources/subscribe", 2) => vec![Step::Wait(1_000), Step::Say(json!({}))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let first = listen(&gateway, &Principal::anonymous());
    assert_eq!(next(&first).await.unwrap()["method"], ACKNOWLEDGED);
    let second = listen(&gateway, &Principal::anonymous());
    pass(100).await;
    fake.tell(1, UPDATED, &json!({"uri": "x://y"}));
    assert_eq!(next(&second).await.unwrap()["method"], ACKNOWLEDGED);
}

/// What the backend refuses to follow is not acknowledged.
#[tokio::test(start_paused = true)]
async fn a_resource_that_the_backend_refuses_to_follow_is_not_acknowledged() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "resources/subscribe" => vec![Step::Deny(-32602)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let stream = listen(&gateway, &Principal::anonymous());
    let word = next(&stream).await.unwrap();
    assert_eq!(word["params"]["notifications"].get("resourceSubscriptions"), None, "{word}");
}

/// A listen request that ends while its resources are being followed leaves nothing followed.
#[tokio::test(start_paused = true)]
async fn a_listener_that_leaves_early_leaves_nothing_followed() {
    let followed: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let seen = Arc::clone(&followed);
    let fake = Fake::new(Shape::Pipe, move |heard| {
        let uri = heard.params["uri"].as_str().unwrap_or_default().to_owned();
        match &*heard.method {
            "resources/list" => {
                vec![Step::Say(json!({"resources": [{"uri": "x://1", "name": "1"}, {"uri": "x://2", "name": "2"}]}))]
            }
            "resources/subscribe" => {
                seen.lock().unwrap().insert(uri);
                vec![Step::Wait(100), Step::Say(json!({}))]
            }
            "resources/unsubscribe" => {
                seen.lock().unwrap().remove(&uri);
                vec![Step::Say(json!({}))]
            }
            _ => plain(heard),
        }
    });
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let stream = listen_to(&gateway, &Principal::anonymous(), &["x://1", "x://2"]);
    pass(50).await;
    drop(stream);
    pass(1_000).await;
    assert_eq!(*followed.lock().unwrap(), BTreeSet::new(), "nobody listens, and the backend still tells");
}

/// A connection that never opens answers those who wait for it to follow something.
#[tokio::test(start_paused = true)]
async fn a_subscription_on_a_connection_that_cannot_be_opened_is_answered() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        (OPEN, 2..) => vec![Step::Wait(100), Step::Refuse(FaultKind::BackendDown)],
        _ => new_era(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let you = old_client(&gateway, &Principal::local("you"), "you").await;
    you.tools().await;
    let stream = you.post("resources/subscribe", json!({"uri": "x://y"}));
    let came = tokio::time::timeout(Duration::from_secs(600), stream.next()).await;
    assert!(came.is_ok(), "ten minutes later there is no answer; in flight: {}", gateway.status().in_flight);
}

/// Nor does one wait forever who stops following before the connection is ready.
#[tokio::test(start_paused = true)]
async fn an_unsubscription_before_the_connection_is_ready_is_answered() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        (OPEN, 2..) => vec![Step::Wait(1_000)],
        _ => new_era(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let you = old_client(&gateway, &Principal::local("you"), "you").await;
    you.tools().await;
    let on = you.post("resources/subscribe", json!({"uri": "x://y"}));
    let off = you.post("resources/unsubscribe", json!({"uri": "x://y"}));
    for stream in [on, off] {
        let came = tokio::time::timeout(Duration::from_secs(600), stream.next()).await;
        assert!(came.is_ok(), "no answer; in flight: {}", gateway.status().in_flight);
    }
}

/// A connection that only a listen request uses is opened again when it is lost.
#[tokio::test(start_paused = true)]
async fn a_listener_outlives_a_connection_that_is_not_the_home_one() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let stream = listen(&gateway, &Principal::local("you"));
    assert_eq!(next(&stream).await.unwrap()["method"], ACKNOWLEDGED);
    let link = fake.heard("resources/subscribe")[0].link;
    assert_ne!(link, 1, "another principal has a connection of its own");
    fake.kill(link);
    pass(120_000).await;
    let links: Vec<usize> = fake.heard("resources/subscribe").iter().map(|one| one.link).collect();
    assert!(links.len() > 1, "two minutes later nobody follows the resource: {links:?}");
}

/// The acknowledgement comes when the backend follows, not when patience ends.
#[tokio::test(start_paused = true)]
async fn the_first_listener_of_a_principal_is_acknowledged_at_once() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let begun = tokio::time::Instant::now();
    let stream = listen(&gateway, &Principal::local("you"));
    assert_eq!(next(&stream).await.unwrap()["method"], ACKNOWLEDGED);
    assert!(begun.elapsed() < Duration::from_secs(1), "it took {:?} of the scripted clock", begun.elapsed());
}
