//! Arrays of messages: of clients, whose answers end the stream together, and of backends.

use crate::client::{Client, envelope, next, text};
use crate::fake::{Fake, Shape, Step, plain, said};
use crate::{Setup, pass, start, status};
use serde_json::{Value, json};
use signalbox_engine::{Fault, FaultKind};
use signalbox_runtime::Batch;

fn call(id: u64, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

#[tokio::test(start_paused = true)]
async fn a_stream_ends_with_the_last_answer_of_its_batch() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "tools/call" => vec![Step::Wait(if heard.nth == 1 { 900 } else { 300 }), Step::Say(said("done"))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let stream = client.session.open_stream().unwrap();
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"});
    let messages = [call(1, "t1"), call(2, "t1"), ping].iter().map(envelope).collect();
    client.session.receive_batch(
        &stream,
        Batch::new(messages, vec![(None, Fault::new(FaultKind::InvalidRequest, "no message"))]),
    );
    let mut ids = Vec::new();
    while let Some(answer) = next(&stream).await {
        ids.push(answer["id"].clone());
    }
    assert_eq!(ids, [json!(null), json!(3), json!(2), json!(1)], "each as it comes");
    assert_eq!(client.session.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_batch_whose_calls_are_all_cancelled_ends() {
    let fake = Fake::new(Shape::Web, |heard| match &*heard.method {
        "tools/call" => Vec::new(),
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    client.tools().await;
    let stream = client.session.open_stream().unwrap();
    let messages = vec![envelope(&call(1, "t1")), envelope(&call(2, "t1"))];
    client.session.receive_batch(&stream, Batch::new(messages, Vec::new()));
    pass(100).await;
    for id in [1, 2] {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
        let other = client.session.open_stream().unwrap();
        client.session.receive(&other, envelope(&note));
    }
    assert_eq!(next(&stream).await, None);
}

#[tokio::test(start_paused = true)]
async fn an_array_of_a_backend_is_taken_apart() {
    let fake = Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => {
            let log = json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "error", "data": "together"}});
            vec![Step::Together(vec![log, json!(5), json!([])], said("among others"))]
        }
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    let stream = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
    assert_eq!(next(&stream).await.unwrap()["params"]["data"], "together");
    assert_eq!(text(&next(&stream).await.unwrap()), "among others");
    assert_eq!(status(&gateway).strays["garbage"], 2);
}

#[tokio::test(start_paused = true)]
async fn an_array_of_a_backend_has_a_bound() {
    let fake = Fake::new(Shape::Pipe, |heard| match (&*heard.method, heard.nth) {
        ("tools/call", 1) => vec![Step::Together(vec![json!(5); 1000], said("lost")), Step::Say(said("alone"))],
        _ => plain(heard),
    });
    let gateway = start(&fake, Setup::default());
    let client = Client::open(&gateway, json!({})).await;
    assert_eq!(text(&client.call("t1").await), "alone");
    assert_eq!(status(&gateway).strays["garbage"], 1);
}
