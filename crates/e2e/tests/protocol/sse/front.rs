//! A raw client of HTTP+SSE, from the first event to the end of the session.

use super::{demo, sessions};
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::scene::{backend_status, call, child, eventually, signal, text};
use signalbox_testkit::sse_client::SseClient;
use std::time::Duration;

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_the_first_revision_lists_and_calls() {
    let gateway = demo().await;
    let mut client = SseClient::open(gateway.address()).await.unwrap();
    let id = client.post_to.strip_prefix("/messages?sessionId=").unwrap();
    assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
    let hello = client.initialize("2024-11-05", json!({})).await.unwrap();
    assert_eq!(hello["result"]["protocolVersion"], "2024-11-05");
    let list = client.request(1, "tools/list", json!({})).await.unwrap();
    let names: Vec<&str> =
        list["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["countdown", "directory_list", "echo"]);
    let echo = json!({"name": "echo", "arguments": {"text": "two\nlines é"}});
    let answer = client.request(2, "tools/call", echo).await.unwrap();
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("two\nlines é"), "{answer}");
    let nobody = client.request(3, "tools/call", json!({"name": "nobody"})).await.unwrap();
    assert!(nobody["error"]["message"].as_str().unwrap().contains("nobody"), "{nobody}");
    // The session ends with its stream, and another one is another session.
    let gone = client.post_to.clone();
    drop(client);
    sessions(&gateway, 0).await;
    let mut other = SseClient::open(gateway.address()).await.unwrap();
    assert_ne!(other.post_to, gone);
    let early = other.request(1, "tools/list", json!({})).await.unwrap();
    assert!(early["error"].is_object(), "{early}");
}

/// Progress, questions and answers of two calls at a time, all on the one stream.
#[tokio::test(flavor = "multi_thread")]
async fn everything_a_backend_says_comes_on_the_stream() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    let mut client = SseClient::open(gateway.address()).await.unwrap();
    client.initialize("2025-06-18", json!({"elicitation": {}})).await.unwrap();
    let mut slow = call(1, "slow", &json!({"ms": 500}));
    slow["params"]["_meta"] = json!({"progressToken": "p"});
    client.send(&slow).await.unwrap();
    client.send(&call(2, "ask_name", &json!({}))).await.unwrap();
    let question = client.until(|message| message["method"] == "elicitation/create").await.unwrap();
    let result = json!({"action": "accept", "content": {"name": "Ada"}});
    client.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": result})).await.unwrap();
    let named = client.until(|message| message["id"] == 2 && message.get("result").is_some()).await.unwrap();
    assert_eq!(text(&named).unwrap(), "Ada");
    let progress = client.until(|message| message["method"] == "notifications/progress").await.unwrap();
    assert_eq!(progress["params"]["progressToken"], "p");
    let slept = client.until(|message| message["id"] == 1).await.unwrap();
    assert_eq!(text(&slept).unwrap(), "slept 500 ms");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_vanishes_takes_its_session_and_its_calls_along() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    let mut client = SseClient::open(gateway.address()).await.unwrap();
    client.initialize("2024-11-05", json!({})).await.unwrap();
    client.send(&call(1, "slow", &json!({"ms": 60_000}))).await.unwrap();
    let data_dir = gateway.data_dir();
    let busy = async |wanted: u64| {
        let look = async || backend_status(&data_dir, "one").await.ok().filter(|one| one["in_flight"] == wanted);
        eventually("the backend's calls", look).await.unwrap();
    };
    busy(1).await;
    drop(client);
    sessions(&gateway, 0).await;
    busy(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_stops_answers_first_and_then_ends_the_stream() {
    let mut gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    let mut client = SseClient::open(gateway.address()).await.unwrap();
    client.initialize("2024-11-05", json!({})).await.unwrap();
    client.request(1, "tools/list", json!({})).await.unwrap();
    client.send(&call(2, "slow", &json!({"ms": 1_000}))).await.unwrap();
    signal(gateway.process.pid().unwrap(), "TERM").await.unwrap();
    let answer = client.until(|message| message["id"] == 2).await.unwrap();
    assert_eq!(text(&answer).unwrap(), "slept 1000 ms");
    // The lists of the backend that ended may still be taken back.
    while let Some(rest) = client.next().await.unwrap() {
        assert!(rest["method"].as_str().is_some_and(|method| method.ends_with("/list_changed")), "{rest}");
    }
    let ended = gateway.process.wait(Duration::from_secs(30)).await.unwrap();
    assert!(ended.success(), "{ended}");
    let log = gateway.process.error_lines().join("\n");
    assert!(!log.contains("did not end in time"), "{log}");
}

/// A client that does not read is not answered without end: it has to read before it may ask on.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_does_not_read_is_held_up_and_then_gets_everything() {
    let gateway = demo().await;
    let mut client = SseClient::open(gateway.address()).await.unwrap();
    client.initialize("2024-11-05", json!({})).await.unwrap();
    let big = "x".repeat(60_000);
    let mut asked = 0;
    let refusal: Value = loop {
        let message = call(asked + 1, "echo", &json!({"text": big}));
        let answer = client.post(&message.to_string()).await.unwrap();
        match answer.status {
            202 => asked += 1,
            429 => break answer.message().unwrap(),
            other => panic!("status {other}"),
        }
        assert!(asked < 2_000, "nobody stops a client that does not read");
    };
    assert_eq!(refusal["error"]["data"]["reason"], "overloaded", "{refusal}");
    assert_eq!(refusal["id"], asked + 1);
    // What needs no answer is taken all the same.
    client.send(&json!({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})).await.unwrap();
    for id in 1..=asked {
        client.until(|message| message["id"] == id).await.unwrap();
    }
    assert!(client.request(asked + 2, "ping", json!({})).await.unwrap()["result"].is_object());
}
