//! Rounds and kept reads: old clients at backends of the new era.

use crate::bridged_following::new_era;
use crate::client::{Client, answer, envelope, next};
use crate::fake::{ANSWER, Fake, Heard, Shape, Step, plain, said};
use crate::{Setup, start};
use serde_json::{Value, json};
use signalbox_engine::Caller;
use signalbox_engine::back::Wish;
use signalbox_engine::front::Mode;
use signalbox_runtime::{Gateway, StreamReader};
use std::sync::Arc;
use std::time::Duration;

fn asks(requests: Value) -> Value {
    json!({"resultType": "input_required", "inputRequests": requests, "requestState": "s"})
}

fn setup() -> Setup {
    Setup { wish: Wish::Modern, ..Setup::default() }
}

fn modern_read(gateway: &Arc<Gateway>, who: &str) -> StreamReader {
    let session = gateway.open_session(Caller::local(who, "test"), Mode::Stateless, "", "test").unwrap();
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}, "roots": {}}});
    Client { session }.post("resources/read", json!({"uri": "x://y", "_meta": meta}))
}

/// A client is asked only what it said it can be asked.
#[tokio::test(start_paused = true)]
async fn an_old_client_is_not_asked_what_it_did_not_declare() {
    for method in ["sampling/createMessage", "tools/call", "initialize"] {
        let fake = Fake::new(Shape::Web, move |heard: &Heard| match &*heard.method {
            "tools/call" if heard.params.get("inputResponses").is_none() => {
                vec![Step::Say(asks(json!({"k": {"method": method, "params": {"messages": []}}})))]
            }
            "tools/call" => vec![Step::Say(said("done"))],
            _ => new_era(heard),
        });
        let gateway = start(&fake, setup());
        let client = Client::open(&gateway, json!({})).await;
        let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
        let first = next(&stream).await.unwrap();
        assert_eq!(first.get("method"), None, "a client that declared nothing got: {first}");
    }
}

/// A result that depends on what a user said is not kept, let alone for others.
#[tokio::test(start_paused = true)]
async fn a_read_that_took_a_round_is_not_kept() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "resources/read" if heard.params.get("inputResponses").is_none() => {
            let form = json!({"mode": "form", "message": "?", "requestedSchema": {"type": "object", "properties": {}}});
            vec![Step::Say(asks(json!({"k": {"method": "elicitation/create", "params": form}})))]
        }
        "resources/read" => {
            let text = heard.params["inputResponses"]["k"]["content"]["pin"].clone();
            vec![Step::Say(json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public",
                "contents": [{"uri": "x://y", "text": text}]}))]
        }
        _ => new_era(heard),
    });
    let gateway = start(&fake, setup());
    let client = Client::open(&gateway, json!({"elicitation": {}})).await;
    let stream = client.post("resources/read", json!({"uri": "x://y"}));
    let asked = next(&stream).await.unwrap();
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let reply =
        json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept", "content": {"pin": "1234"}}});
    let post = client.session.open_stream().unwrap();
    client.session.receive(&post, envelope(&reply));
    assert_eq!(answer(&stream).await.unwrap()["result"]["contents"][0]["text"], "1234");
    let other = answer(&modern_read(&gateway, "other")).await.unwrap();
    assert_eq!(other["result"]["resultType"], "input_required", "another principal was shown: {other}");
}

/// A question is no result that could be kept.
#[tokio::test(start_paused = true)]
async fn a_question_with_a_ttl_is_not_kept() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "resources/read" => {
            let mut question = asks(json!({"k": {"method": "roots/list"}}));
            question["ttlMs"] = json!(60_000);
            question["cacheScope"] = json!("public");
            question["requestState"] = json!(format!("state {} {}", heard.link, heard.nth));
            vec![Step::Say(question)]
        }
        _ => new_era(heard),
    });
    let gateway = start(&fake, setup());
    Client::open(&gateway, json!({})).await.tools().await;
    let one = answer(&modern_read(&gateway, "one")).await.unwrap();
    let two = answer(&modern_read(&gateway, "two")).await.unwrap();
    assert_ne!(one["result"]["requestState"], two["result"]["requestState"], "one principal's state went to another");
}

/// A kept read is answered as the first one was.
#[tokio::test(start_paused = true)]
async fn a_kept_read_fits_an_old_client() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "resources/read" => {
            vec![Step::Say(json!({"cacheScope": "public", "contents": [{"uri": "x://y", "text": "a"}],
            "resultType": "complete", "ttlMs": 60_000}))]
        }
        _ => new_era(heard),
    });
    let gateway = start(&fake, setup());
    let client = Client::open(&gateway, json!({})).await;
    let first = client.ask("resources/read", json!({"uri": "x://y"})).await;
    let second = client.ask("resources/read", json!({"uri": "x://y"})).await;
    assert_eq!(fake.heard("resources/read").len(), 1);
    assert_eq!(first["result"], second["result"]);
}

/// A client that was asked and never answers does not hold its call, and with it its session, forever.
#[tokio::test(start_paused = true)]
async fn a_question_that_is_never_answered_ends_its_call() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "tools/call" => vec![Step::Say(asks(json!({"k": {"method": "roots/list"}})))],
        _ => new_era(heard),
    });
    let gateway = start(&fake, setup());
    let client = Client::open(&gateway, json!({"roots": {}})).await;
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    assert_eq!(next(&stream).await.unwrap()["method"], "roots/list");
    drop(stream);
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(client.session.in_flight(), 0, "ten minutes later the session still waits, so that it is never idle");
}

/// A result that was on its way while its resource changed is not kept: it may be from before the change.
#[tokio::test(start_paused = true)]
async fn a_read_that_a_change_overtook_is_not_kept() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "resources/read" => vec![
            Step::Tell("notifications/resources/updated", json!({"uri": "x://y"})),
            Step::Say(json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public",
                "contents": [{"uri": "x://y", "text": heard.nth.to_string()}]})),
        ],
        _ => new_era(heard),
    });
    let gateway = start(&fake, setup());
    let client = Client::open(&gateway, json!({})).await;
    client.ask("resources/read", json!({"uri": "x://y"})).await;
    let second = client.ask("resources/read", json!({"uri": "x://y"})).await;
    assert_eq!(second["result"]["contents"][0]["text"], "2", "the first result was told to be out of date as it came");
}

/// Questions whose call is over do not count against later ones.
#[tokio::test(start_paused = true)]
async fn questions_of_calls_that_are_over_do_not_use_up_the_bound() {
    let fake = Fake::new(Shape::Web, |heard: &Heard| match &*heard.method {
        "tools/call" => {
            let form = json!({"message": "?", "requestedSchema": {"type": "object", "properties": {}}});
            vec![Step::Ask(heard.nth as u64, "elicitation/create", form), Step::Wait(1), Step::Say(said("never mind"))]
        }
        ANSWER => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({"elicitation": {}})).await;
    for _ in 0..257 {
        client.call("t1").await;
    }
    let refused: Vec<Value> = fake.heard(ANSWER).into_iter().map(|one| one.params["error"].clone()).collect();
    assert_eq!(refused, Vec::<Value>::new(), "no question is open, yet this client is never asked again");
}
