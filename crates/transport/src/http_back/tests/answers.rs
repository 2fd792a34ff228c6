//! What is made of each kind of response.

use super::server::*;
use crate::backend_fault::SpecError;
use crate::http_back::{HttpConnector, HttpSpec};
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use signalbox_engine::FaultKind;
use signalbox_wire::{Limits, Revision};
use std::time::Duration;

/// The first thing posted when a call with key 7 is answered with these bytes.
async fn answered(bytes: Vec<u8>) -> Event {
    let server = Server::start(move |_| Act::Write(bytes.clone())).await;
    Opened::new(&server).await.ask(call(7)).await
}

#[tokio::test]
async fn a_json_answer_is_posted() {
    let (text, about, status) = answered(json(&result(7))).await.received();
    assert_eq!((text.as_str(), about, status), (&*result(7), Some(7), Some(200)));
}

#[tokio::test]
async fn a_body_in_many_pieces_is_joined() {
    let server = Server::start(|_| {
        let bytes = json(&result(7));
        let parts = bytes.chunks(9).map(<[u8]>::to_vec).collect();
        Act::Slowly(parts, Duration::from_millis(1))
    })
    .await;
    let (text, ..) = Opened::new(&server).await.ask(call(7)).await.received();
    assert_eq!(text, result(7));
}

#[tokio::test]
async fn each_message_of_a_batch_is_posted() {
    let note = r#"{"jsonrpc":"2.0","method":"notifications/message"}"#;
    let body = format!("[{note}, 5, {}]", result(7));
    let server = Server::start(move |_| Act::Write(json(&body))).await;
    let mut opened = Opened::new(&server).await;
    assert_eq!(opened.ask(call(7)).await.received().0, note);
    assert!(matches!(opened.next().await, Event::Garbage(why) if why == "a message must be an object"));
    assert_eq!(opened.next().await.received().0, result(7));
}

#[tokio::test]
async fn what_is_not_the_answer_fails_the_request() {
    let garbage = FaultKind::BackendGarbage;
    let text = answered(json("hello")).await.failed(7, garbage);
    assert!(text.contains("no message: not JSON"), "{text}");
    answered(json("{}")).await.failed(7, garbage);
    answered(response("202 Accepted", "", "")).await.failed(7, garbage);
    answered(b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()).await.failed(7, garbage);
    let page = response("200 OK", "content-type: text/html\r\n", "<html>");
    let text = answered(page).await.failed(7, garbage);
    assert!(text.contains("content type `text/html`"), "{text}");
    let text = answered(b"SSH-2.0-OpenSSH_9.9\r\n".to_vec()).await.failed(7, garbage);
    assert!(text.contains("something else than HTTP"), "{text}");
}

#[tokio::test]
async fn an_answer_to_somebody_else_fails_the_request() {
    let server = Server::start(|_| Act::Write(json(&result(8)))).await;
    let mut opened = Opened::new(&server).await;
    assert_eq!(opened.ask(call(7)).await.received().0, result(8));
    opened.next().await.failed(7, FaultKind::BackendGarbage);
}

/// A large answer to somebody else fails the request at once, as a small one does.
#[tokio::test]
async fn a_large_answer_to_somebody_else_fails_the_request_too() {
    let large = |id: u64| format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"text":"{}"}}}}"#, "x".repeat(100_000));
    let server = Server::start(move |_| Act::Write(json(&large(70)))).await;
    let mut opened = Opened::new(&server).await;
    assert_eq!(opened.ask(call(7)).await.received().0, large(70));
    opened.next().await.failed(7, FaultKind::BackendGarbage);
    for own in [large(7), format!(r#"{{"result":{{"text":"{}"}},"jsonrpc":"2.0","id":7}}"#, "x".repeat(100_000))] {
        assert_eq!(answered(json(&own)).await.received().0, own);
    }
}

#[tokio::test]
async fn a_refusal_that_is_an_answer_is_posted_with_its_status() {
    let error = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#;
    let event = answered(response("400 Bad Request", "content-type: application/json\r\n", error)).await;
    assert_eq!(event.received(), (error.to_owned(), Some(7), Some(400)));
    let error = r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}"#;
    let event = answered(response("404 Not Found", "content-type: text/plain\r\n", error)).await;
    assert_eq!(event.received(), (error.to_owned(), Some(7), Some(404)));
}

#[tokio::test]
async fn any_other_refusal_fails_the_request() {
    let (refused, garbage) = (FaultKind::BackendRefused, FaultKind::BackendGarbage);
    let text = answered(response("400 Bad Request", "", "no\nway \"x\"")).await.failed(7, refused);
    assert_eq!(text, "backend `demo` answered HTTP 400: no\\nway \"x\"");
    let foreign = r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"no"}}"#;
    answered(response("400 Bad Request", "", foreign)).await.failed(7, refused);
    let text = answered(response("401 Unauthorized", "", "")).await.failed(7, refused);
    assert!(text.starts_with("backend `demo` wants authentication (HTTP 401); "), "{text}");
    assert!(text.contains("`auth = { type = \"oauth\" }`") && text.contains("`signalbox login demo`"), "{text}");
    let text = answered(response("502 Bad Gateway", "", &"x".repeat(5000))).await.failed(7, garbage);
    assert!(text.ends_with(&format!("HTTP 502: {}", "x".repeat(200))), "{text}");
    let text = answered(response("307 T", "location: http://other.example/p?token=abc\r\n", "")).await;
    let text = text.failed(7, garbage);
    assert!(text.contains("host `other.example`") && !text.contains("abc"), "{text}");
}

#[tokio::test]
async fn secrets_are_not_repeated() {
    let server = Server::start(|seen| {
        let said = seen.header("authorization").unwrap();
        let token = said.split_once(' ').unwrap().1;
        Act::Write(response("403 Forbidden", "", &format!("bad {said} or {token}, {}", seen.line)))
    })
    .await;
    let mut spec = HttpSpec::new("demo", format!("{}?key=hunter22", server.url()));
    spec.headers.push((AUTHORIZATION, HeaderValue::from_static("Bearer s3cr3t-t0ken")));
    assert!(!format!("{spec:?}").contains("s3cr3t"));
    let text = Opened::to(spec).await.ask(call(7)).await.failed(7, FaultKind::BackendRefused);
    assert!(!text.contains("s3cr3t") && !text.contains("hunter22"), "{text}");
    assert!(text.contains("[hidden]"), "{text}");
}

#[tokio::test]
async fn too_large_answers_fail_the_request_and_drop_the_connection() {
    let limits = Limits { message: 100, sse_event: 100, ..Limits::default() };
    let long = "x".repeat(200);
    let announced = json(&long);
    let unannounced = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n".to_vec();
    let unannounced = [unannounced, long.clone().into_bytes()].concat();
    let event = events(&format!("data: {long}\n\n"));
    for bytes in [announced, unannounced, event] {
        let server = Server::start(move |_| Act::Write(bytes.clone())).await;
        let mut opened = Opened::to(HttpSpec { limits, ..HttpSpec::new("demo", server.url()) }).await;
        let text = opened.ask(call(7)).await.failed(7, FaultKind::BackendRefused);
        assert!(text.contains("larger than 100 bytes"), "{text}");
        until(|| server.hung_up.load(std::sync::atomic::Ordering::SeqCst) == 1).await;
    }
}

#[tokio::test]
async fn the_old_era_has_its_headers() {
    let server = Server::start(|seen| Act::Write(json(&result(seen.id())))).await;
    let mut spec = HttpSpec::new("demo", server.url());
    spec.headers.push((HeaderName::from_static("x-key"), HeaderValue::from_static("1")));
    let mut opened = Opened::to(spec).await;
    opened.ask(initialize(1)).await.received();
    opened.ask(message(2, "tools/list", Revision::V2025_03_26)).await.received();
    opened.ask(call(3)).await.received();
    let seen = server.seen();
    assert_eq!(seen[0].line, "POST /mcp HTTP/1.1");
    assert_eq!(seen[0].header("host"), Some(server.address.to_string().as_str()));
    assert_eq!(seen[0].header("x-key"), Some("1"));
    assert_eq!(seen[0].header("content-type"), Some("application/json"));
    assert_eq!(seen[0].header("accept"), Some("application/json, text/event-stream"));
    let versions: Vec<_> = seen.iter().map(|seen| seen.header("mcp-protocol-version")).collect();
    assert_eq!(versions, [None, None, Some("2025-11-25")]);
    assert!(seen.iter().all(|seen| seen.header("mcp-method").is_none()));
}

#[tokio::test]
async fn the_new_era_has_its_headers_and_no_session() {
    let server = Server::start(|seen| {
        Act::Write(response("200 OK", "content-type: application/json\r\nmcp-session-id: s\r\n", &result(seen.id())))
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.ask(initialize(1)).await.received();
    let params = vec![("Mcp-Param-Region".into(), "eu".into())];
    let call = message(2, "tools/call", Revision::LATEST).named_for_test(Some("größe"), params);
    opened.ask(call).await.received();
    opened.ask(message(3, "server/discover", Revision::LATEST)).await.received();
    let seen = server.seen();
    assert_eq!(seen[1].header("mcp-session-id"), None);
    assert_eq!(seen[1].header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen[1].header("mcp-method"), Some("tools/call"));
    assert_eq!(seen[1].header("mcp-name"), Some("=?base64?Z3LDtsOfZQ==?="));
    assert_eq!(seen[1].header("mcp-param-region"), Some("eu"));
    assert_eq!(seen[2].header("mcp-method"), Some("server/discover"));
    assert_eq!(seen[2].header("mcp-name"), None);
}

#[test]
fn headers_of_the_protocol_cannot_be_configured() {
    for name in ["mcp-session-id", "accept", "content-length", "mcp-param-x", "mcp-method"] {
        let mut spec = HttpSpec::new("demo", "http://127.0.0.1:1/");
        spec.headers.push((HeaderName::from_static(name), HeaderValue::from_static("1")));
        let error = HttpConnector::new(spec).unwrap_err();
        assert!(matches!(error, SpecError::ReservedHeader { .. }), "{error}");
    }
}
