//! Connections and streams after the credential that opened them has expired, and the rights they have then.

use super::{VERSION, bearer, gateway, token};
use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt as _;
use serde_json::json;
use signalbox_testkit::pipe_client::PipeClient;
use signalbox_testkit::scene::text;
use std::time::Duration;

/// Longer than the credential of a test is good, and short enough for one of a minute.
const PATIENCE: Duration = Duration::from_secs(20);

/// An expired token leaves no rights behind, whatever else of the caller is good.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_ends_with_its_token_unless_another_gives_the_same_rights() {
    let gateway = gateway().await;
    let greet = json!({"name": "greet", "arguments": {"name": "Eve"}});
    let weak = bearer(&gateway, &token("ada", 60, "other"));
    weak.modern(1, "ping", json!({})).await.unwrap();
    for protocol in ["mcp", "signalbox.governed"] {
        let strong = format!("Bearer {}", token("ada", 3, "greet:use"));
        let headers = [("authorization", strong.as_str()), ("sec-websocket-protocol", protocol)];
        let mut socket = PipeClient::websocket(gateway.address(), &headers).await.unwrap();
        if protocol == "mcp" {
            socket.initialize(VERSION, json!({})).await.unwrap();
            let called = socket.request(2, "tools/call", greet.clone()).await.unwrap();
            assert!(text(&called).unwrap().contains("Eve"), "{called}");
        }
        let ended = tokio::time::timeout(PATIENCE, async { while socket.next().await.is_ok() {} }).await;
        assert!(ended.is_ok(), "{protocol}: the connection outlives its token");
    }
    // The next token of a client has the rights of the one before, and what is open goes on.
    let first = format!("Bearer {}", token("eve", 3, "greet:use"));
    let mut socket = PipeClient::websocket(gateway.address(), &[("authorization", &first)]).await.unwrap();
    socket.initialize(VERSION, json!({})).await.unwrap();
    bearer(&gateway, &token("eve", 60, "greet:use")).modern(1, "ping", json!({})).await.unwrap();
    tokio::time::sleep(Duration::from_secs(6)).await;
    let called = socket.request(2, "tools/call", greet).await.unwrap();
    assert!(text(&called).unwrap().contains("Eve"), "{called}");
}

/// The stream of a session ends with the token that opened it, and goes on with the rights of the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_with_the_rights_of_the_next_credential() {
    let gateway = gateway().await;
    let weak = token("ada", 60, "other");
    let session = bearer(&gateway, &token("ada", 3, "greet:use")).initialize(VERSION, json!({})).await.unwrap();
    let stream = session.open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
    let next = bearer(&gateway, &weak).with("mcp-session-id", session.session_id().unwrap());
    let next = next.with("mcp-protocol-version", VERSION);
    next.request(5, "ping", json!({})).await.unwrap();
    let ended = tokio::time::timeout(PATIENCE, stream.into_body().collect()).await;
    assert!(ended.is_ok(), "the stream outlives its token");
    let stream = next.with("accept", "text/event-stream").open(Method::GET, "/mcp", Bytes::new()).await.unwrap();
    assert_eq!(stream.status(), 200, "the session waits for the caller to come back");
    let ended = tokio::time::timeout(Duration::from_secs(4), stream.into_body().collect()).await;
    assert!(ended.is_err(), "the stream of a good token ends");
}
