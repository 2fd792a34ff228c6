//! What travels beside the answers: cancellation, progress, log messages, changes of resources and lists.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::{ask, backend_status, call, child, eventually, remote, text, tool_names, web_fixture};

const WATCHED: &str = "test://watched-resource";
const VERSION: &str = "2025-06-18";

/// A gateway with one backend, which is a child process or, if there is a second part, a server of its own.
async fn gateway(over_http: bool, era: ServedEra) -> (GatewayProcess, Option<Spawned>) {
    if !over_http {
        return (GatewayProcess::serve(&child("only", era, "").unwrap()).await.unwrap(), None);
    }
    let (web, address) = web_fixture("127.0.0.1:0", era).await.unwrap();
    (GatewayProcess::serve(&remote("only", &address, "")).await.unwrap(), Some(web))
}

async fn session(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap()
}

/// A call of `slow` that asks for progress.
fn slow(id: u64, ms: u64) -> Value {
    let mut message = call(id, "slow", &json!({"ms": ms}));
    message["params"]["_meta"] = json!({"progressToken": "p"});
    message
}

/// A call that is known to run: its first progress has come.
async fn running(client: &HttpClient, message: &Value) -> EventStream {
    let mut stream = EventStream::post(client, message).await.unwrap();
    let progress = stream.next().await.unwrap().unwrap();
    assert_eq!(progress["params"]["progressToken"], "p", "{progress}");
    stream
}

async fn cancelled(client: &HttpClient) -> String {
    let look = async || ask(client, "cancelled_count", json!({})).await.ok().filter(|count| count != "0");
    eventually("the backend hears of it", look).await.unwrap()
}

async fn old_era_cancels(over_http: bool) {
    let (gateway, _web) = gateway(over_http, ServedEra::Old).await;
    let client = session(&gateway).await;
    let mut stream = running(&client, &slow(77, 5_000)).await;
    let note = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}});
    assert_eq!(client.post(&note.to_string()).await.unwrap().status, 202);
    assert_eq!(cancelled(&client).await, "1");
    while let Some(message) = stream.next().await.unwrap() {
        assert!(message.get("id").is_none(), "a cancelled call is not answered: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_era_cancels_by_notification_over_stdio() {
    old_era_cancels(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_old_era_cancels_by_notification_over_http() {
    old_era_cancels(true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_cancels_nothing_in_the_old_era() {
    let (gateway, _web) = gateway(false, ServedEra::Old).await;
    let client = session(&gateway).await;
    drop(running(&client, &slow(1, 1_500)).await);
    let data_dir = gateway.data_dir();
    let busy = async || backend_status(&data_dir, "only").await.ok().filter(|only| only["in_flight"] == 1);
    eventually("the call goes on", busy).await.unwrap();
    let done = async || backend_status(&data_dir, "only").await.ok().filter(|only| only["in_flight"] == 0);
    eventually("the call comes to its end", done).await.unwrap();
    assert_eq!(ask(&client, "cancelled_count", json!({})).await.unwrap(), "0");
}

async fn new_era_cancels(over_http: bool, era: ServedEra) {
    let (gateway, _web) = gateway(over_http, era).await;
    let client = HttpClient::new(gateway.address());
    let mut message = slow(1, 5_000);
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    message["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let modern = client.clone().with("mcp-protocol-version", "2026-07-28").with("mcp-method", "tools/call");
    drop(running(&modern.with("mcp-name", "slow"), &message).await);
    let count = async || {
        let answer = client.modern(2, "tools/call", json!({"name": "cancelled_count", "arguments": {}})).await.ok()?;
        text(&answer.message().ok()?).filter(|count| count != "0")
    };
    assert_eq!(eventually("the backend hears of it", count).await.unwrap(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_era_cancels_by_leaving_over_stdio() {
    new_era_cancels(false, ServedEra::New).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_era_cancels_by_leaving_over_http() {
    new_era_cancels(true, ServedEra::New).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_new_era_cancels_at_an_old_backend_too() {
    new_era_cancels(false, ServedEra::Old).await;
    new_era_cancels(true, ServedEra::Old).await;
}

/// Progress comes on the stream of its call, under the client's own token.
async fn progress(client: &HttpClient) {
    let messages = client.post(&slow(3, 200).to_string()).await.unwrap().messages().unwrap();
    let (answer, progress) = messages.split_last().unwrap();
    assert_eq!(text(answer).unwrap(), "slept 200 ms");
    let seen: Vec<f64> = progress.iter().filter_map(|one| one["params"]["progress"].as_f64()).collect();
    assert_eq!(seen, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0]);
    assert!(progress.iter().all(|one| one["params"]["progressToken"] == "p"), "{progress:?}");
}

/// A log message comes on the stream of its call, or on the general one where the backend does not say which call it
/// is.
async fn logs(client: &HttpClient, general: &mut EventStream, over_http: bool) {
    client.request(4, "logging/setLevel", json!({"level": "warning"})).await.unwrap();
    let quiet = call(5, "emit_log", &json!({"level": "info", "message": "quiet"})).to_string();
    assert_eq!(client.post(&quiet).await.unwrap().messages().unwrap().len(), 1);
    let loud = call(6, "emit_log", &json!({"level": "error", "message": "loud"})).to_string();
    let mut messages = client.post(&loud).await.unwrap().messages().unwrap();
    assert_eq!(text(&messages.pop().unwrap()).unwrap(), "sent");
    let log = if over_http { general.next().await.unwrap().unwrap() } else { messages.remove(0) };
    assert_eq!((&log["method"], &log["params"]["data"]), (&json!("notifications/message"), &json!("loud")));
}

async fn notices(over_http: bool) {
    let (gateway, _web) = gateway(over_http, ServedEra::Old).await;
    let (client, other) = (session(&gateway).await, session(&gateway).await);
    // The other one has a connection too, and a stream on which it must hear of nothing but the list.
    ask(&other, "count", json!({})).await.unwrap();
    let mut elsewhere = EventStream::general(&other).await.unwrap();
    ask(&client, "count", json!({})).await.unwrap();
    let mut general = EventStream::general(&client).await.unwrap();
    progress(&client).await;
    logs(&client, &mut general, over_http).await;

    let subscribed = client.request(7, "resources/subscribe", json!({"uri": WATCHED})).await.unwrap();
    assert!(subscribed["result"].is_object(), "{subscribed}");
    ask(&client, "touch_resource", json!({"uri": WATCHED})).await.unwrap();
    let update = general.next().await.unwrap().unwrap();
    assert_eq!(update["method"], "notifications/resources/updated", "{update}");
    assert_eq!(update["params"]["uri"], WATCHED);

    let before = tool_names(&client).await.unwrap();
    assert!(!before.contains(&"extra_tool".to_owned()));
    ask(&client, "test_trigger_tool_change", json!({})).await.unwrap();
    for stream in [&mut general, &mut elsewhere] {
        let change = stream.next().await.unwrap().unwrap();
        assert_eq!(change["method"], "notifications/tools/list_changed", "{change}");
    }
    assert!(tool_names(&other).await.unwrap().contains(&"extra_tool".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_logs_updates_and_changes_arrive_over_stdio() {
    notices(false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_logs_updates_and_changes_arrive_over_http() {
    notices(true).await;
}
