//! Start and end of the gateway: slow backends, calls in flight, and processes that must not be left.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::{GatewayProcess, stdio_command};
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{
    PATIENCE, alive, ask, call, child, eventually, lists_saved, pids, signal, status, text, tool_names,
};
use tokio::process::Command;

const VERSION: &str = "2025-06-18";

async fn session(gateway: &GatewayProcess) -> HttpClient {
    HttpClient::new(gateway.address()).initialize(VERSION, json!({})).await.unwrap()
}

/// A backend that is quick, and one that takes so many seconds to start.
fn quick_and_slow(seconds: u32) -> String {
    let fixture = built("fixture-server").unwrap();
    let script = json!(format!("sleep {seconds}; exec '{}' --stdio --era old", fixture.display()));
    child("quick", ServedEra::Old, "tools.include = [\"count\"]").unwrap()
        + &format!("[backends.slow]\ncommand = \"sh\"\nargs = [\"-c\", {script}]\ntools.include = [\"greet\"]\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_list_waits_for_a_backend_that_takes_its_time() {
    let gateway = GatewayProcess::serve(&quick_and_slow(3)).await.unwrap();
    let client = session(&gateway).await;
    let started = Instant::now();
    assert_eq!(tool_names(&client).await.unwrap(), ["count", "greet"]);
    assert!(started.elapsed() > Duration::from_secs(1), "it was no slow start: {:?}", started.elapsed());
    assert!(ask(&client, "greet", json!({"name": "Ada"})).await.unwrap().contains("Ada"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_list_does_not_wait_longer_than_it_may() {
    let config = format!("[gateway]\nfirst_list_wait = 1\n{}", quick_and_slow(4));
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = session(&gateway).await;
    let mut general = EventStream::general(&client).await.unwrap();
    let started = Instant::now();
    assert_eq!(tool_names(&client).await.unwrap(), ["count"]);
    let took = started.elapsed();
    assert!(took < Duration::from_millis(2_500), "{took:?}");
    // One that is quick may have told of itself before.
    general.notification("notifications/tools/list_changed").await.unwrap();
    let look = async || tool_names(&client).await.ok().filter(|names| *names == ["count", "greet"]);
    eventually("the slow backend is listed", look).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_list_after_a_restart_does_not_wait_for_lists_known_from_before() {
    let gateway = GatewayProcess::serve(&quick_and_slow(0)).await.unwrap();
    assert_eq!(tool_names(&session(&gateway).await).await.unwrap(), ["count", "greet"]);
    lists_saved(&gateway.data_dir()).await.unwrap();
    let folder = gateway.stop().await.unwrap();
    let gateway = GatewayProcess::serve_in(folder, &quick_and_slow(3)).await.unwrap();
    let client = session(&gateway).await;
    let started = Instant::now();
    assert_eq!(tool_names(&client).await.unwrap(), ["count", "greet"]);
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    // A call to what is listed but not there yet waits for it.
    assert!(ask(&client, "greet", json!({"name": "Ada"})).await.unwrap().contains("Ada"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cold_npx_backend_is_in_the_first_list() {
    let strict = std::env::var("CI").as_deref() == Ok("true");
    let mut registry = Command::new("npm");
    registry.args(["view", "@modelcontextprotocol/server-everything", "version"]);
    let reachable = registry.output().await.is_ok_and(|output| output.status.success());
    if !reachable {
        assert!(!strict, "npx is missing or offline");
        return println!("SKIP cold npx: npm is missing or offline");
    }
    let cache = tempfile::tempdir().unwrap();
    let config = format!(
        "[gateway]\nfirst_list_wait = 150\n[backends.npx]\ncommand = \"npx\"\n\
         args = [\"-y\", \"@modelcontextprotocol/server-everything\"]\nstart_timeout = 150\n\
         env = {{ npm_config_cache = {} }}\n",
        json!(cache.path().to_str().unwrap())
    );
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = session(&gateway).await;
    let names = tool_names(&client).await.unwrap();
    assert!(names.contains(&"get-sum".to_owned()), "{names:?}\n{}", gateway.process.error_lines().join("\n"));
    let answer = ask(&client, "echo", json!({"message": "through npx"})).await.unwrap();
    assert!(answer.contains("through npx"), "{answer}");
}

async fn all_pids(data_dir: &std::path::Path) -> Vec<u32> {
    let status = status(data_dir).await.unwrap();
    status["backends"].as_array().unwrap().iter().flat_map(pids).collect()
}

async fn none_is_left(processes: &[u32]) {
    let gone = async || processes.iter().all(|pid| !alive(*pid)).then_some(());
    eventually("no child is left", gone).await.unwrap();
}

/// A call of `slow` that asks for progress.
fn slow(id: u64, ms: u64) -> Value {
    let mut message = call(id, "slow", &json!({"ms": ms}));
    message["params"]["_meta"] = json!({"progressToken": 1});
    message
}

/// Proves NO-10.
#[tokio::test(flavor = "multi_thread")]
async fn a_signal_lets_calls_in_flight_be_answered_and_leaves_no_child() {
    let mut gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    let client = session(&gateway).await;
    let own = HttpClient::new(gateway.address()).initialize(VERSION, json!({"elicitation": {}})).await.unwrap();
    ask(&own, "whoami", json!({})).await.unwrap();
    let children = all_pids(&gateway.data_dir()).await;
    assert_eq!(children.len(), 2);
    let mut stream = EventStream::post(&client, &slow(1, 2_000)).await.unwrap();
    stream.notification("notifications/progress").await.unwrap();
    signal(gateway.process.pid().unwrap(), "TERM").await.unwrap();
    let answer = stream.until(|message| message["id"] == 1).await.unwrap();
    assert_eq!(text(&answer).as_deref(), Some("slept 2000 ms"), "{answer}");
    let ended = gateway.process.wait(Duration::from_secs(8)).await.unwrap();
    assert_eq!(ended.code(), Some(0));
    assert!(children.iter().all(|pid| !alive(*pid)), "{children:?}");
}

/// Proves NO-10.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_outlasts_the_drain_is_told_so() {
    let config = format!("[gateway]\ndrain = 1\n{}", child("one", ServedEra::Old, "").unwrap());
    let mut gateway = GatewayProcess::serve(&config).await.unwrap();
    let client = session(&gateway).await;
    let mut stream = EventStream::post(&client, &slow(1, 20_000)).await.unwrap();
    let children = all_pids(&gateway.data_dir()).await;
    stream.notification("notifications/progress").await.unwrap();
    let started = Instant::now();
    signal(gateway.process.pid().unwrap(), "TERM").await.unwrap();
    let answer = stream.until(|message| message["id"] == 1).await.unwrap();
    assert_eq!(answer["error"]["data"]["reason"], "backend_died", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("was stopped"), "{answer}");
    assert_eq!(gateway.process.wait(Duration::from_secs(8)).await.unwrap().code(), Some(0));
    assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    assert!(children.iter().all(|pid| !alive(*pid)), "{children:?}");
}

/// `signalbox stdio`, with a session opened on it.
async fn on_stdio(folder: &std::path::Path, config: &str) -> Spawned {
    let line = stdio_command(folder, config).unwrap();
    let mut command = Command::new(&line[0]);
    command.args(&line[1..]);
    let mut front = Spawned::start(command).unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": VERSION, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}});
    front.write_line(&hello.to_string()).await.unwrap();
    eventually("the session is open", async || answer(&front, 0)).await.unwrap();
    front.write_line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await.unwrap();
    front
}

/// The answer under this id, if it has come. Every line must be a message.
fn answer(front: &Spawned, id: u64) -> Option<Value> {
    let mut messages = front.lines().into_iter().map(|line| serde_json::from_str::<Value>(&line).unwrap());
    messages.rfind(|message| message["id"] == id)
}

/// Proves N-26.
#[tokio::test(flavor = "multi_thread")]
async fn at_the_end_of_input_the_call_in_flight_is_still_answered() {
    let folder = tempfile::tempdir().unwrap();
    let mut front = on_stdio(folder.path(), &child("one", ServedEra::Old, "").unwrap()).await;
    front.write_line(&slow(1, 1_500).to_string()).await.unwrap();
    let begun = async || front.lines().iter().any(|line| line.contains("notifications/progress")).then_some(());
    eventually("the call runs", begun).await.unwrap();
    let children = all_pids(&folder.path().join("data")).await;
    assert_eq!(children.len(), 1);
    front.close_input();
    assert_eq!(front.wait(PATIENCE).await.unwrap().code(), Some(0));
    assert_eq!(text(&answer(&front, 1).unwrap()).as_deref(), Some("slept 1500 ms"));
    assert!(children.iter().all(|pid| !alive(*pid)), "{children:?}");
}

/// Proves NO-4.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_is_killed_leaves_no_child_that_reads_its_input() {
    let folder = tempfile::tempdir().unwrap();
    let mut front = on_stdio(folder.path(), &child("one", ServedEra::Old, "").unwrap()).await;
    front.write_line(&call(1, "whoami", &json!({})).to_string()).await.unwrap();
    eventually("the child is there", async || answer(&front, 1)).await.unwrap();
    let children = all_pids(&folder.path().join("data")).await;
    front.kill().await.unwrap();
    none_is_left(&children).await;
}
