//! Hostile input to the real binary: at both fronts, in headers, slowly, and from backends. Nothing may panic, hang or
//! leak into somebody else's answer, and the next valid request always works.
//!
//! `MCP_TEST_MUTATIONS` sets how many mutated messages each front gets; `script/prove` asks for 100,000.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this is a test, its helpers too"
)]

mod backends;
mod differential;
mod escapes;
mod headers;
mod hostile_http;
mod mutate;
mod mutations;
mod newlines;
mod pipe;
mod raw;
mod slow;
mod smuggling;
mod suite;

use raw::Raw;
use serde_json::json;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::process::built;

/// How many mutated messages somebody asked for.
fn asked_for() -> Option<usize> {
    std::env::var("MCP_TEST_MUTATIONS").ok()?.parse().ok()
}

/// A config with the fixture server as a stdio backend.
fn fixture_config() -> String {
    let server = json!(built("fixture-server").unwrap().to_str().unwrap());
    format!("[backends.fix]\ncommand = {server}\nargs = [\"--stdio\"]\ntimeout = 5\n")
}

/// A gateway in front of the fixture server.
async fn gateway() -> GatewayProcess {
    let gateway = GatewayProcess::serve(&fixture_config()).await.unwrap();
    gateway.ready().await.unwrap();
    gateway
}

/// Opens a session of the old era; the header lines that belong to it.
async fn session(client: &mut Raw) -> String {
    let hello = br#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#;
    let reply = client.post("", hello).await.unwrap();
    let id = reply.header("mcp-session-id").expect("a session").to_owned();
    let lines = format!("mcp-session-id: {id}\r\nmcp-protocol-version: 2025-06-18\r\n");
    let ready = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(client.post(&lines, ready).await.unwrap().status, 202);
    lines
}

/// A valid call of a tool in a session works.
async fn works(client: &mut Raw, lines: &str) {
    let call = br#"{"jsonrpc":"2.0","id":"works","method":"tools/call","params":{"name":"test_simple_text"}}"#;
    let reply = client.post(lines, call).await.unwrap();
    let message = reply.messages().unwrap().pop().unwrap();
    assert_eq!((reply.status, &message["id"]), (200, &json!("works")), "{message}");
    assert!(message["result"]["content"].is_array(), "{message}");
}

/// Resident memory of a process, in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a size");
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// The process lives and never panicked.
fn unharmed(gateway: &GatewayProcess) {
    let pid = gateway.process.pid().expect("the gateway lives");
    assert!(memory(pid) > 0);
    no_panic(&gateway.process.error_lines().join("\n"));
}

fn no_panic(errors: &str) {
    assert!(!errors.contains("panicked"), "{errors}");
}
