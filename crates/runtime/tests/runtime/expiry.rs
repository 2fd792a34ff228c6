//! Backends that forget their sessions.

use crate::client::{Client, modern_call, text};
use crate::fake::{Fake, Shape, Step, plain};
use crate::{Setup, pass, start};
use serde_json::json;

/// More greetings than these on one connection are a loop: the first, and those that the runtime allows in a minute.
const GREETINGS: usize = 6;

/// H2: a backend that forgets every session is not greeted for ever by the gateway's own connection.
#[tokio::test(start_paused = true)]
async fn a_backend_that_forgets_every_session_is_greeted_a_few_times_only() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "initialize" => plain(heard),
        _ => vec![Step::Forget],
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert!(client.tools().await.is_empty());
    pass(5_000).await;
    for link in 1..=fake.heard("open").len() {
        let greetings = fake.heard_on(link, "initialize").len();
        assert!(greetings <= GREETINGS, "connection {link} was greeted {greetings} times");
    }
}

/// H2: nor by the connection of a session, whose client is told.
#[tokio::test(start_paused = true)]
async fn a_caller_whose_backend_forgets_every_session_gets_an_error() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        ("initialize", _) | (_, 1) => plain(heard),
        _ => vec![Step::Forget],
    });
    let gateway = start(&fake, Setup::default());
    pass(500).await;
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    for round in 1..=10 {
        let refused = client.call("t1").await;
        assert!(refused["error"]["message"].as_str().unwrap().contains("forgets its sessions"), "{refused}");
        let sent = fake.heard_on(2, "tools/call").len();
        assert!(sent <= 2 * round, "{round} calls were sent {sent} times: each is sent again once");
    }
    let greetings = fake.heard_on(2, "initialize").len();
    assert!(greetings <= GREETINGS, "greeted {greetings} times");
    assert!(modern_call(&gateway, "t1").await["result"].is_object(), "others are not hurt");
}

/// H2: one forgotten session is opened anew, and nobody notices.
#[tokio::test(start_paused = true)]
async fn a_session_forgotten_once_is_invisible_to_the_caller() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link, heard.nth) {
        ("tools/call", 2, 3) => vec![Step::Forget],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    for _ in 0..5 {
        assert_eq!(text(&client.call("t1").await), "link 2");
    }
    assert_eq!(fake.heard_on(2, "initialize").len(), 2);
    assert_eq!(fake.heard_on(2, "tools/call").len(), 6);
}
