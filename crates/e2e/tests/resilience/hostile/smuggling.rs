//! Requests hidden behind or inside other requests are never served.

use super::raw::Raw;
use super::{gateway, session, unharmed, works};
use std::time::Duration;

const HEAD: &str = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\naccept: application/json, text/event-stream\r\n";

/// The request that must never be served: it would open a session.
fn hidden() -> String {
    let body = r#"{"jsonrpc":"2.0","id":"hidden","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"h","version":"1"}}}"#;
    format!("{HEAD}content-length: {}\r\n\r\n{body}", body.len())
}

/// Every way to let two readers disagree about where a request ends; each ends with the hidden one.
fn attempts() -> Vec<(&'static str, String)> {
    let hidden = hidden();
    let length = hidden.len();
    let chunked = format!("0\r\n\r\n{hidden}");
    let after = |lines: String, body: &str| format!("{HEAD}{lines}\r\n{body}");
    let whole = format!("content-length: {}\r\n", chunked.len());
    vec![
        ("length before encoding", after(format!("{whole}transfer-encoding: chunked\r\n"), &chunked)),
        ("encoding before length", after(format!("transfer-encoding: chunked\r\n{whole}"), &chunked)),
        ("two lengths", after(format!("content-length: {length}\r\ncontent-length: 0\r\n"), &hidden)),
        ("two lengths in one", after(format!("content-length: {length}, 0\r\n"), &hidden)),
        ("a signed length", after("content-length: +0\r\n".into(), &hidden)),
        ("a negative length", after("content-length: -1\r\n".into(), &hidden)),
        ("a hex length", after("content-length: 0x0\r\n".into(), &hidden)),
        ("a folded header", after(format!("x-folded: a\r\n content-length: {length}\r\n"), &hidden)),
        ("a folded encoding", after(format!("{whole}transfer-encoding:\r\n chunked\r\n"), &chunked)),
        ("an unknown encoding", after(format!("{whole}transfer-encoding: xchunked\r\n"), &chunked)),
        ("an encoding after chunked", after(format!("{whole}transfer-encoding: chunked, identity\r\n"), &chunked)),
        ("two encodings", after(format!("{whole}transfer-encoding: chunked\r\ntransfer-encoding: x\r\n"), &chunked)),
        ("a space before the colon", after(format!("{whole}transfer-encoding : chunked\r\n"), &chunked)),
        ("a NUL in a header", after("x-nul: a\0b\r\ncontent-length: 0\r\n".into(), &hidden)),
        ("a bare CR in a header", after(format!("x-cr: a\rcontent-length: {length}\r\n"), &hidden)),
        ("a chunk without a size", after("transfer-encoding: chunked\r\n".into(), &format!("\r\n\r\n{hidden}"))),
        (
            "a chunk too large",
            after("transfer-encoding: chunked\r\n".into(), &format!("ffffffffffffffffff\r\n{hidden}")),
        ),
        ("a chunk with a lone LF", after("transfer-encoding: chunked\r\n".into(), &format!("0\n\n{hidden}"))),
        ("an old version with an encoding", {
            let old = HEAD.replace("HTTP/1.1", "HTTP/1.0");
            format!("{old}{whole}transfer-encoding: chunked\r\n\r\n{chunked}")
        }),
        (
            "a GET with a body",
            format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{hidden}"),
        ),
        ("a refused body", {
            let wrong = HEAD.replace("application/json\r\naccept", "text/plain\r\naccept");
            format!("{wrong}content-length: {length}\r\n\r\n{hidden}")
        }),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn no_hidden_request_is_served() {
    let gateway = gateway().await;
    // First the proof that a request which is not hidden, in the same place, would be served.
    let mut raw = Raw::connect(gateway.address()).await.unwrap();
    raw.write(format!("{HEAD}content-length: 2\r\n\r\n{{}}{}", hidden()).as_bytes()).await.unwrap();
    let (plain, _) = raw.rest(Duration::from_millis(500)).await;
    assert!(String::from_utf8_lossy(&plain).contains("\"hidden\""));
    let mut served = Vec::new();
    let mut waiting = tokio::task::JoinSet::new();
    for (name, bytes) in attempts() {
        let mut raw = Raw::connect(gateway.address()).await.unwrap();
        waiting.spawn(async move {
            raw.write(bytes.as_bytes()).await.unwrap();
            let (answer, closed) = raw.rest(Duration::from_millis(1500)).await;
            (name, String::from_utf8_lossy(&answer).into_owned(), closed)
        });
    }
    while let Some(ended) = waiting.join_next().await {
        let (name, answer, closed) = ended.unwrap();
        let status = answer.get(9..12).unwrap_or("none").to_owned();
        let answers = answer.matches("HTTP/1.1 ").count() + answer.matches("HTTP/1.0 ").count();
        println!("{name}: {answers} answers, first {status}, closed: {closed}");
        if answer.contains("hidden") || answers > 1 {
            served.push(format!("{name}: {answer}"));
        }
        let ok = matches!(status.as_bytes().first(), Some(b'4')) || closed || status == "200" && answers == 1;
        assert!(ok, "{name}: {answer:?} closed: {closed}");
    }
    assert!(served.is_empty(), "{}", served.join("\n"));
    let mut client = Raw::connect(gateway.address()).await.unwrap();
    let lines = session(&mut client).await;
    works(&mut client, &lines).await;
    unharmed(&gateway);
}
