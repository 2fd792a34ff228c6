//! What must not pass at `/sse` and `/messages`.

use super::{demo, sessions};
use bytes::Bytes;
use http::Method;
use serde_json::json;
use signalbox_testkit::gateway::GatewayProcess;
use signalbox_testkit::http_client::{HttpAnswer, HttpClient};
use signalbox_testkit::scene::call;
use signalbox_testkit::sse_client::SseClient;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

/// Sends this and reads until the gateway closes.
async fn raw(gateway: &GatewayProcess, request: &str) -> String {
    let mut stream = TcpStream::connect(gateway.address()).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn send(gateway: &GatewayProcess, method: Method, path: &str, body: &str) -> HttpAnswer {
    let body = Bytes::copy_from_slice(body.as_bytes());
    HttpClient::new(gateway.address()).send(method, path, body).await.unwrap()
}

fn error(answer: &HttpAnswer) -> String {
    let message = answer.message().unwrap();
    assert_eq!(message["jsonrpc"], "2.0");
    format!("{} {} {}", answer.status, message["error"]["code"], message["error"]["message"].as_str().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_without_a_session_is_refused() {
    let gateway = demo().await;
    for path in ["/messages", "/messages?", "/messages?session=1", "/messages?sessionId=1&sessionId=2"] {
        let answer = send(&gateway, Method::POST, path, PING).await;
        assert!(error(&answer).starts_with("400 ") && error(&answer).contains("sessionId"), "{}", error(&answer));
    }
    for path in
        ["/messages?sessionId=", "/messages?sessionId=0123456789abcdef0123456789abcdef", "/messages?sessionId=%00"]
    {
        let answer = send(&gateway, Method::POST, path, PING).await;
        assert!(error(&answer).starts_with("404 "), "{}", error(&answer));
    }
}

/// A session belongs to the transport that opened it.
#[tokio::test(flavor = "multi_thread")]
async fn sessions_of_one_transport_are_unknown_to_the_other() {
    let gateway = demo().await;
    let web = HttpClient::new(gateway.address());
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let opened = web.post(&hello.to_string()).await.unwrap();
    let streamable = opened.headers["mcp-session-id"].to_str().unwrap();
    let answer = send(&gateway, Method::POST, &format!("/messages?sessionId={streamable}"), PING).await;
    assert_eq!(answer.status, 404);

    let mut client = SseClient::open(gateway.address()).await.unwrap();
    client.initialize("2024-11-05", json!({})).await.unwrap();
    let id = client.post_to.split_once('=').unwrap().1.to_owned();
    let stranger = web.with("mcp-session-id", &id);
    assert_eq!(stranger.post(PING).await.unwrap().status, 404);
    assert_eq!(stranger.get("/mcp").await.unwrap().status, 404);
    assert_eq!(stranger.send(Method::DELETE, "/mcp", Bytes::new()).await.unwrap().status, 404);
    assert!(client.request(1, "ping", json!({})).await.unwrap()["result"].is_object());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_or_origin_is_refused() {
    let gateway = demo().await;
    let client = SseClient::open(gateway.address()).await.unwrap();
    let post_to = &client.post_to;
    for host in ["evil.example", "localhost.evil.example", "127.0.0.1\r\nhost: 127.0.0.1"] {
        let answer = raw(&gateway, &format!("GET /sse HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
        let head = format!("POST {post_to} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n");
        let rest = format!("content-type: application/json\r\ncontent-length: {}\r\n\r\n{PING}", PING.len());
        let answer = raw(&gateway, &(head + &rest)).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{host}: {answer}");
    }
    let page = HttpClient::new(gateway.address()).with("origin", "https://evil.example");
    assert!(SseClient::open_with(page.clone()).await.unwrap_err().to_string().contains("403"));
    assert_eq!(page.send(Method::POST, post_to, Bytes::from(PING)).await.unwrap().status, 403);
    // A page cannot send JSON from elsewhere without asking, which is why nothing else is read as such.
    let form = HttpClient::new(gateway.address());
    let text =
        format!("POST {post_to} HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\nconnection: close\r\n");
    let answer = raw(&gateway, &format!("{text}content-length: {}\r\n\r\n{PING}", PING.len())).await;
    assert!(answer.starts_with("HTTP/1.1 415 "), "{answer}");
    assert_eq!(form.with("accept", "text/html").get("/sse").await.unwrap().status, 406);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_message_is_said_in_the_answer_and_hurts_nothing() {
    let gateway = GatewayProcess::serve("[gateway]\nmax_message = 100000\n").await.unwrap();
    let mut client = SseClient::open(gateway.address()).await.unwrap();
    client.initialize("2024-11-05", json!({})).await.unwrap();
    for (body, part) in [
        ("{", "400 -32700 Parse error"),
        ("", "400 -32700 Parse error"),
        ("\u{1}", "400 -32700 Parse error"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":1,"a":2}}"#, "400 -32600"),
        (r#"{"id":1,"method":"ping"}"#, "400 -32600"),
        ("[]", "400 -32600"),
    ] {
        let answer = client.post(body).await.unwrap();
        assert!(error(&answer).starts_with(part), "{body:?}: {}", error(&answer));
    }
    let huge = call(1, "echo", &json!({"text": "x".repeat(200_000)})).to_string();
    let answer = client.post(&huge).await.unwrap();
    assert!(error(&answer).starts_with("413 "), "{}", error(&answer));
    let chunked = format!(
        "POST {} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{huge}\r\n0\r\n\r\n",
        client.post_to,
        huge.len()
    );
    let answer = raw(&gateway, &chunked).await;
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    // Nothing of all that came on the stream.
    client.send(&json!({"jsonrpc": "2.0", "id": 7, "method": "ping"})).await.unwrap();
    // A list that changed while the backend started may be told of first.
    let answer = loop {
        let message = client.next().await.unwrap().unwrap();
        if message.get("method").is_none() {
            break message;
        }
    };
    assert_eq!(answer["id"], 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn other_methods_are_refused_by_name() {
    let gateway = demo().await;
    for (method, path, allowed) in [
        (Method::POST, "/sse", "GET"),
        (Method::DELETE, "/sse", "GET"),
        (Method::GET, "/messages", "POST"),
        (Method::PUT, "/messages", "POST"),
    ] {
        let answer = send(&gateway, method.clone(), path, PING).await;
        assert_eq!(answer.status, 405, "{method} {path}");
        assert_eq!(answer.headers["allow"], allowed);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_too_many_is_refused_until_another_ends() {
    let gateway = GatewayProcess::serve("[mcp.protocol.security]\nmax_concurrent_sessions = 2\n").await.unwrap();
    let first = SseClient::open(gateway.address()).await.unwrap();
    let _second = SseClient::open(gateway.address()).await.unwrap();
    let third = send(&gateway, Method::GET, "/sse", "").await;
    assert_eq!(third.status, 503);
    assert_eq!(third.message().unwrap()["error"]["data"]["reason"], "overloaded");
    drop(first);
    sessions(&gateway, 1).await;
    SseClient::open(gateway.address()).await.unwrap();
}
