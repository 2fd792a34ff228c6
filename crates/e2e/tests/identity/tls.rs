//! TLS as others see it: certificates and connections of `openssl`, clients and servers of the public SDKs.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed step is a failed test")]

mod backends;
mod certificates;
mod clients;
mod front;
mod tapes;

use serde_json::{Value, json};
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::openssl::{Authority, Issued, https};
use std::net::SocketAddr;

/// The head of a POST to the MCP endpoint.
const POST: &str =
    "POST /mcp HTTP/1.1\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream";

/// A front with this certificate and more lines about its TLS.
fn front(issued: &Issued, more: &str) -> String {
    format!("[mcp.protocol.transport.tls]\nenabled = true\n{}{more}\n", issued.lines())
}

/// `ca_file` with the authority's certificate.
fn ca_file(authority: &Authority) -> String {
    format!("ca_file = {:?}\n", authority.ca())
}

/// A gateway with the demo tools behind TLS.
async fn demo(authority: &Authority, more: &str) -> GatewayProcess {
    let issued = authority.local("server").await.unwrap();
    GatewayProcess::serve(&front(&issued, more)).await.unwrap()
}

/// Options of `s_client` that trust the authority.
fn trusting(authority: &Authority) -> Vec<String> {
    vec!["-CAfile".to_owned(), authority.ca_text()]
}

/// The same with a certificate of the client's own.
fn showing(authority: &Authority, issued: &Issued) -> Vec<String> {
    let mut options = trusting(authority);
    for (name, file) in [("-cert", &issued.cert), ("-key", &issued.key)] {
        options.extend([name.to_owned(), file.to_string_lossy().into_owned()]);
    }
    options
}

/// Sends a message; the answer's head and body.
async fn post(address: SocketAddr, options: &[String], session: Option<&str>, message: &Value) -> (String, String) {
    let session = session.map(|id| format!("\r\nmcp-session-id: {id}")).unwrap_or_default();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let seen = https(address, &options, &format!("{POST}{session}"), &message.to_string()).await.unwrap();
    let (head, body) = seen.text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {seen:?}"));
    (head.to_owned(), body.to_owned())
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-06-18",
        "capabilities": {}, "clientInfo": {"name": "s_client", "version": "3"}}})
}

/// Opens a session; its id.
async fn open(address: SocketAddr, options: &[String]) -> String {
    let (head, body) = post(address, options, None, &initialize()).await;
    let id = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: "));
    let id = id.unwrap_or_else(|| panic!("no session: {head}\n{body}")).to_owned();
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let (head, _) = post(address, options, Some(&id), &initialized).await;
    assert!(head.starts_with("HTTP/1.1 202"), "{head}");
    id
}

async fn echo(address: SocketAddr, options: &[String], session: &str) -> (String, String) {
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo",
        "arguments": {"text": "through TLS"}}});
    post(address, options, Some(session), &call).await
}
