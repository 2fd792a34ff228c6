//! Arrays of messages in sessions of 2025-03-26, over HTTP and stdio (S-51, S-71).
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::{GatewayProcess, stdio_command};
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::Spawned;
use signalbox_testkit::scene::{ask, call, child, eventually, text, tool_names};
use std::collections::HashMap;
use std::time::Duration;
use tokio::process::Command;

const VERSION: &str = "2025-03-26";
const PATIENCE: Duration = Duration::from_secs(30);

async fn gateway() -> GatewayProcess {
    GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap()
}

/// A session that has seen the tools, so that no list is waited for.
async fn session(gateway: &GatewayProcess, capabilities: Value) -> HttpClient {
    let client = HttpClient::new(gateway.address()).initialize(VERSION, capabilities).await.unwrap();
    assert!(tool_names(&client).await.unwrap().contains(&"greet".to_owned()));
    client
}

fn note(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

fn cancel(id: u64) -> Value {
    note("notifications/cancelled", &json!({"requestId": id}))
}

fn unknown(id: u64) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "no/such/method"})
}

/// A call of `slow` that reports progress under this token.
fn slow(id: u64, ms: u64, token: &str) -> Value {
    let mut message = call(id, "slow", &json!({"ms": ms}));
    message["params"]["_meta"] = json!({"progressToken": token});
    message
}

/// Two calls, a notification, a method that nobody has, and something that is no message.
fn mixed() -> Value {
    json!([
        call(1, "greet", &json!({"name": "Ada"})),
        note("notifications/unheard/of", &json!({})),
        unknown(2),
        5,
        call(3, "count", &json!({}))
    ])
}

/// What is right to say about it, in any order.
fn check_mixed(answers: &[Value]) {
    assert_eq!(answers.len(), 4, "{answers:?}");
    let by_id: HashMap<String, &Value> = answers.iter().map(|one| (one["id"].to_string(), one)).collect();
    assert!(text(by_id["1"]).unwrap().contains("Ada"));
    assert_eq!(by_id["2"]["error"]["code"], -32601);
    assert_eq!(text(by_id["3"]).unwrap(), "1");
    assert_eq!(by_id["null"]["error"]["code"], -32600);
}

/// Proves S-51.
#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_batch_is_answered_as_one_array() {
    let gateway = gateway().await;
    let client = session(&gateway, json!({})).await;
    let answer = client.post(&mixed().to_string()).await.unwrap();
    assert_eq!((answer.status, &answer.headers["content-type"]), (200, &"application/json".parse().unwrap()));
    check_mixed(answer.message().unwrap().as_array().unwrap());

    // Whoever takes nothing but JSON gets the same, and progress goes nowhere.
    let plain = client.with("accept", "application/json");
    let batch = json!([slow(1, 300, "p"), call(2, "count", &json!({}))]);
    let answer = plain.post(&batch.to_string()).await.unwrap().message().unwrap();
    let mut ids: Vec<u64> = answer.as_array().unwrap().iter().map(|one| one["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2]);
}

/// Proves S-51.
#[tokio::test(flavor = "multi_thread")]
async fn a_mixed_batch_is_answered_event_by_event() {
    let gateway = gateway().await;
    let client = session(&gateway, json!({})).await.with("accept", "text/event-stream");
    let answer = client.post(&mixed().to_string()).await.unwrap();
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    check_mixed(&answer.messages().unwrap());
}

/// Proves S-71.
#[tokio::test(flavor = "multi_thread")]
async fn progress_and_answers_of_a_batch_share_one_stream() {
    let gateway = gateway().await;
    let client = session(&gateway, json!({})).await;
    let batch = json!([slow(1, 900, "a"), slow(2, 300, "b"), call(3, "count", &json!({}))]);
    let mut stream = EventStream::post(&client, &batch).await.unwrap();
    let (mut progress, mut answers) = (HashMap::<String, Vec<f64>>::new(), Vec::new());
    while let Some(message) = stream.next().await.unwrap() {
        match message["method"].as_str() {
            Some("notifications/progress") => {
                let token = message["params"]["progressToken"].as_str().unwrap().to_owned();
                progress.entry(token).or_default().push(message["params"]["progress"].as_f64().unwrap());
            }
            Some(other) => panic!("{other}"),
            None => answers.push(message["id"].as_u64().unwrap()),
        }
    }
    // Each as soon as it is there: the first to be asked is the last to answer.
    assert_eq!(answers, [3, 2, 1]);
    let ten: Vec<f64> = (1..=10).map(f64::from).collect();
    assert_eq!((&progress["a"], &progress["b"]), (&ten, &ten));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_without_requests_is_accepted() {
    let gateway = gateway().await;
    let client = session(&gateway, json!({})).await;
    let batch = json!([note("notifications/roots/list_changed", &json!({})), cancel(77),
        {"jsonrpc": "2.0", "id": 99, "result": {}}]);
    let answer = client.post(&batch.to_string()).await.unwrap();
    assert_eq!((answer.status, answer.body.len()), (202, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_on_the_stream_of_a_batch_is_answered_by_a_batch() {
    let gateway = gateway().await;
    let client = session(&gateway, json!({"sampling": {}})).await;
    let batch = json!([call(1, "test_sampling", &json!({"prompt": "?"})), call(2, "count", &json!({}))]);
    let mut stream = EventStream::post(&client, &batch).await.unwrap();
    let question = stream.until(|message| message["method"] == "sampling/createMessage").await.unwrap();
    let said = json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "forty-two"}});
    let reply = json!([{"jsonrpc": "2.0", "id": question["id"], "result": said}, call(3, "count", &json!({}))]);
    let answer = client.post(&reply.to_string()).await.unwrap().message().unwrap();
    assert_eq!(answer[0]["id"], 3, "{answer}");
    let answer = stream.until(|message| message["id"] == 1).await.unwrap();
    assert!(text(&answer).unwrap().contains("forty-two"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_is_left_out_and_the_stream_ends_without_it() {
    let gateway = gateway().await;
    let client = session(&gateway, json!({})).await;
    let batch = json!([slow(1, 20_000, "p"), call(2, "count", &json!({}))]);
    let mut stream = EventStream::post(&client, &batch).await.unwrap();
    let mut answers = vec![stream.until(|message| message["id"] == 2).await.unwrap()["id"].clone()];
    let ended = client.post(&json!([cancel(1)]).to_string()).await.unwrap();
    assert_eq!(ended.status, 202);
    while let Some(message) = stream.next().await.unwrap() {
        answers.extend(message.get("id").cloned());
    }
    assert_eq!(answers, [2]);
    let heard = async || ask(&client, "cancelled_count", json!({})).await.ok().filter(|count| count == "1");
    eventually("the backend hears of it", heard).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn batches_belong_to_2025_03_26_alone() {
    let gateway = gateway().await;
    let bare = HttpClient::new(gateway.address());
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    let ping = json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]);
    let refused = async |client: &HttpClient, batch: &Value| {
        let answer = client.post(&batch.to_string()).await.unwrap();
        let fault = answer.message().unwrap();
        assert_eq!((answer.status, &fault["error"]["code"]), (400, &json!(-32600)), "{fault}");
        assert_eq!(fault["id"], Value::Null);
        fault["error"]["message"].as_str().unwrap().to_owned()
    };
    for version in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let client = bare.initialize(version, json!({})).await.unwrap();
        assert!(refused(&client, &ping).await.contains(VERSION), "{version}");
    }
    assert!(refused(&bare, &json!([hello])).await.contains(VERSION));
    assert!(refused(&bare.clone().with("mcp-protocol-version", "2026-07-28"), &ping).await.contains(VERSION));
    let client = session(&gateway, json!({})).await;
    assert!(refused(&client, &json!([hello, ping[0]])).await.contains("initialize must not be part of a batch"));
    // Another caller's session is no way in either.
    let stranger = bare.with("mcp-session-id", "no-such-session");
    assert_eq!(stranger.post(&ping.to_string()).await.unwrap().status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn hostile_batches_are_refused_and_nothing_breaks() {
    let gateway = gateway().await;
    let client = session(&gateway, json!({})).await;
    let code = async |body: &str| {
        let answer = client.post(body).await.unwrap();
        let message = answer.message().unwrap();
        (answer.status, message["error"]["code"].as_i64(), message)
    };
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let thousand = format!("[{}]", vec![ping; 1000].join(","));
    let (status, error, message) = code(&thousand).await;
    assert_eq!((status, error), (400, Some(-32600)), "{message}");
    assert!(message["error"]["message"].as_str().unwrap().contains("more than 100"), "{message}");
    assert_eq!(code("[]").await.1, Some(-32600));
    assert_eq!(code(&format!("[{ping},")).await.1, Some(-32700));
    assert_eq!(code(&format!("[{ping}]{ping}")).await.1, Some(-32700));
    assert_eq!(code(&"[".repeat(1_000_000)).await.1, Some(-32700));

    // Elements that are wrong by themselves, each told so, and the good one among them is served.
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let nested = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"ping","params":{{"a":{deep}}}}}"#);
    let (_, _, answers) = code(&format!("[{deep},{nested},[{ping}],{ping},{ping},null,\"x\"]")).await;
    let answers = answers.as_array().unwrap();
    let served: Vec<&Value> = answers.iter().filter(|one| one.get("result").is_some()).collect();
    assert_eq!((answers.len(), served.len()), (7, 1), "{answers:?}");
    assert!(answers.iter().all(|one| one.get("result").is_some() || one["error"]["code"] == -32600), "{answers:?}");
    assert_eq!(ask(&client, "count", json!({})).await.unwrap(), "1");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_stdio_the_answers_to_a_batch_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let argv = stdio_command(folder.path(), &child("one", ServedEra::Old, "").unwrap()).unwrap();
    let mut command = Command::new(&argv[0]);
    command.args(&argv[1..]);
    let mut pipe = Spawned::start(command).unwrap();
    let line = async |pipe: &Spawned, prefix: &str| -> Value {
        serde_json::from_str(&pipe.wait_line(prefix, PATIENCE).await.unwrap()).unwrap()
    };
    pipe.write_line(&json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}]).to_string()).await.unwrap();
    let early = line(&pipe, r#"{"jsonrpc":"2.0","id":null,"#).await;
    assert_eq!(early["error"]["code"], -32600, "{early}");
    let hello = json!({"jsonrpc": "2.0", "id": "hello", "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    pipe.write_line(&hello.to_string()).await.unwrap();
    line(&pipe, r#"{"jsonrpc":"2.0","id":"hello","#).await;
    pipe.write_line(&note("notifications/initialized", &json!({})).to_string()).await.unwrap();
    pipe.write_line(r#"{"jsonrpc":"2.0","id":"list","method":"tools/list"}"#).await.unwrap();
    line(&pipe, r#"{"jsonrpc":"2.0","id":"list","#).await;

    // The progress of a call comes as it is made, and so does the answer to a request outside of the batch.
    let batch = json!([slow(8, 1_500, "p"), slow(9, 20_000, "q"), call(10, "count", &json!({})), unknown(11), 5]);
    pipe.write_line(&batch.to_string()).await.unwrap();
    line(&pipe, r#"{"jsonrpc":"2.0","method":"notifications/progress""#).await;
    pipe.write_line(r#"{"jsonrpc":"2.0","id":"beside","method":"ping"}"#).await.unwrap();
    line(&pipe, r#"{"jsonrpc":"2.0","id":"beside","#).await;
    assert!(!pipe.lines().iter().any(|line| line.starts_with('[')), "the slow calls are not answered yet");
    pipe.write_line(&json!([cancel(9)]).to_string()).await.unwrap();
    let answers = line(&pipe, "[").await;
    let mut ids: Vec<String> = answers.as_array().unwrap().iter().map(|one| one["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["10", "11", "8", "null"], "{answers}");
    pipe.close_input();
    assert!(pipe.wait(PATIENCE).await.unwrap().success());
    assert_eq!(pipe.lines().iter().filter(|line| line.starts_with('[')).count(), 1);
}
