//! Backends that hang, die or come back: how that is found out, how often they are started again, what waits meanwhile,
//! and what is told again to those that were started anew.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::frail_server::{FrailServer, Mood, Speaks};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{
    alive, backend_status, child, eventually, pids, process_of, remote, signal, text, tool_names,
};
use std::collections::BTreeMap;
use std::path::Path;
use tokio::process::Command;

const PING: &str = "ping = { interval = 0.3, doubt_interval = 0.2, timeout = 0.5, failures = 2, successes = 2 }\n";

async fn session(gateway: &GatewayProcess, capabilities: Value) -> HttpClient {
    HttpClient::new(gateway.address()).initialize("2025-06-18", capabilities).await.unwrap()
}

async fn readiness(gateway: &GatewayProcess) -> (u16, String) {
    let answer = HttpClient::new(gateway.address()).get("/readyz").await.unwrap();
    (answer.status, String::from_utf8(answer.body.to_vec()).unwrap())
}

async fn state(gateway: &GatewayProcess, name: &str, wanted: &str) -> Value {
    let data_dir = gateway.data_dir();
    let look = async || backend_status(&data_dir, name).await.ok().filter(|one| one["state"] == wanted);
    eventually(wanted, look).await.unwrap()
}

async fn text_status(gateway: &GatewayProcess) -> String {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["status", "--data-dir"]).arg(gateway.data_dir()).current_dir(gateway.data_dir());
    String::from_utf8(command.output().await.unwrap().stdout).unwrap()
}

/// Proves SO-15 and NO-10.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_not_ready_until_it_answers_again() {
    let server = FrailServer::start("frail", Speaks::Old).await.unwrap();
    let more = format!("era = \"old\"\nstart_timeout = 1\n{PING}");
    let gateway = GatewayProcess::serve(&remote("frail", &server.address().to_string(), &more)).await.unwrap();
    gateway.ready().await.unwrap();
    eventually("a ping", async || (!server.heard("ping").is_empty()).then_some(())).await.unwrap();
    assert_eq!(readiness(&gateway).await.0, 200);
    server.everything(Mood::Silent);
    let look = async || Some(readiness(&gateway).await).filter(|(status, _)| *status == 503);
    let (_, body) = eventually("it is not ready", look).await.unwrap();
    assert!(body.contains("backend `frail`"), "{body}");
    assert_eq!(HttpClient::new(gateway.address()).get("/healthz").await.unwrap().status, 200, "the gateway lives");
    let status = backend_status(&gateway.data_dir(), "frail").await.unwrap();
    assert_eq!(status["health"]["state"], "unwell", "{status}");
    assert!(status["health"]["failed"].as_u64().unwrap() >= 2, "{status}");
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    let page = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.lines().any(|line| line == r#"signalbox_backend_well{backend="frail"} 0"#), "{page}");
    server.everything(Mood::Well);
    gateway.ready().await.unwrap();
    let status = backend_status(&gateway.data_dir(), "frail").await.unwrap();
    assert_eq!(status["health"]["state"], "well", "{status}");
}

/// Proves NO-4 and NO-10.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_hangs_is_killed_and_started_again() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, PING).unwrap()).await.unwrap();
    let client = session(&gateway, json!({})).await;
    let pid = process_of(&client, "whoami").await.unwrap();
    let data_dir = gateway.data_dir();
    let well = async || backend_status(&data_dir, "one").await.ok().filter(|one| one["health"]["state"] == "well");
    eventually("it has answered a ping", well).await.unwrap();
    signal(pid, "STOP").await.unwrap();
    let new = async || {
        let pids = pids(&backend_status(&data_dir, "one").await.ok()?);
        pids.into_iter().find(|one| *one != pid)
    };
    eventually("another process", new).await.unwrap();
    assert_ne!(process_of(&client, "whoami").await.unwrap(), pid);
    eventually("the one that hung is gone", async || (!alive(pid)).then_some(())).await.unwrap();
}

/// Proves NO-4.
#[tokio::test(flavor = "multi_thread")]
async fn a_child_that_never_lives_has_failed_after_its_restarts() {
    let config = "[backends.bad]\ncommand = \"sh\"\nargs = [\"-c\", \"exit 3\"]\nmax_restarts = 1\n";
    let gateway =
        GatewayProcess::serve(&(config.to_owned() + &child("good", ServedEra::Old, "").unwrap())).await.unwrap();
    let status = state(&gateway, "bad", "failed").await;
    assert_eq!(status["restarts"], 1, "{status}");
    let why = status["last_error"].as_str().unwrap();
    assert!(why.contains("started again 1 times") && why.contains("reload"), "{why}");
    let shown = text_status(&gateway).await;
    assert!(shown.contains(" failed ") && shown.contains("reload the configuration"), "{shown}");
    let page = HttpClient::new(gateway.address()).get("/metrics").await.unwrap();
    assert!(String::from_utf8_lossy(&page.body).contains("signalbox_backend_failed{backend=\"bad\"} 1"));
    gateway.ready().await.unwrap();
    assert!(readiness(&gateway).await.1.contains("backend `bad` is failed"));
    assert!(!tool_names(&session(&gateway, json!({})).await).await.unwrap().is_empty(), "others are not hurt");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_wait_for_a_restart_are_bounded() {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "max_queue = 1").unwrap()).await.unwrap();
    let client = session(&gateway, json!({})).await;
    let pid = process_of(&client, "whoami").await.unwrap();
    signal(pid, "KILL").await.unwrap();
    state(&gateway, "one", "restarting").await;
    let calls: Vec<_> = (0..5)
        .map(|id| {
            let client = client.clone();
            tokio::spawn(async move {
                client.request(id, "tools/call", json!({"name": "count", "arguments": {}})).await.unwrap()
            })
        })
        .collect();
    let mut refused = 0;
    for call in calls {
        let answer = call.await.unwrap();
        if text(&answer).is_none() {
            assert_eq!(answer["error"]["data"]["reason"], "overloaded", "{answer}");
            assert!(answer["error"]["message"].as_str().unwrap().contains("`max_queue`"), "{answer}");
            refused += 1;
        }
    }
    assert!(refused <= 4, "one of them could wait");
    let status = backend_status(&gateway.data_dir(), "one").await.unwrap();
    assert_eq!((&status["queue_refused"], &status["max_queue"]), (&json!(refused), &json!(1)), "{status}");
}

/// A server that writes down what it hears, and tells of a change whenever somebody follows a resource.
const WRITER: &str = r#"
while IFS= read -r line; do
  printf '%s %s\n' "$$" "$line" >> "$0"
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  [ -n "$id" ] || continue
  case $line in
    *'"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"logging":{},"resources":{"subscribe":true}},"serverInfo":{"name":"sh","version":"1"}}' ;;
    *'"tools/list"'*) result='{"tools":[{"name":"nothing","inputSchema":{}}]}' ;;
    *'"resources/list"'*) result='{"resources":[{"uri":"x://y","name":"y"}]}' ;;
    *'"resources/templates/list"'*) result='{"resourceTemplates":[]}' ;;
    *'"tools/call"'*) result='{"content":[{"type":"text","text":"nothing"}]}' ;;
    *) result='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
  case $line in
    *'"resources/subscribe"'*) printf '{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"x://y"}}\n' ;;
  esac
done
"#;

/// What each process has heard.
fn written(file: &Path) -> BTreeMap<u32, Vec<Value>> {
    let mut heard: BTreeMap<u32, Vec<Value>> = BTreeMap::new();
    for line in std::fs::read_to_string(file).unwrap_or_default().lines() {
        if let Some((pid, message)) = line.split_once(' ') {
            let message = serde_json::from_str(message).unwrap_or(Value::Null);
            heard.entry(pid.parse().unwrap_or_default()).or_default().push(message);
        }
    }
    heard
}

fn was_told(heard: &[Value], level: &str) -> bool {
    let follows = heard.iter().any(|one| one["method"] == "resources/subscribe" && one["params"]["uri"] == "x://y");
    let leveled = heard.iter().any(|one| one["method"] == "logging/setLevel" && one["params"]["level"] == level);
    follows && leveled
}

/// Sessions of the old era with a process of their own or a shared one: what they follow and their log level are told
/// again to the process that takes the place of the one that died, and no client does anything for that.
/// Proves NO-4.
#[tokio::test(flavor = "multi_thread")]
async fn what_sessions_follow_outlives_the_process_they_followed_it_on() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heard");
    let config = format!(
        "[backends.sh]\nera = \"old\"\ncommand = \"sh\"\nargs = [\"-c\", {}, {}]\n",
        json!(WRITER),
        json!(file.to_str().unwrap())
    );
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let clients = [session(&gateway, json!({})).await, session(&gateway, json!({"elicitation": {}})).await];
    let mut streams = Vec::new();
    for (client, level) in clients.iter().zip(["error", "warning"]) {
        let mut general = EventStream::general(client).await.unwrap();
        client.request(1, "tools/call", json!({"name": "nothing", "arguments": {}})).await.unwrap();
        client.request(2, "logging/setLevel", json!({"level": level})).await.unwrap();
        client.request(3, "resources/subscribe", json!({"uri": "x://y"})).await.unwrap();
        general.notification("notifications/resources/updated").await.unwrap();
        streams.push(general);
    }
    let before = pids(&backend_status(&gateway.data_dir(), "sh").await.unwrap());
    assert_eq!(before.len(), 2, "one is shared, one is a session's own");
    for pid in &before {
        signal(*pid, "KILL").await.unwrap();
    }
    for (general, level) in streams.iter_mut().zip(["error", "warning"]) {
        let look = async || {
            let heard = written(&file);
            heard.iter().any(|(pid, heard)| !before.contains(pid) && was_told(heard, level)).then_some(())
        };
        eventually("a new process is told", look).await.unwrap();
        general.notification("notifications/resources/updated").await.unwrap();
    }
}

/// The same for a session at a server that is reached over HTTP, and was restarted.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_session_follows_outlives_the_restart_of_a_remote_server() {
    let mut server = FrailServer::start("frail", Speaks::Old).await.unwrap();
    let gateway =
        GatewayProcess::serve(&remote("frail", &server.address().to_string(), "era = \"old\"")).await.unwrap();
    let client = session(&gateway, json!({})).await;
    let mut general = EventStream::general(&client).await.unwrap();
    client.request(1, "tools/call", json!({"name": "run", "arguments": {}})).await.unwrap();
    client.request(2, "logging/setLevel", json!({"level": "error"})).await.unwrap();
    client.request(3, "resources/subscribe", json!({"uri": "x://y"})).await.unwrap();
    let follows = |server: &FrailServer| server.heard("resources/subscribe").len();
    let levels = |server: &FrailServer| server.heard("logging/setLevel").len();
    let (before, leveled) = (follows(&server), levels(&server));
    server.go_away().await;
    server.come_back().await.unwrap();
    let look = async || (follows(&server) > before && levels(&server) > leveled).then_some(());
    eventually("the server is told again", look).await.unwrap();
    let told = async || {
        server.tell("notifications/resources/updated", &json!({"uri": "x://y"}));
        let heard = general.notification("notifications/resources/updated");
        tokio::time::timeout(std::time::Duration::from_millis(500), heard).await.ok()
    };
    eventually("a change is heard of", told).await.unwrap().unwrap();
    assert_eq!(server.runs(), 1);
}
