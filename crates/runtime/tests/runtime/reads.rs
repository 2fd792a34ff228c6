//! Reads that are answered from what a backend of the new era let us keep.

use crate::client::{Client, caller};
use crate::fake::{Fake, Shape, Step, plain};
use crate::{Setup, start};
use serde_json::{Value, json};
use signalbox_engine::Principal;
use signalbox_engine::back::Wish;
use signalbox_engine::front::Mode;
use signalbox_runtime::Gateway;
use std::sync::Arc;

fn library(scope: &'static str) -> Fake {
    Fake::new(Shape::Web, move |heard| match &*heard.method {
        "server/discover" => vec![Step::Say(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"resources": {"subscribe": true, "listChanged": true}}
        }))],
        "resources/read" => vec![Step::Say(json!({
            "resultType": "complete", "ttlMs": 60_000, "cacheScope": scope,
            "contents": [{"uri": "x://y", "text": format!("read {}", heard.nth)}]
        }))],
        "initialize" => vec![Step::Deny(-32601)],
        _ => plain(heard),
    })
}

async fn read(gateway: &Arc<Gateway>, principal: &Principal) -> Value {
    let session = gateway.open_session(caller(principal), Mode::Stateless, "", "test").unwrap();
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    Client { session }.ask("resources/read", json!({"uri": "x://y", "_meta": meta})).await
}

fn text(answer: &Value) -> &str {
    answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

#[tokio::test(start_paused = true)]
async fn a_private_read_is_kept_for_its_reader_and_a_public_one_for_all() {
    for (scope, second) in [("private", "read 1"), ("public", "read 1")] {
        let fake = library(scope);
        let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
        let (me, you) = (Principal::anonymous(), Principal::local("you"));
        assert_eq!(text(&read(&gateway, &me).await), "read 1");
        let again = read(&gateway, &me).await;
        assert_eq!(text(&again), second);
        assert!(again["result"]["ttlMs"].as_u64().unwrap() <= 60_000, "{again}");
        // Another principal has a connection of its own, whose reads are counted on their own.
        assert_eq!(text(&read(&gateway, &you).await), "read 1");
        let asked = fake.heard("resources/read").len();
        assert_eq!(asked, if scope == "public" { 1 } else { 2 }, "{scope}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_resource_that_changed_is_read_again() {
    let fake = library("public");
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let me = Principal::anonymous();
    assert_eq!(text(&read(&gateway, &me).await), "read 1");
    fake.tell(1, "notifications/resources/updated", &json!({"uri": "x://y"}));
    assert_eq!(text(&read(&gateway, &me).await), "read 2");
    fake.tell(1, "notifications/resources/list_changed", &json!({}));
    assert_eq!(text(&read(&gateway, &me).await), "read 3");
}

/// Kept results age by the clock of the system, so this test does too.
#[tokio::test]
async fn reading_what_is_kept_does_not_keep_it_for_longer() {
    let fake = library("public");
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    let me = Principal::anonymous();
    read(&gateway, &me).await;
    tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    let left = |answer: Value| answer["result"]["ttlMs"].as_u64().unwrap();
    let once = left(read(&gateway, &me).await);
    assert!(once <= 59_980, "{once}");
    assert!(left(read(&gateway, &me).await) <= once);
}

#[tokio::test(start_paused = true)]
async fn an_old_client_gets_a_kept_read_in_its_own_form() {
    let fake = library("public");
    let gateway = start(&fake, Setup { wish: Wish::Modern, ..Setup::default() });
    assert_eq!(text(&read(&gateway, &Principal::anonymous()).await), "read 1");
    let client = Client::open(&gateway, json!({})).await;
    let answer = client.ask("resources/read", json!({"uri": "x://y"})).await;
    assert_eq!(text(&answer), "read 1");
    for key in ["resultType", "ttlMs", "cacheScope"] {
        assert!(answer["result"].get(key).is_none(), "{answer}");
    }
}
