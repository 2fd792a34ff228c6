//! The Rust client `rmcp`, unmodified, through the gateway to two fixture servers that offer the same things: one child
//! process and one over HTTP.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, GetPromptRequestParams, Implementation,
    ProgressNotificationParam, ProtocolVersion, ReadResourceRequestParams,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RunningService};
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, RoleClient};
use serde::Serialize;
use serde_json::{Value, json};
use signalbox_testkit::fixture::http::{RunningFixture, start};
use signalbox_testkit::fixture::{Options, ServedEra};
use signalbox_testkit::gateway::{GatewayProcess, stdio_command};
use signalbox_testkit::scene::child;
use tokio::process::Command;

/// How long everything a client does may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// What both servers offer among other things, in the order in which the gateway lists it.
const TOOLS: [&str; 4] = ["count", "slow", "test_simple_text", "whoami"];
const PROMPT: &str = "test_prompt_with_arguments";
const RESOURCE: &str = "test://static-text";

type Client = RunningService<RoleClient, Listener>;

/// What the client of a test is called, and the progress it heard of.
#[derive(Clone, Default)]
struct Listener {
    heard: Arc<Mutex<Vec<ProgressNotificationParam>>>,
}

impl ClientHandler for Listener {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(ClientCapabilities::default(), Implementation::new("rmcp-test", "1"))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _context: NotificationContext<RoleClient>) {
        self.heard.lock().unwrap().push(params);
    }
}

/// The servers behind the gateway, which end when this is dropped.
struct Servers {
    config: String,
    _web: RunningFixture,
}

/// A child process named `left` and a server over HTTP named `right`.
async fn servers(era: ServedEra) -> Servers {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let web = start(anywhere, Options { era, name: "right".to_owned() }).await.unwrap();
    let config = format!("{}[backends.right]\nurl = \"{}\"\n", child("left", era, "").unwrap(), web.url());
    Servers { config, _web: web }
}

fn lifecycle(version: &ProtocolVersion) -> ClientLifecycleMode {
    if version.has_initialize() {
        ClientLifecycleMode::Initialize
    } else {
        ClientLifecycleMode::Discover { preferred_versions: vec![version.clone()] }
    }
}

async fn over_http(gateway: &GatewayProcess, version: &ProtocolVersion) -> Client {
    let transport = StreamableHttpClientTransport::from_uri(gateway.url());
    Listener::default().serve_with_lifecycle(transport, lifecycle(version)).await.unwrap()
}

async fn over_stdio(command: &[String], version: &ProtocolVersion) -> Client {
    let mut child = Command::new(&command[0]);
    child.args(&command[1..]);
    let transport = TokioChildProcess::new(child).unwrap();
    Listener::default().serve_with_lifecycle(transport, lifecycle(version)).await.unwrap()
}

/// A part of a result, found as it stands on the wire.
fn at(result: &impl Serialize, pointer: &str) -> Value {
    let document = serde_json::to_value(result).unwrap();
    document.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in {document:#}")).clone()
}

/// Calls a tool and returns the text it answers with.
async fn text(client: &Client, tool: &str, arguments: &Value) -> String {
    let arguments = arguments.as_object().cloned().unwrap();
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    let result = client.call_tool(params).await.unwrap();
    at(&result, "/content/0/text").as_str().unwrap().to_owned()
}

/// The names that come twice, once for each server: plain for the first, qualified for the second.
fn check_prefixed(names: &[String], some: &[&str]) {
    let (left, right) = names.split_at(names.len() / 2);
    let bare = |names: &[String], prefix: &str| -> Vec<String> {
        let strip = |name: &String| name.strip_prefix(prefix).map(str::to_owned);
        names.iter().map(|name| strip(name).unwrap_or_else(|| panic!("no {prefix} in {name}"))).collect()
    };
    let (left, right) = (left.to_vec(), bare(right, "right__"));
    assert_eq!(left, right);
    for name in some {
        assert!(left.iter().any(|known| known == name), "no {name} in {left:?}");
    }
}

async fn check_tools(client: &Client) {
    let tools = client.list_all_tools().await.unwrap();
    let names: Vec<String> = tools.iter().map(|tool| tool.name.to_string()).collect();
    check_prefixed(&names, &TOOLS);
    for (prefix, transport) in [("left", "stdio"), ("right", "http")] {
        let who = text(client, &format!("{prefix}__whoami"), &json!({})).await;
        let who: Value = serde_json::from_str(&who).unwrap();
        assert_eq!((&who["name"], &who["transport"]), (&json!(prefix), &json!(transport)));
    }
}

async fn check_prompts(client: &Client) {
    let prompts = client.list_all_prompts().await.unwrap();
    let names: Vec<String> = prompts.into_iter().map(|prompt| prompt.name).collect();
    check_prefixed(&names, &[PROMPT]);
    for prefix in ["left", "right"] {
        let arguments = json!({ "arg1": prefix, "arg2": "b" });
        let params = GetPromptRequestParams::new(format!("{prefix}__{PROMPT}"));
        let params = params.with_arguments(arguments.as_object().cloned().unwrap());
        let result = client.get_prompt(params).await.unwrap();
        let wanted = format!("Prompt with arguments: arg1='{prefix}', arg2='b'");
        assert_eq!(at(&result, "/messages/0/content/text"), wanted);
    }
}

async fn check_resources(client: &Client) {
    let resources = client.list_all_resources().await.unwrap();
    let listed: Vec<&str> = resources.iter().map(|resource| resource.uri.as_str()).collect();
    // The first server keeps its addresses; the second one's begin with its name.
    for uri in [RESOURCE.to_owned(), format!("right+{RESOURCE}")] {
        assert_eq!(listed.iter().filter(|known| **known == uri).count(), 1, "{uri} in {listed:?}");
        let result = client.read_resource(ReadResourceRequestParams::new(uri.clone())).await.unwrap();
        assert_eq!(at(&result, "/contents/0/uri"), uri);
        assert_eq!(at(&result, "/contents/0/text"), "This is the content of the static text resource.");
    }
}

/// A call that reports its progress: every step arrives, in order, under the token of that call.
async fn check_progress(client: &Client) {
    for prefix in ["left", "right"] {
        client.service().heard.lock().unwrap().clear();
        let answer = text(client, &format!("{prefix}__slow"), &json!({ "ms": 300 })).await;
        assert_eq!(answer, "slept 300 ms");
        // Notifications are handed over one by one beside the answer, which may overtake the last of them.
        let heard = tokio::time::timeout(Duration::from_secs(5), heard(client, 10)).await.unwrap_or_else(|_| {
            let heard = client.service().heard.lock().unwrap();
            panic!("{prefix}: only {heard:?}")
        });
        let mut steps: Vec<f64> = heard.iter().map(|step| step.progress).collect();
        steps.sort_by(f64::total_cmp);
        assert_eq!(steps, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0], "{prefix}");
        assert!(heard.iter().all(|step| step.progress_token == heard[0].progress_token), "{prefix}: {heard:?}");
        assert!(heard.iter().all(|step| step.total == Some(10.0)), "{prefix}: {heard:?}");
    }
}

/// The progress heard of, once it is as much as this.
async fn heard(client: &Client, wanted: usize) -> Vec<ProgressNotificationParam> {
    loop {
        let heard = client.service().heard.lock().unwrap().clone();
        if heard.len() >= wanted {
            return heard;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Everything the client must see and be able to do.
async fn check(version: &ProtocolVersion, client: Client) {
    let checks = async {
        assert_eq!(client.peer_info().unwrap().protocol_version, *version);
        check_tools(&client).await;
        check_prompts(&client).await;
        check_resources(&client).await;
        check_progress(&client).await;
        client.cancel().await.unwrap();
    };
    tokio::time::timeout(PATIENCE, checks).await.unwrap_or_else(|_| panic!("{version}: not in time"));
}

async fn check_http(version: ProtocolVersion, backends: ServedEra) {
    let servers = servers(backends).await;
    let gateway = GatewayProcess::serve(&servers.config).await.unwrap();
    let client = over_http(&gateway, &version).await;
    check(&version, client).await;
}

async fn check_stdio(version: ProtocolVersion, backends: ServedEra) {
    let servers = servers(backends).await;
    let folder = tempfile::tempdir().unwrap();
    let command = stdio_command(folder.path(), &servers.config).unwrap();
    let client = over_stdio(&command, &version).await;
    check(&version, client).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rmcp_of_the_old_era_over_http() {
    check_http(ProtocolVersion::V_2025_11_25, ServedEra::Both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rmcp_of_the_new_era_over_http() {
    check_http(ProtocolVersion::V_2026_07_28, ServedEra::Both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rmcp_of_the_old_era_over_http_to_servers_of_the_new() {
    check_http(ProtocolVersion::V_2025_11_25, ServedEra::New).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rmcp_of_the_new_era_over_http_to_servers_of_the_old() {
    check_http(ProtocolVersion::V_2026_07_28, ServedEra::Old).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rmcp_of_the_old_era_over_stdio() {
    check_stdio(ProtocolVersion::V_2025_11_25, ServedEra::Both).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rmcp_of_the_new_era_over_stdio() {
    check_stdio(ProtocolVersion::V_2026_07_28, ServedEra::Both).await;
}
