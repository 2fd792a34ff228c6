//! One caller does not take all processes of a backend.

use crate::client::{Client, answer};
use crate::fake::{Fake, Shape, Step, plain};
use crate::{Setup, pass, start};
use serde_json::json;
use signalbox_runtime::Gateway;
use std::sync::Arc;

/// Duration of a call, in milliseconds.
const LONG: u64 = 15_000;

fn slow() -> Fake {
    Fake::new(Shape::Pipe, |heard| match &*heard.method {
        "tools/call" => [Step::Wait(LONG)].into_iter().chain(plain(heard)).collect(),
        _ => plain(heard),
    })
}

async fn askable(gateway: &Arc<Gateway>, principal: &str) -> Client {
    Client::open_by(gateway, principal, json!({"sampling": {}, "roots": {}})).await
}

#[tokio::test(start_paused = true)]
async fn a_caller_with_many_sessions_leaves_processes_to_others() {
    let fake = slow();
    let gateway = start(&fake, Setup { max_children: 8, ..Setup::default() });
    let (mut clients, mut calls) = (Vec::new(), Vec::new());
    for _ in 0..10 {
        let client = askable(&gateway, "user:ada").await;
        calls.push(client.post("tools/call", json!({"name": "t1", "arguments": {}})));
        clients.push(client);
        pass(100).await;
    }
    let said = askable(&gateway, "user:vic").await.call("t1").await;
    assert!(said["result"].is_object(), "{said}");
    let mut refused = Vec::new();
    for call in &calls {
        let said = answer(call).await.unwrap();
        refused.extend(said["error"]["message"].as_str().map(str::to_owned));
    }
    assert!((4..=6).contains(&refused.len()), "{refused:?}");
    assert!(refused.iter().all(|text| text.contains("`max_children`") && text.contains("user:ada")), "{refused:?}");
}

/// A caller without any process waits for one, as long as its call may take.
#[tokio::test(start_paused = true)]
async fn a_caller_without_a_process_waits_for_one() {
    let fake = slow();
    let gateway = start(&fake, Setup { max_children: 3, ..Setup::default() });
    let mut clients = Vec::new();
    for principal in ["user:ada", "user:bob"] {
        let client = askable(&gateway, principal).await;
        let call = client.post("tools/call", json!({"name": "t1", "arguments": {}}));
        // The client keeps its session, and no stream once it has its answer.
        tokio::spawn(async move { answer(&call).await });
        clients.push(client);
        pass(100).await;
    }
    assert_eq!(fake.open_links().len(), 3);
    let said = askable(&gateway, "user:vic").await.call("t1").await;
    assert!(said["result"].is_object(), "{said}");
}
