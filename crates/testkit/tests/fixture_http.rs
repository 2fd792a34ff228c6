//! The fixture over HTTP: who is let in, and what a lost connection means.
#![expect(clippy::unwrap_used, reason = "a failed step is a failed test")]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use serde_json::{Value, json};
use signalbox_testkit::fixture::http::{RunningFixture, start};
use signalbox_testkit::fixture::{Options, ServedEra};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

async fn fixture(era: ServedEra) -> RunningFixture {
    let anywhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    start(anywhere, Options { era, ..Options::default() }).await.unwrap()
}

fn authority(server: &RunningFixture) -> String {
    server.url().trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
}

async fn open(server: &RunningFixture, headers: &str, body: &Value) -> TcpStream {
    let host = authority(server);
    let body = body.to_string();
    let length = body.len();
    let mut stream = TcpStream::connect(&host).await.unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    stream
}

/// The whole answer, from the status line on.
async fn post(server: &RunningFixture, headers: &str, body: &Value) -> String {
    let mut stream = open(server, headers, body).await;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

fn modern(tool: &str, arguments: Value) -> (String, Value) {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let headers = format!("mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: {tool}\r\n");
    (headers, json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }))
}

fn initialize() -> Value {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
}

#[tokio::test]
async fn an_old_server_refuses_the_new_wire_in_old_words() {
    let server = fixture(ServedEra::Old).await;
    let (headers, body) = modern("count", json!({}));
    let answer = post(&server, &headers, &body).await;
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert!(answer.contains("-32000"), "{answer}");
    let answer = post(&server, "", &initialize()).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.contains("mcp-session-id: "), "{answer}");
}

#[tokio::test]
async fn a_new_server_refuses_the_old_wire() {
    let server = fixture(ServedEra::New).await;
    let answer = post(&server, "", &initialize()).await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
    assert!(answer.contains("-32601"), "{answer}");
    let (headers, body) = modern("count", json!({}));
    let answer = post(&server, &headers, &body).await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[tokio::test]
async fn a_server_of_both_eras_takes_both() {
    let server = fixture(ServedEra::Both).await;
    let (headers, body) = modern("whoami", json!({}));
    let answer = post(&server, &headers, &body).await;
    assert!(answer.contains(r#"\"protocol\":\"2026-07-28\""#), "{answer}");
    let answer = post(&server, "", &initialize()).await;
    assert!(answer.contains("mcp-session-id: "), "{answer}");
}

#[tokio::test]
async fn a_strange_page_is_turned_away() {
    let server = fixture(ServedEra::Both).await;
    let answer = post(&server, "origin: http://evil.example\r\n", &initialize()).await;
    assert!(answer.starts_with("HTTP/1.1 403"), "{answer}");
}

#[tokio::test]
async fn a_client_that_hangs_up_has_cancelled() {
    let server = fixture(ServedEra::New).await;
    let (headers, body) = modern("slow", json!({ "ms": 60_000 }));
    let stream = open(&server, &headers, &body).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(stream);
    let (headers, body) = modern("cancelled_count", json!({}));
    for _ in 0..100 {
        if post(&server, &headers, &body).await.contains(r#""text":"1""#) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the cancellation was not noticed");
}
