//! Resources that listen requests follow: who hears of a change and how often, what is acknowledged, and what is left
//! behind.

use crate::bridged_following::new_era;
use crate::client::{Client, Modern, answer, caller, next, text};
use crate::fake::{Fake, Heard, OPEN, Shape, Step, plain};
use crate::{Setup, pass, start};
use serde_json::{Value, json};
use signalbox_engine::Principal;
use signalbox_engine::back::Wish;
use signalbox_engine::front::Mode;
use signalbox_runtime::{Gateway, StreamReader};
use std::sync::Arc;
use std::time::Duration;

const UPDATED: &str = "notifications/resources/updated";
const ACKNOWLEDGED: &str = "notifications/subscriptions/acknowledged";
/// The bound of listen requests that follow resources of one backend.
const MAX_FOLLOWS: usize = 10_000;

pub fn listen(client: &Modern, uris: &[&str]) -> StreamReader {
    let session = client.gateway.open_session(caller(&client.principal), Mode::Stateless, "", "test").unwrap();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": client.capabilities});
    let params = json!({"notifications": {"resourceSubscriptions": uris}, "_meta": meta});
    Client { session }.post("subscriptions/listen", params)
}

/// Somebody who cannot be asked anything.
fn bare(gateway: &Arc<Gateway>, principal: Principal) -> Modern {
    Modern { gateway: Arc::clone(gateway), principal, capabilities: json!({}) }
}

/// What the acknowledgement, which comes first, says is followed.
pub async fn followed(stream: &StreamReader) -> Value {
    let word = next(stream).await.unwrap();
    assert_eq!(word["method"], ACKNOWLEDGED, "{word}");
    word["params"]["notifications"]["resourceSubscriptions"].clone()
}

/// How many changes come on this stream until nothing comes any more.
async fn changes(stream: &StreamReader) -> usize {
    let mut count = 0;
    while let Ok(Some(out)) = tokio::time::timeout(Duration::from_secs(5), stream.next()).await {
        let message: Value = serde_json::from_slice(out.bytes()).unwrap();
        count += usize::from(message["method"] == UPDATED);
    }
    count
}

fn two_resources(heard: &Heard) -> Vec<Step> {
    let list = json!([{"uri": "x://1", "name": "1"}, {"uri": "x://2", "name": "2"}]);
    match &*heard.method {
        "resources/list" => vec![Step::Say(json!({"resultType": "complete", "resources": list}))],
        _ => new_era(heard),
    }
}

async fn modern_gateway(fake: &Fake) -> Arc<Gateway> {
    let gateway = start(fake, Setup { wish: Wish::Modern, ..Setup::default() });
    Client::open(&gateway, json!({})).await.tools().await;
    gateway
}

#[tokio::test(start_paused = true)]
async fn what_a_new_backend_does_not_acknowledge_is_not_acknowledged_to_the_client() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "subscriptions/listen" => {
            vec![Step::TellHere(ACKNOWLEDGED, json!({"notifications": {"resourceSubscriptions": ["x://2"]}}))]
        }
        _ => two_resources(heard),
    });
    let gateway = modern_gateway(&fake).await;
    let stream = listen(&bare(&gateway, Principal::anonymous()), &["x://1", "x://2"]);
    assert_eq!(followed(&stream).await, json!(["x://2"]));
}

#[tokio::test(start_paused = true)]
async fn a_listen_request_that_a_new_backend_refuses_is_acknowledged_without_it_and_not_made_again() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "subscriptions/listen" => vec![Step::Deny(-32602)],
        _ => two_resources(heard),
    });
    let gateway = modern_gateway(&fake).await;
    let stream = listen(&bare(&gateway, Principal::anonymous()), &["x://1"]);
    assert_eq!(followed(&stream).await, Value::Null);
    pass(60_000).await;
    assert_eq!(fake.heard("subscriptions/listen").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_a_new_backend_never_acknowledges_fails_in_the_end() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "subscriptions/listen" => Vec::new(),
        _ => new_era(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let stream = client.post("resources/subscribe", json!({"uri": "x://y"}));
    pass(120_000).await;
    let failed = answer(&stream).await.unwrap();
    assert!(failed["error"]["message"].as_str().unwrap().contains("did not say in time"), "{failed}");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_that_a_new_backend_refuses_fails_with_its_reason() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "subscriptions/listen" => vec![Step::Deny(-32602)],
        _ => new_era(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let failed = client.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    assert!(failed["error"]["message"].as_str().unwrap().ends_with("refuses to tell of changes: no"), "{failed}");
}

/// Each change of what is followed makes a new listen request, and the word about one says nothing about the next.
#[tokio::test(start_paused = true)]
async fn a_subscription_is_not_answered_by_the_acknowledgement_of_an_earlier_one() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.nth) {
        ("subscriptions/listen", 1) => [Step::Wait(1_000)].into_iter().chain(new_era(heard)).collect(),
        ("subscriptions/listen", _) => Vec::new(),
        _ => two_resources(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let first = client.post("resources/subscribe", json!({"uri": "x://1"}));
    let second = client.post("resources/subscribe", json!({"uri": "x://2"}));
    let answers = [answer(&first).await.unwrap(), answer_in_the_end(&second).await];
    assert!(answers[0]["result"].is_object() && answers[1]["error"].is_object(), "{answers:?}");
}

async fn answer_in_the_end(stream: &StreamReader) -> Value {
    pass(120_000).await;
    answer(stream).await.unwrap()
}

/// The old session hears it on the gateway's own listen request, the client of the new era on its own.
#[tokio::test(start_paused = true)]
async fn a_change_at_a_new_backend_is_heard_once_by_old_sessions_and_by_listeners() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "subscriptions/listen" => {
            let mut steps = new_era(heard);
            steps.extend([Step::Wait(1_000), Step::TellHere(UPDATED, json!({"uri": "x://y"}))]);
            steps
        }
        _ => new_era(heard),
    });
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let old = Client::open(&gateway, json!({})).await;
    let general = old.session.open_general().unwrap();
    old.tools().await;
    let stream = listen(&bare(&gateway, Principal::anonymous()), &["x://y"]);
    assert_eq!(followed(&stream).await, json!(["x://y"]));
    old.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    assert_eq!([changes(&stream).await, changes(&general).await], [1, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_several_processes_tell_is_heard_once_and_after_the_last_of_them() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    let client = Modern::askable(&gateway);
    assert_eq!(text(&client.call("t1", json!({})).await), "link 2", "a process for those who can be asked");
    let stream = listen(&client, &["x://y"]);
    assert_eq!(followed(&stream).await, json!(["x://y"]));
    let links: Vec<usize> = fake.heard("resources/subscribe").iter().map(|one| one.link).collect();
    assert_eq!(links, [1, 2]);
    for _ in 0..2 {
        fake.tell(1, UPDATED, &json!({"uri": "x://y"}));
        pass(30).await;
        assert!(tokio::time::timeout(Duration::ZERO, stream.next()).await.is_err(), "told before the other process");
        fake.tell(2, UPDATED, &json!({"uri": "x://y"}));
        assert_eq!(changes(&stream).await, 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_is_followed_on_for_one_principal_whoever_else_follows_it() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    let mine = listen(&bare(&gateway, Principal::local("me")), &["x://y"]);
    let yours = listen(&bare(&gateway, Principal::local("you")), &["x://y"]);
    for stream in [&mine, &yours] {
        assert_eq!(followed(stream).await, json!(["x://y"]));
    }
    drop(yours);
    pass(100).await;
    let subscribed = fake.heard("resources/subscribe");
    let unsubscribed = fake.heard("resources/unsubscribe");
    assert_eq!(unsubscribed.len(), 1, "your connection is told, mine is not: {unsubscribed:?}");
    assert_eq!(unsubscribed[0].link, subscribed[1].link);
    fake.tell(subscribed[0].link, UPDATED, &json!({"uri": "x://y"}));
    assert_eq!(changes(&mine).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_of_an_old_session_that_follows_a_resource_is_opened_again() {
    let fake = Fake::new(Shape::Web, plain);
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    let general = client.session.open_general().unwrap();
    client.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    let link = fake.heard("resources/subscribe")[0].link;
    assert_ne!(link, 1, "the session has a connection of its own");
    fake.kill(link);
    pass(10_000).await;
    let again = fake.heard("resources/subscribe").into_iter().map(|one| one.link).find(|one| *one > link);
    fake.tell(again.expect("nobody follows the resource any more"), UPDATED, &json!({"uri": "x://y"}));
    assert_eq!(changes(&general).await, 1);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_comes_while_the_backend_is_away_is_followed_for_when_it_is_back() {
    let fake = Fake::new(Shape::Pipe, plain);
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    fake.kill(1);
    let stream = listen(&bare(&gateway, Principal::local("you")), &["x://y"]);
    pass(20_000).await;
    assert_eq!(followed(&stream).await, json!(["x://y"]));
    let link = fake.heard("resources/subscribe")[0].link;
    fake.tell(link, UPDATED, &json!({"uri": "x://y"}));
    assert_eq!(changes(&stream).await, 1);
}

#[tokio::test(start_paused = true)]
async fn listen_requests_past_the_bound_are_told_that_nothing_is_followed_for_them() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        (OPEN, 2..) => vec![Step::Wait(50_000)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    Client::open(&gateway, json!({})).await.tools().await;
    // A backend that is away is not asked ten thousand times.
    fake.kill(1);
    let client = bare(&gateway, Principal::anonymous());
    let mut streams: Vec<StreamReader> = (0..=MAX_FOLLOWS).map(|_| listen(&client, &["x://y"])).collect();
    let last = streams.pop().unwrap();
    assert_eq!(followed(&last).await, Value::Null);
    assert_eq!(followed(&streams[0]).await, json!(["x://y"]));
    drop(streams);
    let stream = listen(&client, &["x://y"]);
    assert_eq!(followed(&stream).await, json!(["x://y"]), "those who left make room");
}
