//! Extensions between clients and servers, and what is declared while servers are down.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use serde_json::{Value, json};
use signalbox_testkit::events::EventStream;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::HttpClient;
use signalbox_testkit::ports::free_address;
use signalbox_testkit::process::built;
use signalbox_testkit::revision::Revision;
use signalbox_testkit::revision_server::{Network, Options, start};
use signalbox_testkit::scene::{backend_status, lists_saved, pids, text, tool_names};

const UI: &str = "io.modelcontextprotocol/ui";

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

/// Issue 32, point 10: MCP Apps across eras. Clients that declare the same extensions share a process.
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

/// Issue 32, point 11: SDK 2.x never asks for lists that `initialize` did not declare.
#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_whose_servers_are_all_down_declares_what_may_come() {
    let address = free_address().unwrap();
    let config = format!("[backends.late]\nurl = \"http://{address}/mcp\"\n");
    let gateway = GatewayProcess::serve(&config).await.unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let down = async || {
        let backend = backend_status(&gateway.data_dir(), "late").await.ok()?;
        (backend["state"] == "down").then_some(())
    };
    signalbox_testkit::scene::eventually("the backend is down", down).await.unwrap();
    let greeting = HttpClient::new(gateway.address()).post(&hello.to_string()).await.unwrap().message().unwrap();
    assert_eq!(greeting["result"]["capabilities"]["tools"]["listChanged"], true, "{greeting}");

    let client = HttpClient::new(gateway.address()).initialize("2025-11-25", json!({})).await.unwrap();
    let mut stream = EventStream::general(&client).await.unwrap();
    let _server = start(&Options::of(Revision::R4), Network::Http, address).await.unwrap();
    stream.notification("notifications/tools/list_changed").await.unwrap();
    assert!(tool_names(&client).await.unwrap().contains(&"echo".to_owned()));
}
