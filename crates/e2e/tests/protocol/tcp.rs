//! The plain TCP front of a real gateway: one message per line, each connection a session of its own.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::{PipeClient, PipeEnd};
use signalbox_testkit::scene::{call, child, eventually, signal, status, text};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const VERSION: &str = "2025-06-18";

async fn gateway(more: &str) -> GatewayProcess {
    let config =
        format!("[mcp.protocol.transport]\ntype = \"tcp\"\n{more}\n{}", child("one", ServedEra::Old, "").unwrap());
    GatewayProcess::serve_tcp(&config).await.unwrap()
}

async fn session(gateway: &GatewayProcess) -> PipeClient {
    let mut client = PipeClient::tcp(gateway.address()).await.unwrap();
    client.initialize(VERSION, json!({})).await.unwrap();
    client
}

async fn until(gateway: &GatewayProcess, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let data_dir = gateway.data_dir();
    eventually(what, async || status(&data_dir).await.ok().filter(|status| wanted(status))).await.unwrap()
}

/// Proves G-32.
#[tokio::test(flavor = "multi_thread")]
async fn a_dialogue_over_tcp() {
    let gateway = gateway("").await;
    let mut client = PipeClient::tcp(gateway.address()).await.unwrap();
    let hello = client.initialize(VERSION, json!({"elicitation": {}})).await.unwrap();
    assert_eq!(hello["result"]["protocolVersion"], VERSION);
    let list = client.request(1, "tools/list", json!({})).await.unwrap();
    assert!(list["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "ask_name"), "{list}");

    let mut slow = call(2, "slow", &json!({"ms": 400}));
    slow["params"]["_meta"] = json!({"progressToken": "p"});
    client.say(&slow.to_string()).await.unwrap();
    assert_eq!(text(&client.answer(2).await.unwrap()).unwrap(), "slept 400 ms");
    assert!(client.before.iter().any(|message| message["method"] == "notifications/progress"), "{:?}", client.before);

    client.say(&call(3, "ask_name", &json!({})).to_string()).await.unwrap();
    let question = client.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let reply =
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}});
    client.say(&reply.to_string()).await.unwrap();
    assert_eq!(text(&client.answer(3).await.unwrap()).unwrap(), "Ada");

    let modern = client.modern(4, "tools/call", json!({"name": "greet", "arguments": {"name": "Eve"}})).await.unwrap();
    assert!(text(&modern).unwrap().contains("Eve"), "{modern}");
    assert_eq!(modern["result"]["resultType"], "complete", "{modern}");

    let status = until(&gateway, "one client is connected", |status| status["connections"] == 1).await;
    assert_eq!(status["url"], format!("tcp://{}", gateway.address()));
    assert_eq!(status["sessions"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_read_is_answered_and_the_next_line_works() {
    let gateway = gateway("[gateway]\nmax_message = 4096").await;
    let mut client = session(&gateway).await;
    for (bad, code) in [("garbage", -32700), ("[]", -32600), (&"x".repeat(5000), -32600)] {
        client.say(bad).await.unwrap();
        let refusal = client.next().await.unwrap();
        assert_eq!(refusal["error"]["code"], code, "{refusal}");
        assert!(client.request(9, "ping", json!({})).await.unwrap()["result"].is_object());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_in_a_browser_cannot_smuggle_messages_in_an_http_request() {
    let gateway = gateway("").await;
    let smuggled = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
    let request = format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{smuggled}\n", smuggled.len() + 1);
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut heard = String::new();
    let _ = socket.read_to_string(&mut heard).await;
    assert_eq!(heard.lines().count(), 1, "{heard}");
    assert!(heard.contains("-32700") && heard.contains("no HTTP"), "{heard}");
    assert!(HttpClient::new(gateway.address()).get("/healthz").await.is_err());
    assert_eq!(status(&gateway.data_dir()).await.unwrap()["sessions_opened"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_or_connection_too_many_is_told_so() {
    let gateway = gateway("[mcp.protocol.security]\nmax_concurrent_sessions = 1").await;
    let first = session(&gateway).await;
    let mut second = PipeClient::tcp(gateway.address()).await.unwrap();
    let refusal = second.request(1, "ping", json!({})).await.err().unwrap().to_string();
    assert!(refusal.contains("ended"), "{refusal}");
    assert_eq!(second.before[0]["error"]["data"]["reason"], "overloaded", "{:?}", second.before);
    drop(first);

    let gateway = self::gateway("[gateway]\nmax_connections = 1").await;
    until(&gateway, "the connection of the first look has ended", |status| status["connections"] == 0).await;
    let held = session(&gateway).await;
    let mut second = PipeClient::tcp(gateway.address()).await.unwrap();
    let (said, end) = second.end().await.unwrap();
    assert_eq!((&said[0]["error"]["data"]["reason"], end), (&json!("overloaded"), PipeEnd::Dropped), "{said:?}");
    drop(held);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_closes_its_end_is_still_answered_and_one_that_vanishes_ends_its_session() {
    let gateway = gateway("").await;
    let mut socket = TcpStream::connect(gateway.address()).await.unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "nc", "version": "1"}}});
    let slow = call(1, "slow", &json!({"ms": 300}));
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    socket.write_all(format!("{hello}\n{initialized}\n{slow}\n").as_bytes()).await.unwrap();
    socket.shutdown().await.unwrap();
    let mut heard = String::new();
    socket.read_to_string(&mut heard).await.unwrap();
    assert!(heard.contains("slept 300 ms"), "{heard}");
    until(&gateway, "the session has ended", |status| status["sessions"] == 0).await;

    // Progress that nobody takes any more tells that the client is gone.
    let mut client = session(&gateway).await;
    let mut slow = call(1, "slow", &json!({"ms": 8_000}));
    slow["params"]["_meta"] = json!({"progressToken": "p"});
    client.say(&slow.to_string()).await.unwrap();
    until(&gateway, "a call in flight", |status| status["in_flight"] == 1).await;
    drop(client);
    let status = until(&gateway, "the session has ended", |status| status["sessions"] == 0).await;
    assert_eq!(status["in_flight"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn draining_finishes_calls_and_then_closes() {
    let mut gateway = gateway("").await;
    let mut client = session(&gateway).await;
    client.say(&call(1, "slow", &json!({"ms": 1_000})).to_string()).await.unwrap();
    until(&gateway, "a call in flight", |status| status["in_flight"] == 1).await;
    signal(gateway.process.pid().unwrap(), "TERM").await.unwrap();
    assert_eq!(text(&client.answer(1).await.unwrap()).unwrap(), "slept 1000 ms");
    assert_eq!(client.end().await.unwrap().1, PipeEnd::Dropped);
    assert!(gateway.process.wait(Duration::from_secs(20)).await.unwrap().success());
}
