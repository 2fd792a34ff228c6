//! WebSocket backends: a gateway behind a gateway, which is lost and found again, and a server of somebody else.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::clients::run_script;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::{ask, backend_status, call, child, eventually, text, tool_names};
use std::time::Duration;
use tokio::process::Command;

const VERSION: &str = "2025-06-18";

async fn inner() -> (GatewayProcess, String) {
    let config = child("fixture", ServedEra::Old, "").unwrap();
    (GatewayProcess::serve(&config).await.unwrap(), config)
}

async fn outer(inner: &GatewayProcess) -> GatewayProcess {
    let config = format!("[backends.far]\nurl = \"ws://{}/mcp\"\n", inner.address());
    GatewayProcess::serve(&config).await.unwrap()
}

fn slow(id: u64, ms: u64) -> String {
    let mut slow = call(id, "slow", &json!({"ms": ms}));
    slow["params"]["_meta"] = json!({"progressToken": "p"});
    slow.to_string()
}

/// Begins a call that takes long and waits until the far end surely works on it.
async fn at_work(client: &mut PipeClient, id: u64) {
    client.say(&slow(id, 20_000)).await.unwrap();
    let report = client.next().await.unwrap();
    assert_eq!(report["method"], "notifications/progress", "{report}");
}

async fn until(gateway: &GatewayProcess, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    let data_dir = gateway.data_dir();
    let look = async || backend_status(&data_dir, "far").await.ok().filter(|backend| wanted(backend));
    eventually(what, look).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_questions_and_progress_pass_through_both() {
    let (inner, _) = inner().await;
    let outer = outer(&inner).await;
    let mut client = PipeClient::websocket(outer.address(), &[]).await.unwrap();
    client.initialize(VERSION, json!({"elicitation": {}})).await.unwrap();
    let list = client.request(1, "tools/list", json!({})).await.unwrap();
    assert!(list["result"]["tools"].as_array().unwrap().iter().any(|tool| tool["name"] == "ask_name"), "{list}");
    client.say(&slow(2, 400)).await.unwrap();
    assert_eq!(text(&client.answer(2).await.unwrap()).unwrap(), "slept 400 ms");
    assert!(client.before.iter().any(|message| message["params"]["progressToken"] == "p"), "{:?}", client.before);
    client.say(&call(3, "ask_name", &json!({})).to_string()).await.unwrap();
    let question = client.next().await.unwrap();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let reply =
        json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": {"name": "Ada"}}});
    client.say(&reply.to_string()).await.unwrap();
    assert_eq!(text(&client.answer(3).await.unwrap()).unwrap(), "Ada");
    let backend = backend_status(&outer.data_dir(), "far").await.unwrap();
    assert_eq!((&backend["transport"], &backend["state"]), (&json!("websocket"), &json!("up")), "{backend}");
    assert_eq!(backend["server"], "signalbox", "{backend}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_cancelled_at_the_far_end() {
    let (inner, _) = inner().await;
    let outer = outer(&inner).await;
    let observer = HttpClient::new(inner.address()).initialize(VERSION, json!({})).await.unwrap();
    let mut client = PipeClient::websocket(outer.address(), &[]).await.unwrap();
    client.initialize(VERSION, json!({})).await.unwrap();
    at_work(&mut client, 1).await;
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#).await.unwrap();
    let told = async || ask(&observer, "cancelled_count", json!({})).await.ok().filter(|count| count == "1");
    eventually("the far end is told", told).await.unwrap();
    // The connection has not suffered.
    assert!(text(&client.request(2, "tools/call", json!({"name": "count", "arguments": {}})).await.unwrap()).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_gateway_is_one_error_per_call_and_comes_back_under_the_same_names() {
    let (inner, config) = inner().await;
    let outer = outer(&inner).await;
    let http = HttpClient::new(outer.address()).initialize(VERSION, json!({})).await.unwrap();
    let before = tool_names(&http).await.unwrap();
    let mut client = PipeClient::websocket(outer.address(), &[]).await.unwrap();
    client.initialize(VERSION, json!({})).await.unwrap();
    at_work(&mut client, 7).await;

    let address = inner.address();
    let folder = inner.stop().await.unwrap();
    let fault = client.answer(7).await.unwrap();
    assert_eq!(fault["error"]["data"]["reason"], "backend_died", "{fault}");
    assert!(fault["error"]["message"].as_str().unwrap().contains("broke the connection"), "{fault}");

    let _inner = GatewayProcess::serve_at(address, folder, &config).await.unwrap();
    until(&outer, "connected again", |backend| backend["state"] == "up").await;
    let counted = client.request(8, "tools/call", json!({"name": "count", "arguments": {}})).await.unwrap();
    assert_eq!(text(&counted).as_deref(), Some("1"), "{counted}");
    // Nothing but these two answers was said about the calls.
    let others: Vec<_> = client.before.iter().filter(|message| message["method"] != "notifications/progress").collect();
    assert!(others.is_empty(), "{others:?}");
    assert_eq!(tool_names(&http).await.unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_speaks_no_websocket_is_down_and_says_why() {
    let (inner, _) = inner().await;
    let config = format!("[backends.far]\nurl = \"ws://{}/elsewhere\"\n", inner.address());
    let outer = GatewayProcess::serve(&config).await.unwrap();
    let backend = until(&outer, "down", |backend| backend["last_error"].is_string()).await;
    let why = backend["last_error"].as_str().unwrap();
    assert!(why.contains("answered the WebSocket handshake with status 404"), "{why}");
}

/// The exit code of something that is not installed.
const NOT_INSTALLED: i32 = 77;

#[tokio::test(flavor = "multi_thread")]
async fn a_real_server_on_another_library() {
    let mut command = Command::new(run_script());
    command.arg("ws-server");
    let mut server = Spawned::start(command).unwrap();
    let line = match server.wait_line("listening ", Duration::from_secs(30)).await {
        Ok(line) => line,
        Err(error) => {
            let status = server.wait(Duration::from_secs(5)).await.unwrap();
            assert_eq!(status.code(), Some(NOT_INSTALLED), "{error}");
            assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "{error}");
            return println!("SKIP the server on npm ws: run script/install-test-deps");
        }
    };
    let url = line.trim_start_matches("listening ");
    let config = format!("[backends.far]\nurl = \"{url}?a=1\"\nheaders = {{ X-Key = \"open sesame\" }}\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap();
    assert_eq!(tool_names(&client).await.unwrap(), ["shout", "greeted_with"]);
    // Longer than any buffer on the way, in both directions and in fragments on the way back.
    let long = "ab\u{e9}\u{1f600}".repeat(50_000);
    let shouted = ask(&client, "shout", json!({"text": long})).await.unwrap();
    assert!(shouted == long.to_uppercase(), "{} of {} bytes", shouted.len(), long.len());
    let greeted: Value = serde_json::from_str(&ask(&client, "greeted_with", json!({})).await.unwrap()).unwrap();
    assert_eq!(greeted, json!({"key": "open sesame", "path": "/mcp?a=1"}));
    let backend = backend_status(&gateway.data_dir(), "far").await.unwrap();
    assert_eq!((&backend["transport"], &backend["server"]), (&json!("websocket"), &json!("node-ws")), "{backend}");
}
