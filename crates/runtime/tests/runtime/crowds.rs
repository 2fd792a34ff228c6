//! Many who wait for the same thing, and readers that fall behind.

use crate::client::{Client, next, text};
use crate::fake::{Fake, Shape, Step, plain};
use crate::{Setup, pass, start};
use serde_json::json;
use signalbox_engine::FaultKind;
use signalbox_runtime::outbox::OUTBOX_LIMIT;

#[tokio::test(start_paused = true)]
async fn a_session_that_fails_does_not_empty_the_list_that_is_being_read() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        ("initialize", 2) => vec![Step::Fail(FaultKind::BackendGarbage)],
        ("tools/list", 1) => [Step::Wait(1_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(client.tools().await, ["t1"]);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_that_waits_for_the_same_lists_opens_no_connection_each() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.link) {
        ("initialize", 1) => [Step::Wait(1_000)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let mut waiting = Vec::new();
    for _ in 0..50 {
        let client = Client::open(&gateway, json!({})).await;
        let answer = client.post("tools/list", json!({}));
        waiting.push((client, answer));
    }
    for (_, answer) in &waiting {
        assert!(next(answer).await.is_some());
    }
    pass(1_000).await;
    assert_eq!(fake.heard("tools/list").len(), 1);
    assert_eq!(fake.open_links().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_reader_is_too_far_behind_ends_instead_of_hanging() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "tools/call" => {
            let note = |_| Step::Tell("notifications/of/its/own", json!({}));
            let mut steps: Vec<Step> = (0..OUTBOX_LIMIT).map(note).collect();
            steps.push(Step::Say(json!({"content": []})));
            steps
        }
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    pass(500).await;
    let client = Client::open(&gateway, json!({})).await;
    let answer = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    pass(1_000).await;
    let mut read = 0;
    while next(&answer).await.is_some() {
        read += 1;
    }
    assert_eq!(read, OUTBOX_LIMIT);
    assert_eq!(gateway.status().dropped.get("slow_client"), Some(&1));
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_general_stream_what_belongs_to_no_call_takes_a_calls_stream() {
    let fake = Fake::new(Shape::Web, |heard| match (&*heard.method, heard.nth) {
        ("tools/call", 2) => {
            let note = Step::Tell("notifications/of/its/own", json!({"here": 1}));
            vec![note, Step::Wait(1_000), Step::Say(json!({"content": []}))]
        }
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    let general = client.session.open_general().unwrap();
    let link = text(&client.call("t1").await).rsplit(' ').next().unwrap().parse().unwrap();
    for _ in 0..OUTBOX_LIMIT + 10 {
        fake.tell(link, "notifications/of/its/own", &json!({}));
    }
    drop(general);
    let answer = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    let first = next(&answer).await.unwrap();
    assert_eq!(first["params"]["here"], 1, "{first}");
}
