//! Connections that are lost, and messages that a link refuses.

use crate::client::{Client, text};
use crate::fake::{Fake, OPEN, Shape, Step, plain};
use crate::{Setup, pass, start, status};
use serde_json::json;
use signalbox_engine::FaultKind;

/// M1: a session with a live connection of its own does not care whether the gateway's own can be opened.
#[tokio::test(start_paused = true)]
async fn a_session_with_a_connection_of_its_own_is_served_while_home_is_down() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.link) {
        (OPEN, 3) => vec![Step::Refuse(FaultKind::BackendDown)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({"sampling": {}})).await;
    assert_eq!(text(&client.call("t1").await), "link 2");
    fake.kill(1);
    pass(1_500).await;
    assert_eq!(status(&gateway).state, "down");
    assert_eq!(text(&client.call("t1").await), "link 2");

    let shared = Client::open(&gateway, json!({})).await;
    let refused = shared.call("t1").await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("is down"), "{refused}");
    pass(3_000).await;
    assert_eq!(text(&shared.call("t1").await), "link 4");
}

/// M6: a message that the link refused waits for no answer.
#[tokio::test(start_paused = true)]
async fn a_refused_message_leaves_nothing_pending() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.nth) {
        ("tools/call", ..=3) => vec![Step::Refuse(FaultKind::Overloaded)],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
    for _ in 0..3 {
        let refused = client.call("t1").await;
        assert!(refused["error"].is_object(), "{refused}");
    }
    assert_eq!(status(&gateway).in_flight, 0);
    assert_eq!(gateway.status().in_flight, 0);
    assert_eq!(text(&client.call("t1").await), "link 1");
}
