//! Messages that wait for a person, from outside: a real client waits while other processes list, edit, answer, refuse
//! or release what it asked for.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Method;
use rmcp::model::{CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RunningService, ServiceError};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Value, json};
use signalbox_testkit::clients;
use signalbox_testkit::gateway::{GatewayProcess, stdio_command};
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::{Spawned, built};
use signalbox_testkit::scene::{PATIENCE, eventually, signal};
use signalbox_testkit::terminal::Terminal;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

type Client = RunningService<RoleClient, Listener>;
type Called = JoinHandle<Result<Value, ServiceError>>;

/// What the client heard of progress.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<ProgressNotificationParam>>>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("rmcp-holds", "1"))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.heard.lock().unwrap().push(params);
    }
}

struct Done {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs the program beside the gateway, as a person in another terminal does.
async fn signalbox(data_dir: &Path, arguments: &[&str], variables: &[(&str, &str)], input: &str) -> Done {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(arguments).arg("--data-dir").arg(data_dir).current_dir(data_dir).envs(variables.iter().copied());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    tokio::io::AsyncWriteExt::write_all(&mut stdin, input.as_bytes()).await.unwrap();
    drop(stdin);
    let output = child.wait_with_output().await.unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
}

/// The same where it has to work, and its JSON.
async fn json_of(data_dir: &Path, arguments: &[&str]) -> Value {
    let done = signalbox(data_dir, &[arguments, &["--json"]].concat(), &[("USER", "ada")], "").await;
    assert_eq!(done.code, Some(0), "{arguments:?}: {}{}", done.stdout, done.stderr);
    serde_json::from_str(&done.stdout).unwrap()
}

/// The only message that is held, as soon as it is.
async fn held(data_dir: &Path) -> Value {
    let look = async || {
        let listed = json_of(data_dir, &["hold", "list"]).await;
        listed["holds"].as_array().unwrap().first().cloned()
    };
    eventually("a message is held", look).await.unwrap()
}

async fn nothing_held(data_dir: &Path) {
    let look = async || (json_of(data_dir, &["hold", "list"]).await["holds"] == json!([])).then_some(());
    eventually("nothing is held", look).await.unwrap();
}

/// A gateway with the demo tools, and a client over HTTP.
async fn scene() -> (GatewayProcess, PathBuf, Client) {
    let gateway = GatewayProcess::serve("").await.unwrap();
    gateway.ready().await.unwrap();
    let data_dir = gateway.data_dir();
    let client = over_http(&gateway).await;
    (gateway, data_dir, client)
}

async fn over_http(gateway: &GatewayProcess) -> Client {
    let transport = StreamableHttpClientTransport::from_uri(gateway.url());
    Listener::default().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await.unwrap()
}

/// Calls `echo`, without waiting for what it says.
fn echo(client: &Client, text: &str) -> Called {
    let peer = client.peer().clone();
    let arguments = json!({"text": text}).as_object().cloned().unwrap();
    tokio::spawn(async move {
        let result = peer.call_tool(CallToolRequestParams::new("echo").with_arguments(arguments)).await?;
        Ok(serde_json::to_value(&result).unwrap())
    })
}

async fn outcome(call: Called) -> Result<Value, ServiceError> {
    tokio::time::timeout(PATIENCE, call).await.unwrap().unwrap()
}

/// What the tool said.
async fn said(call: Called) -> String {
    let result = outcome(call).await.unwrap();
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}")).to_owned()
}

/// The error that the client got.
async fn error(call: Called) -> rmcp::model::ErrorData {
    match outcome(call).await {
        Err(ServiceError::McpError(error)) => error,
        other => panic!("no error: {other:?}"),
    }
}

/// A held call edited from another terminal while the client waits.
#[tokio::test(flavor = "multi_thread")]
async fn a_held_call_is_edited_by_another_process_while_the_client_waits_and_hears_of_it() {
    let (_gateway, data_dir, client) = scene().await;
    let set = json_of(&data_dir, &["hold", "next"]).await;
    assert_eq!((&set["words"], &set["within_ms"]), (&json!("the next of tool calls"), &json!(50_000)));
    let call = echo(&client, "before");
    let held = held(&data_dir).await;
    let (id, message) = (held["id"].to_string(), &held["message"]);
    assert_eq!((&held["method"], &held["subject"]), (&json!("tools/call"), &json!("echo")), "{held}");
    assert_eq!(message["params"]["arguments"]["text"], "before");
    assert!(held["gives_progress"] == true && held["left_ms"].as_u64().unwrap() <= 50_000, "{held}");
    // The client gave a progress token, so it hears that its call waits.
    let heard = async || client.service().heard.lock().unwrap().first().cloned();
    let told = eventually("the client hears of it", heard).await.unwrap();
    assert_eq!(told.message.as_deref(), Some("held: breakpoint 1"), "{told:?}");

    // What is not in order is refused, and the message stays held.
    let other = message.to_string().replace("tools/call", "tools/list");
    for (flag, text, expected) in [
        ("--message", "{\"jsonrpc\":\"2.0\"}", "not valid"),
        ("--message", other.as_str(), "must keep the method tools/call"),
        ("--message", "{", "must be JSON"),
        ("--result", "{}", "a request has no result"),
    ] {
        let done = signalbox(&data_dir, &["hold", "edit", &id, flag, text], &[], "").await;
        assert!(done.code != Some(0) && done.stderr.contains(expected), "{text}: {}{}", done.stdout, done.stderr);
    }
    let edited = message.to_string().replace("before", "after");
    let done = signalbox(&data_dir, &["hold", "edit", &id, "--message", "-"], &[], &edited).await;
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), "1 (tools/call echo) is edited and released\n"));
    assert_eq!(said(call).await, "after");
    let late = signalbox(&data_dir, &["hold", "release", &id], &[], "").await;
    assert!(late.code == Some(1) && late.stderr.contains("no message is held as 1"), "{}", late.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_editor_gets_a_private_pretty_file_and_what_is_saved_goes_on() {
    let (_gateway, data_dir, client) = scene().await;
    json_of(&data_dir, &["hold", "tool", "ec?o"]).await;
    let call = echo(&client, "before");
    let id = held(&data_dir).await["id"].to_string();
    let script = data_dir.join("editor.sh");
    let seen = data_dir.join("seen");
    let text = format!(
        "#!/bin/sh\nstat -c %a \"$2\" > {seen}\ncat \"$2\" >> {seen}\nsed -i \"s/before/$1/\" \"$2\"\n",
        seen = seen.display()
    );
    std::fs::write(&script, text).unwrap();
    let editor = |word: &str| format!("sh {} {word}", script.display());
    let unchanged = signalbox(&data_dir, &["hold", "edit", &id], &[("EDITOR", &editor("before"))], "").await;
    assert!(unchanged.code == Some(1) && unchanged.stderr.contains("stays held"), "{}", unchanged.stderr);
    let done = signalbox(&data_dir, &["hold", "edit", &id], &[("EDITOR", &editor("saved"))], "").await;
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert_eq!(said(call).await, "saved");
    let seen = std::fs::read_to_string(seen).unwrap();
    assert!(seen.starts_with("600\n{\n  \"jsonrpc\": \"2.0\",\n"), "{seen}");
}

#[tokio::test(flavor = "multi_thread")]
async fn held_messages_are_released_answered_refused_or_expire() {
    let (_gateway, data_dir, client) = scene().await;
    json_of(&data_dir, &["hold", "tool", "*"]).await;

    let call = echo(&client, "as it is");
    let id = held(&data_dir).await["id"].to_string();
    json_of(&data_dir, &["hold", "release", &id]).await;
    assert_eq!(said(call).await, "as it is");

    let call = echo(&client, "x");
    let id = held(&data_dir).await["id"].to_string();
    json_of(&data_dir, &["hold", "answer", &id, "--text", "in its place"]).await;
    assert_eq!(said(call).await, "in its place");

    let call = echo(&client, "x");
    let id = held(&data_dir).await["id"].to_string();
    json_of(&data_dir, &["hold", "refuse", &id, "--reason", "ask me first"]).await;
    assert_eq!(error(call).await.message, "ask me first");

    let cleared = signalbox(&data_dir, &["hold", "clear"], &[], "").await;
    assert_eq!(cleared.stdout, "1 breakpoints cleared\n");
    json_of(&data_dir, &["hold", "next", "--within", "200ms"]).await;
    let expired = error(echo(&client, "x")).await;
    assert_eq!(expired.data.unwrap()["reason"], "hold_expired");
    assert_eq!(said(echo(&client, "free")).await, "free");

    // Answers are held too.
    json_of(&data_dir, &["hold", "method", "tools/*", "--answers"]).await;
    let call = echo(&client, "an answer");
    let there = held(&data_dir).await;
    assert_eq!(
        (&there["phase"], &there["message"]["result"]["content"][0]["text"]),
        (&json!("response"), &json!("an answer"))
    );
    let result = json!({"content": [{"type": "text", "text": "another"}]}).to_string();
    json_of(&data_dir, &["hold", "edit", &there["id"].to_string(), "--result", &result]).await;
    assert_eq!(said(call).await, "another");
    let shown = signalbox(&data_dir, &["hold", "list"], &[], "").await.stdout;
    assert!(shown.contains("Nothing is held.") && shown.contains("answers to tools/*"), "{shown}");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_stays_held_for_a_client_that_leaves() {
    let (gateway, data_dir, client) = scene().await;
    json_of(&data_dir, &["hold", "tool", "*"]).await;

    // One that ends its session.
    let call = echo(&client, "x");
    held(&data_dir).await;
    call.abort();
    client.cancel().await.unwrap();
    nothing_held(&data_dir).await;

    // One of the new era that drops its connection.
    let stateless = HttpClient::new(gateway.address());
    let asking = tokio::spawn(async move {
        stateless.modern(1, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}})).await
    });
    held(&data_dir).await;
    asking.abort();
    nothing_held(&data_dir).await;

    // One that cancels its call, and stays.
    let session = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    let asking = {
        let session = session.clone();
        let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "x"}}});
        tokio::spawn(async move { session.post(&call.to_string()).await })
    };
    held(&data_dir).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}});
    session.post(&cancelled.to_string()).await.unwrap();
    nothing_held(&data_dir).await;
    drop(asking);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_ends_refuses_what_it_holds_and_waits_for_nobody() {
    let (mut gateway, data_dir, client) = scene().await;
    json_of(&data_dir, &["hold", "next", "--within", "1h"]).await;
    let call = echo(&client, "x");
    held(&data_dir).await;
    signal(gateway.process.pid().unwrap(), "TERM").await.unwrap();
    assert_eq!(error(call).await.message, "the gateway is shutting down");
    drop(client);
    let ended = gateway.process.wait(PATIENCE).await.unwrap();
    assert!(ended.success(), "{ended}");
    let gone = signalbox(&data_dir, &["hold", "list"], &[], "").await;
    assert!(gone.code == Some(1) && gone.stderr.contains("no signalbox is running"), "{}", gone.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_holds_too_and_the_right_process_is_found_among_several() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("data");
    let command = stdio_command(folder.path(), "").unwrap();
    let connect = async || {
        let mut child = Command::new(&command[0]);
        child.args(&command[1..]);
        let transport = TokioChildProcess::new(child).unwrap();
        Listener::default().serve_with_lifecycle(transport, ClientLifecycleMode::Initialize).await.unwrap()
    };
    let (one, two) = (connect().await, connect().await);
    let which = signalbox(&data_dir, &["hold", "next"], &[], "").await;
    assert!(which.code == Some(2) && which.stderr.contains("choose one with --pid"), "{}", which.stderr);
    let sessions = json_of(&data_dir, &["sessions", "list"]).await;
    let pid = sessions[1]["pid"].to_string();
    assert_eq!(sessions.as_array().unwrap().len(), 2);
    json_of(&data_dir, &["hold", "next", "--pid", &pid]).await;
    let calls = [echo(&one, "one"), echo(&two, "two")];
    let there = held(&data_dir).await;
    assert_eq!(there["pid"].to_string(), pid);
    json_of(&data_dir, &["hold", "release", &there["id"].to_string()]).await;
    let mut words = Vec::new();
    for call in calls {
        words.push(said(call).await);
    }
    assert_eq!(words, ["one", "two"]);
    one.cancel().await.unwrap();
    two.cancel().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn sessions_are_listed_shown_and_ended() {
    let (gateway, data_dir, client) = scene().await;
    json_of(&data_dir, &["hold", "next"]).await;
    let call = echo(&client, "x");
    held(&data_dir).await;
    let listed = json_of(&data_dir, &["sessions", "list"]).await;
    let id = listed[0]["id"].to_string();
    assert_eq!((&listed[0]["client"]["name"], &listed[0]["in_flight"]), (&json!("rmcp-holds"), &json!(1)), "{listed}");
    let shown = json_of(&data_dir, &["sessions", "show", &id]).await;
    assert_eq!(
        (&shown["calls"][0]["subject"], &shown["calls"][0]["backend"]),
        (&json!("echo"), &json!("demo")),
        "{shown}"
    );
    let table = signalbox(&data_dir, &["sessions", "show", &id], &[], "").await.stdout;
    assert!(table.contains("rmcp-holds 1") && table.contains("tools/call"), "{table}");

    let ended = signalbox(&data_dir, &["sessions", "end", &id], &[], "").await;
    assert_eq!(ended.stdout, format!("session {id} is ended\n"));
    nothing_held(&data_dir).await;
    let external = listed[0]["session"].as_str().unwrap();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let stale = HttpClient::new(gateway.address()).with("mcp-session-id", external);
    let answer = stale.send(Method::POST, "/mcp", ping.into()).await.unwrap();
    assert_eq!(answer.status, 404, "its client has to connect again");
    let again = signalbox(&data_dir, &["sessions", "end", &id], &[], "").await;
    assert!(again.code == Some(1) && again.stderr.contains("there is no session"), "{}", again.stderr);
    call.abort();
}

/// The SDK that most clients are made with: it gives up after the time it was told, but for progress.
#[tokio::test(flavor = "multi_thread")]
async fn the_typescript_sdk_waits_while_a_person_edits_its_call() {
    let gateway = GatewayProcess::serve("").await.unwrap();
    gateway.ready().await.unwrap();
    let data_dir = gateway.data_dir();
    let seconds: u64 = std::env::var("MCP_TEST_HOLD_SECONDS").ok().map_or(0, |seconds| seconds.parse().unwrap());
    json_of(&data_dir, &["hold", "tool", "echo", "--within", &format!("{}s", seconds + 50)]).await;
    let url = gateway.url();
    let client = tokio::spawn(async move {
        let (call, most) = (r#"echo={"text":"before"}"#, (seconds + 120).to_string());
        let arguments = ["ts-sdk1", "--url", &url, "--steps", "call", "--call", call, "--progress", "--timeout", &most];
        clients::run(&arguments).await
    });
    let waiting = async {
        let there = held(&data_dir).await;
        // A person may take minutes; script/prove does.
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        let params = json!({"name": "echo", "arguments": {"text": "edited"}}).to_string();
        json_of(&data_dir, &["hold", "edit", &there["id"].to_string(), "--params", &params]).await;
        std::future::pending::<()>().await
    };
    let document = tokio::select! {
        document = client => document.unwrap().unwrap(),
        () = waiting => unreachable!(),
    };
    let Some(document) = document else {
        println!("SKIP ts-sdk1: run script/install-test-deps");
        return;
    };
    assert_eq!(document["steps"]["call"][0]["result"]["content"][0]["text"], "edited", "{document:#}");
    assert!(document.to_string().contains("held: breakpoint 1"), "the client heard of it: {document:#}");
}

/// Runs `watch` on a terminal.
fn watch(terminal: &Terminal, data_dir: &Path, variables: &[(&str, &str)]) -> Child {
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["watch", "--data-dir"]).arg(data_dir).current_dir(data_dir);
    command.env_remove("NO_COLOR").env_remove("VISUAL").envs(variables.iter().copied());
    terminal.start(command).unwrap()
}

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

#[tokio::test(flavor = "multi_thread")]
async fn watch_shows_calls_on_a_terminal_decides_about_held_ones_and_gives_the_terminal_back() {
    let (_gateway, data_dir, client) = scene().await;
    let script = data_dir.join("editor.sh");
    std::fs::write(&script, "sed -i s/before/edited/ \"$1\"\n").unwrap();
    let terminal = Terminal::open().unwrap();
    let before = terminal.mode().unwrap();
    let mut watch = watch(&terminal, &data_dir, &[("EDITOR", &format!("sh {}", script.display()))]);
    terminal.shows("Nothing has passed yet.").await.unwrap();
    assert!(terminal.seen().contains(ENTER) && terminal.mode().unwrap() != before);
    said(echo(&client, "x")).await;
    terminal.shows("success").await.unwrap();
    let row = terminal.screen().lines().find(|line| line.contains("success")).unwrap().to_owned();
    assert!(row.contains("anonymous") && row.contains("echo") && row.contains("demo"), "{row}");

    terminal.press("n").unwrap();
    terminal.shows("the next tool call will be held").await.unwrap();
    let call = echo(&client, "x");
    terminal.shows("HELD 1 request echo").await.unwrap();
    terminal.press("ain its place\r").unwrap();
    assert_eq!(said(call).await, "in its place");
    terminal.shows("answer 1: done").await.unwrap();

    terminal.press("n").unwrap();
    terminal.shows("the next tool call will be held").await.unwrap();
    let call = echo(&client, "before");
    terminal.shows("HELD 2 request echo").await.unwrap();
    terminal.press("e").unwrap();
    assert_eq!(said(call).await, "edited");
    terminal.shows("edit 2: done").await.unwrap();
    assert_eq!(terminal.seen().matches(ENTER).count(), 2, "the editor had the terminal for itself");

    // It shows one call, and fits itself to another size.
    terminal.press("\r").unwrap();
    terminal.shows("request edited by breakpoint-2").await.unwrap();
    terminal.press("\u{1b}").unwrap();
    terminal.shows("enter detail").await.unwrap();
    terminal.resize(100, 12).unwrap();
    signal(watch.id().unwrap(), "WINCH").await.unwrap();
    let fits = async || terminal.screen().lines().nth(11).is_some_and(|line| line.contains("q quit")).then_some(());
    eventually("the last line of the smaller terminal", fits).await.unwrap();
    terminal.press("q").unwrap();
    let ended = tokio::time::timeout(PATIENCE, watch.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0), "{}", terminal.seen());
    eventually("the terminal is back", async || terminal.seen().trim_end().ends_with("\u{1b}[?25h").then_some(()))
        .await
        .unwrap();
    assert_eq!(terminal.mode().unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_gives_the_terminal_back_when_it_is_told_to_end_and_says_when_the_process_has() {
    let (mut gateway, data_dir, client) = scene().await;
    let terminal = Terminal::open().unwrap();
    let before = terminal.mode().unwrap();
    let mut watch = watch(&terminal, &data_dir, &[("NO_COLOR", "1")]);
    terminal.shows("Nothing has passed yet.").await.unwrap();
    drop(client);
    signal(gateway.process.pid().unwrap(), "TERM").await.unwrap();
    gateway.process.wait(PATIENCE).await.unwrap();
    terminal.shows("the process has ended").await.unwrap();
    let coloured = terminal.seen().contains("\u{1b}[31m") || terminal.seen().contains("\u{1b}[38;");
    assert!(!coloured, "{:?}", terminal.seen());
    signal(watch.id().unwrap(), "TERM").await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, watch.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));
    eventually("the terminal is back", async || terminal.seen().contains(LEAVE).then_some(())).await.unwrap();
    assert_eq!(terminal.mode().unwrap(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_without_a_terminal_is_a_line_of_json_for_each_fact() {
    let (gateway, data_dir, client) = scene().await;
    let mut command = Command::new(built("signalbox").unwrap());
    command.args(["watch", "--data-dir"]).arg(&data_dir).current_dir(&data_dir);
    let mut watch = Spawned::start(command).unwrap();
    watch.wait_line(r#"{"type":"watching""#, PATIENCE).await.unwrap();
    json_of(&data_dir, &["hold", "next"]).await;
    let call = echo(&client, "x");
    let id = held(&data_dir).await["id"].to_string();
    json_of(&data_dir, &["hold", "release", &id]).await;
    said(call).await;
    let facts = || -> Vec<Value> { watch.lines().iter().map(|line| serde_json::from_str(line).unwrap()).collect() };
    let find = async |what: &str, fits: &dyn Fn(&Value) -> bool| {
        eventually(what, async || facts().into_iter().find(|fact| fits(fact))).await.unwrap()
    };
    let finished = find("the end", &|fact| fact["type"] == "finished" && fact["subject"] == "echo").await;
    assert_eq!((&finished["outcome"], &finished["backend"]), (&json!("success"), &json!("demo")), "{finished}");
    for point in ["client to gateway", "gateway to backend", "backend to gateway", "gateway to client"] {
        let there = |fact: &Value| fact["point"] == point && fact["exchange"] == finished["exchange"];
        assert!(find(point, &there).await["body"].is_object());
    }
    let hold = find("the hold", &|fact| fact["verdict"] == "hold").await;
    let released = find("the release", &|fact| fact["verdict"] == "released").await;
    assert_eq!((&hold["by"], &hold["rule"]), (&json!("breakpoints"), &json!("breakpoint-1")), "{hold}");
    assert_eq!(released["inputs"][0][0], "person", "{released}");
    assert!(released["inputs"][0][1].as_str().unwrap().starts_with("ada (uid:"), "{released}");
    drop(client);
    gateway.stop().await.unwrap();
    assert!(watch.wait(PATIENCE).await.is_ok());
}
