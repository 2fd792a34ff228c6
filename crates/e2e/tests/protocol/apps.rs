//! Extensions between clients and servers, and what is declared while servers are down.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::clients;
use signalbox_testkit::events::EventStream;
use signalbox_testkit::fixture::ServedEra;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::ports::{free_address, refusing_address};
use signalbox_testkit::process::built;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_server::{Network, Options, start};
use signalbox_testkit::scene::{backend_status, child, eventually, lists_saved, pids, text, tool_names};
use std::time::Duration;

const UI: &str = "io.modelcontextprotocol/ui";
/// Real clients, each with the era that it is told to speak.
const CLIENTS: [(&str, &str); 6] = [
    ("ts-sdk1", "old"),
    ("py-mcp1", "old"),
    ("ts-client2", "old"),
    ("ts-client2", "new"),
    ("py-mcp2", "old"),
    ("py-mcp2", "new"),
];

async fn old_server() -> GatewayProcess {
    let program = json!(built("revision-server").unwrap().to_str().unwrap());
    let config =
        format!("[backends.only]\ncommand = {program}\nargs = [\"--stdio\", \"--revision\", \"2025-11-25\"]\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    lists_saved(&gateway.data_dir()).await.unwrap();
    gateway
}

fn apps() -> Value {
    json!({"extensions": {UI: {"mimeTypes": ["text/html;profile=mcp-app"]}}})
}

/// The capabilities that the server was shown for this call.
fn declared(answer: &Value) -> Value {
    let counts: Value = serde_json::from_str(&text(answer).unwrap()).unwrap();
    counts["declared"].clone()
}

async fn modern_counts(gateway: &GatewayProcess, capabilities: &Value) -> Value {
    let client = HttpClient::new(gateway.address())
        .with("mcp-protocol-version", "2026-07-28")
        .with("mcp-method", "tools/call")
        .with("mcp-name", "counts");
    let own = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": capabilities});
    let params = json!({"name": "counts", "arguments": {}, "_meta": own});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    declared(&client.post(&call.to_string()).await.unwrap().message().unwrap())
}

/// MCP Apps across eras. Clients that declare the same extensions share a process.
#[tokio::test(flavor = "multi_thread")]
async fn extensions_reach_old_servers_and_come_back() {
    let gateway = old_server().await;
    for _ in 0..2 {
        assert_eq!(modern_counts(&gateway, &apps()).await, apps());
    }
    for _ in 0..2 {
        let old = HttpClient::new(gateway.address()).initialize("2025-11-25", apps()).await.unwrap();
        let counts = old.request(2, "tools/call", json!({"name": "counts", "arguments": {}})).await.unwrap();
        assert_eq!(declared(&counts), apps());
    }
    assert_eq!(modern_counts(&gateway, &json!({})).await, json!({}));
    let backend = backend_status(&gateway.data_dir(), "only").await.unwrap();
    assert_eq!(pids(&backend).len(), 2, "one with the extension and one without: {backend}");

    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": apps(), "clientInfo": {"name": "t", "version": "1"}}});
    let greeting = HttpClient::new(gateway.address()).post(&hello.to_string()).await.unwrap().message().unwrap();
    assert_eq!(greeting["result"]["capabilities"]["extensions"], json!({UI: {}}), "{greeting}");
}

/// Clients that declare MCP Apps alone, and are told that an old server has them.
#[tokio::test(flavor = "multi_thread")]
async fn real_clients_and_old_servers_agree_on_apps() {
    let gateway = old_server().await;
    let url = gateway.url();
    for (client, era) in CLIENTS {
        let asked = ["--caps", "apps", "--steps", "call", "--call", "counts={}", "--url", &url];
        let Some(said) = clients::run(&[&[client, "--era", era], &asked[..]].concat()).await.unwrap() else { continue };
        let counts = json!({"result": said["steps"]["call"][0]["result"]});
        assert_eq!(declared(&counts), apps(), "{client} {era}: {said}");
        assert!(said["serverCapabilities"]["extensions"][UI].is_object(), "{client} {era}: {said}");
    }
}

/// Clients find the page of a tool whose name another server has.
#[tokio::test(flavor = "multi_thread")]
async fn real_clients_find_the_page_of_a_tool_whose_name_is_taken() {
    let both = [child("a", ServedEra::Old, "").unwrap(), child("b", ServedEra::Old, "").unwrap()].concat();
    let gateway = GatewayProcess::serve(&both).await.unwrap();
    lists_saved(&gateway.data_dir()).await.unwrap();
    let (url, page) = (gateway.url(), "ui://b+fixture/panel");
    for (client, era) in CLIENTS {
        let asked = ["--caps", "apps", "--tool", "b__ui_tool", "--read", page, "--url", &url];
        let Some(said) = clients::run(&[&[client, "--era", era], &asked[..]].concat()).await.unwrap() else { continue };
        let meta = &said["steps"]["tools"]["rawTool"]["_meta"];
        assert_eq!(
            (&meta["ui"]["resourceUri"], &meta["ui/resourceUri"]),
            (&json!(page), &json!(page)),
            "{client} {era}: {meta}"
        );
        let read = &said["steps"]["read"][0]["result"]["contents"][0];
        assert_eq!(read["uri"], page, "{client} {era}: {read}");
        assert!(read["text"].as_str().is_some_and(|text| text.contains("A panel.")), "{client} {era}: {read}");
    }
}

async fn is_down(gateway: &GatewayProcess, name: &str) {
    let down = async || {
        let backend = backend_status(&gateway.data_dir(), name).await.ok()?;
        (backend["state"] == "down").then_some(())
    };
    eventually("the backend is down", down).await.unwrap();
}

/// SDK 2.x never asks for lists that `initialize` did not declare.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_servers_are_all_down_declares_what_may_come() {
    let address = free_address().unwrap();
    let config = format!("[backends.late]\nurl = \"http://{address}/mcp\"\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    is_down(&gateway, "late").await;
    let greeting = HttpClient::new(gateway.address()).post(&hello.to_string()).await.unwrap().message().unwrap();
    assert_eq!(greeting["result"]["capabilities"]["tools"]["listChanged"], true, "{greeting}");

    let client = HttpClient::new(gateway.address()).initialize("2025-11-25", json!({})).await.unwrap();
    let mut stream = EventStream::general(&client).await.unwrap();
    let _server = start(&Options::of(Revision::R4), Network::Http, address).await.unwrap();
    stream.notification("notifications/tools/list_changed").await.unwrap();
    assert!(tool_names(&client).await.unwrap().contains(&"echo".to_owned()));
}

/// Real clients that connect while every server is down list the tools of the one that comes 11 s later.
#[tokio::test(flavor = "multi_thread")]
async fn real_clients_list_the_tools_of_a_server_that_comes_eleven_seconds_late() {
    let ((held, late), (_held, never)) = (refusing_address().unwrap(), refusing_address().unwrap());
    let config =
        format!("[backends.late]\nurl = \"http://{late}/mcp\"\n[backends.never]\nurl = \"http://{never}/mcp\"\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    is_down(&gateway, "late").await;
    is_down(&gateway, "never").await;
    let url = gateway.url();
    let asking = CLIENTS.map(|(client, era)| {
        let url = url.clone();
        tokio::spawn(async move {
            let asked = ["--era", era, "--steps", "tools,listchanged", "--await-tools", "--url", &url];
            (client, era, clients::run(&[&[client], &asked[..]].concat()).await.unwrap())
        })
    });
    tokio::time::sleep(Duration::from_secs(11)).await;
    drop(held);
    let _server = start(&Options::of(Revision::R4), Network::Http, late).await.unwrap();
    for one in asking {
        let (client, era, said) = one.await.unwrap();
        let Some(said) = said else { continue };
        assert_eq!(said["serverCapabilities"]["tools"]["listChanged"], true, "{client} {era}: {said}");
        let names = said["steps"]["tools"]["names"].as_array().unwrap_or_else(|| panic!("{client} {era}: {said}"));
        assert!(names.contains(&json!("echo")), "{client} {era}: {said}");
    }
}
