//! Ways in that lie outside of the sans-IO core: batches, tapes that answer in place of a server, event streams
//! that are resumed, and the command line. What can be used is listed and what is listed can be used, for random roles
//! from fixed seeds. `crates/govern/tests/entry_points` has the property over random policies, catalogs and callers.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::process::built;
use signalbox_testkit::scene::{call, child, eventually, signalbox, tool_names};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use tokio::process::Command;

/// Tools that answer at once, with arguments that they take.
fn tools() -> Vec<(&'static str, Value)> {
    vec![
        ("greet", json!({"name": "Ada"})),
        ("count", json!({})),
        ("big", json!({"bytes": 3})),
        ("slow", json!({"ms": 1})),
        ("touch_resource", json!({})),
        ("test_x_mcp_header", json!({"region": "here"})),
    ]
}

/// Numbers that look random and are the same each time.
struct Seeded(u64);

impl Seeded {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 33
    }

    fn coin(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }
}

/// A random role: it allows some tools, or denies some of all.
fn role(seed: u64) -> String {
    let mut dice = Seeded(0x9E37_79B9_7F4A_7C15 ^ (seed << 20));
    let names: Vec<_> = tools().into_iter().filter(|_| dice.coin()).map(|(name, _)| format!("one/{name}")).collect();
    let some = json!(names);
    if dice.coin() {
        format!("[roles.some]\nallow = ['one/nothing', {}\n", some.to_string().trim_start_matches('['))
    } else {
        format!("[roles.some]\ndeny = {some}\n")
    }
    .replace("'one/nothing', ]", "'one/nothing']")
}

fn config(role: &str, backend: &str) -> String {
    format!(
        "[mcp.protocol.security]\nrequire_authentication = true\n{role}[auth.users.'key:ada']\nroles = ['some']\n{backend}"
    )
}

async fn key(gateway: &GatewayProcess, name: &str) -> String {
    signalbox(&gateway.data_dir(), &["keys", "new", name]).await.unwrap().trim().to_owned()
}

/// A session of ada.
async fn session(gateway: &GatewayProcess, version: &str) -> (HttpClient, String) {
    let key = key(gateway, "ada").await;
    let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let begin = async || client.clone().initialize(version, json!({})).await.ok();
    (eventually("the key is known", begin).await.unwrap(), key)
}

async fn reload(gateway: &GatewayProcess, config: &str) {
    std::fs::write(gateway.config_file(), config).unwrap();
    signalbox(&gateway.data_dir(), &["reload"]).await.unwrap();
}

fn unnamed(answer: &Value, name: &str) -> String {
    let mut answer = answer.clone();
    answer["id"] = json!(0);
    answer.to_string().replace(name, "NAME")
}

/// Holds the answer to a call against what is listed.
fn check(name: &str, listed: &BTreeSet<String>, answer: &Value, nothing: &Value, place: &str) {
    if listed.contains(name) {
        assert!(answer["result"].is_object(), "{place}: {name} is listed, and answered with {answer}");
    } else {
        assert_eq!(unnamed(answer, name), unnamed(nothing, "nothing"), "{place}: {name} is not listed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_call_of_a_batch_is_judged_alone() {
    let backend = child("one", ServedEra::Old, "").unwrap();
    let gateway = GatewayProcess::serve(&config("[roles.some]\n", &backend)).await.unwrap();
    gateway.ready().await.unwrap();
    let (ada, _) = session(&gateway, "2025-03-26").await;
    let (mut used, mut hidden) = (0, 0);
    for seed in 1..=6 {
        let role = role(seed);
        reload(&gateway, &config(&role, &backend)).await;
        let listed: BTreeSet<String> = tool_names(&ada).await.unwrap().into_iter().collect();
        let mut calls: Vec<_> = (1..).zip(tools()).map(|(id, (name, arguments))| call(id, name, &arguments)).collect();
        calls.push(call(99, "nothing", &json!({})));
        let answers = ada.post(&json!(calls).to_string()).await.unwrap().messages().unwrap();
        let answers: Vec<Value> = match &answers[..] {
            [Value::Array(all)] => all.clone(),
            events => events.to_vec(),
        };
        let of = |id: u64| answers.iter().find(|answer| answer["id"] == id).unwrap();
        for (id, (name, _)) in (1..).zip(tools()) {
            check(name, &listed, of(id), of(99), &role);
            *if listed.contains(name) { &mut used } else { &mut hidden } += 1;
        }
    }
    assert!(used > 5 && hidden > 5, "the roles tell nothing apart: {used} {hidden}");
}

/// A tape on which every tool was called once.
async fn recorded(folder: &Path) -> PathBuf {
    let gateway = GatewayProcess::serve(&child("one", ServedEra::Old, "").unwrap()).await.unwrap();
    gateway.ready().await.unwrap();
    let client = HttpClient::new(gateway.address()).initialize("2025-06-18", json!({})).await.unwrap();
    assert!(!tool_names(&client).await.unwrap().is_empty());
    for (id, (name, arguments)) in (1..).zip(tools()) {
        let answer = client.post(&call(id, name, &arguments).to_string()).await.unwrap().message().unwrap();
        assert!(answer["result"].is_object(), "{answer}");
    }
    let (data, tape) = (gateway.data_dir(), folder.join("talk.tape"));
    let whole = async || {
        let listed = signalbox(&data, &["tape", "show", "last", "--json"]).await.ok()?;
        listed.contains("test_x_mcp_header").then_some(())
    };
    eventually("the calls are on the tape", whole).await.unwrap();
    signalbox(&data, &["tape", "export", "last", "-o", tape.to_str().unwrap()]).await.unwrap();
    tape
}

/// A tape stands in for a server behind the same permissions: what is hidden is unknown, though the tape has an answer.
/// The command line calls as the holder of its key.
#[tokio::test(flavor = "multi_thread")]
async fn a_tape_answers_only_what_is_listed_and_so_does_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let tape = recorded(folder.path()).await;
    for seed in [2, 5] {
        let role = role(seed);
        let backend = format!("[backends.one]\ntape = {}\n", json!(tape.to_str().unwrap()));
        let gateway = GatewayProcess::serve(&config(&role, &backend)).await.unwrap();
        gateway.ready().await.unwrap();
        let (ada, key) = session(&gateway, "2025-06-18").await;
        let listed: BTreeSet<String> = tool_names(&ada).await.unwrap().into_iter().collect();
        assert!(tools().iter().any(|(name, _)| listed.contains(*name)), "{role}");
        assert!(tools().iter().any(|(name, _)| !listed.contains(*name)), "{role}");
        let nothing = ada.request(99, "tools/call", json!({"name": "nothing", "arguments": {}})).await.unwrap();
        for (id, (name, arguments)) in (1..).zip(tools()) {
            let answer = ada.request(id, "tools/call", json!({"name": name, "arguments": arguments})).await.unwrap();
            check(name, &listed, &answer, &nothing, &role);
        }
        let url = format!("http://{}/mcp", gateway.address());
        for (name, _) in tools().into_iter().filter(|(name, _)| !listed.contains(*name)) {
            let words = ["tools", "call", name, "--url", &url, "--key", &key];
            let mut command = Command::new(built("signalbox").unwrap());
            let ran = command.args(words).current_dir(folder.path()).kill_on_drop(true).output().await.unwrap();
            let told = format!("{} {}", String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
            assert!(!ran.status.success() && told.contains("Unknown tool"), "{name}: {told}");
        }
    }
}

/// A general stream, read as text.
struct Stream {
    response: http::Response<hyper::body::Incoming>,
    text: String,
}

impl Stream {
    /// Opens it, behind the event of this id if one is given.
    async fn open(client: &HttpClient, after: Option<&str>) -> Self {
        let mut client = client.clone().with("accept", "text/event-stream");
        if let Some(after) = after {
            client = client.with("last-event-id", after);
        }
        let response = client.open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
        assert_eq!(response.status(), 200);
        Self { response, text: String::new() }
    }

    /// Reads until this text came.
    async fn until(&mut self, wanted: &str) {
        while !self.text.contains(wanted) {
            let frame = self.response.body_mut().frame().await.unwrap().unwrap();
            write!(self.text, "{}", String::from_utf8_lossy(&frame.into_data().unwrap_or_default())).unwrap();
        }
    }

    /// The id of the last event.
    fn last_id(&self) -> Option<String> {
        self.text.lines().rev().find_map(|line| line.strip_prefix("id:")).map(|id| id.trim().to_owned())
    }
}

const WITHDRAWN: &str = "test://watched-resource";
const KEPT: &str = "test://static-text";

/// A subscriber that may no longer read a resource hears nothing of it, on its stream or on a resumed one.
#[tokio::test(flavor = "multi_thread")]
async fn changes_of_a_resource_are_not_told_once_its_permission_is_withdrawn() {
    let backend = child("one", ServedEra::Old, "").unwrap();
    for resumed in [false, true] {
        let gateway = GatewayProcess::serve(&config("[roles.some]\n", &backend)).await.unwrap();
        gateway.ready().await.unwrap();
        let (ada, _) = session(&gateway, "2025-11-25").await;
        assert!(!tool_names(&ada).await.unwrap().is_empty());
        let mut stream = Stream::open(&ada, None).await;
        for uri in [WITHDRAWN, KEPT] {
            let told = ada.request(1, "resources/subscribe", json!({"uri": uri})).await.unwrap();
            assert!(told["result"].is_object(), "{told}");
        }
        let touch = async |uri: &str| {
            let told = ada.post(&call(2, "touch_resource", &json!({"uri": uri})).to_string()).await.unwrap();
            assert!(told.message().unwrap()["result"].is_object());
        };
        for uri in [WITHDRAWN, KEPT] {
            touch(uri).await;
            stream.until(uri).await;
        }
        let last = stream.last_id();
        if resumed {
            drop(stream);
            stream = Stream::open(&ada, last.as_deref()).await;
        }
        reload(&gateway, &config(&format!("[roles.some]\ndeny = ['one/{WITHDRAWN}']\n"), &backend)).await;
        stream.text.clear();
        for _ in 0..2 {
            touch(WITHDRAWN).await;
            stream.text.clear();
            touch(KEPT).await;
            stream.until(KEPT).await;
            assert!(!stream.text.contains(WITHDRAWN), "resumed {resumed}: {}", stream.text);
        }
        let again = ada.request(3, "resources/subscribe", json!({"uri": WITHDRAWN})).await.unwrap();
        assert!(again["error"].is_object(), "{again}");
    }
}

/// A hidden tool that mirrors arguments into headers is answered as one that does not exist, whatever its headers say.
#[tokio::test(flavor = "multi_thread")]
async fn a_hidden_tool_with_mirrored_arguments_is_answered_as_unknown() {
    let backend = child("one", ServedEra::Both, "").unwrap();
    let denied = config("[roles.some]\ndeny = ['one/test_x_mcp_header']\n", &backend);
    let gateway = GatewayProcess::serve(&config("[roles.some]\n", &backend)).await.unwrap();
    gateway.ready().await.unwrap();
    let (_, key) = session(&gateway, "2025-06-18").await;
    let client = HttpClient::new(gateway.address()).with("authorization", &format!("Bearer {key}"));
    let call = async |name: &str| {
        let arguments = json!({"region": "here"});
        let answer = client.modern(1, "tools/call", json!({"name": name, "arguments": arguments})).await.unwrap();
        (answer.status, answer.message().unwrap())
    };
    let (status, shown) = call("test_x_mcp_header").await;
    assert_eq!((status, &shown["error"]["data"]["reason"]), (400, &json!("header_mismatch")), "{shown}");
    reload(&gateway, &denied).await;
    let (hidden, nothing) = (call("test_x_mcp_header").await, call("nothing").await);
    assert_eq!(hidden.0, nothing.0);
    assert_eq!(unnamed(&hidden.1, "test_x_mcp_header"), unnamed(&nothing.1, "nothing"));
}
