//! Backends that forget their sessions.

use crate::client::{Client, modern_call, text};
use crate::fake::{Fake, Shape, Step, plain};
use crate::{Setup, pass, start};
use serde_json::json;
use signalbox_runtime::FailureRules;

/// More greetings than these on one connection are a loop: the first, and those that the runtime allows in a minute.
const GREETINGS: usize = 6;

/// A backend that forgets every session is not greeted forever by the gateway's own connection.
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

/// Nor by the connection of a session, whose client is told.
#[tokio::test(start_paused = true)]
async fn a_caller_whose_backend_forgets_every_session_gets_an_error() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        ("initialize", _) | (_, 1) => plain(heard),
        _ => vec![Step::Forget],
    });
    // What the breaker would make of it is another matter.
    let failing = FailureRules { breaker: None, ..FailureRules::default() };
    let gateway = start(&fake, Setup { failing, ..Setup::default() });
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

/// One forgotten session is opened anew, and nobody notices.
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

/// A session that is forgotten while nobody calls is opened anew as soon as its general stream is refused, and what was
/// followed in it is followed again.
#[tokio::test(start_paused = true)]
async fn a_session_whose_general_stream_is_refused_is_asked_for_and_opened_again() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.nth) {
        ("ping", 1) => vec![Step::Forget],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(text(&client.call("t1").await), "link 2");
    let followed = client.ask("resources/subscribe", json!({"uri": "x://y"})).await;
    assert!(followed["result"].is_object(), "{followed}");
    let lists = fake.heard_on(1, "tools/list").len();
    for link in [1, 2] {
        fake.doubt(link);
        pass(500).await;
        assert_eq!(fake.heard_on(link, "initialize").len(), 2, "connection {link}");
        assert_eq!(fake.heard_on(link, "ping").len(), 2, "connection {link}: it is sent again like any message");
    }
    assert!(fake.heard_on(1, "tools/list").len() > lists, "the lists may have changed meanwhile");
    assert_eq!(fake.heard_on(2, "resources/subscribe").len(), 2);
}

/// Some backends refuse a general stream by 404 though they know the session very well.
#[tokio::test(start_paused = true)]
async fn a_session_that_is_known_is_kept_though_it_has_no_general_stream() {
    let fake = Fake::new(Shape::Web, plain);
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(text(&client.call("t1").await), "link 2");
    for _ in 0..10 {
        fake.doubt(2);
        pass(100).await;
    }
    assert_eq!(text(&client.call("t1").await), "link 2");
    assert_eq!(fake.heard_on(2, "initialize").len(), 1);
}
