//! Backends of both kinds at addresses of both kinds, and what is asked of them to tell one from the other.

use super::*;
use crate::child::recorder::recorder;
use crate::http_back::tests::server::{
    Act, SeenRequest, Server, chunk, events_head, json, message, response, result, until,
};
use bytes::Bytes;
use signalbox_engine::back::ToBackend;
use signalbox_wire::Envelope;
use signalbox_wire::Revision;
use std::sync::Mutex;
use std::sync::atomic::AtomicUsize;

/// Events of a link that nobody looks at.
struct Nobody;

impl LinkEvents for Nobody {
    fn user(&self) -> Option<signalbox_engine::BackendUser> {
        None
    }

    fn received(&self, _: Bytes, _: Option<u64>, _: Option<u16>) {}
    fn failed(&self, _: u64, _: Fault) {}
    fn expired(&self, _: ToBackend) {}
    fn lost(&self, _: String) {}
}

async fn auto(server: &Server, path: &str) -> (AutoConnector, Result<Arc<dyn Link>, Fault>) {
    let connector = AutoConnector::new(HttpSpec::new("b", format!("http://{}{path}", server.address))).unwrap();
    let opened = connector.open(Arc::new(Nobody)).await;
    (connector, opened)
}

fn verbs(server: &Server) -> Vec<String> {
    server.seen().iter().map(|seen| seen.verb().to_owned()).collect()
}

/// `server-everything` in its `sse` mode: a GET opens the stream, a POST to the same address is not known.
fn old(seen: &SeenRequest) -> Act {
    match seen.verb() {
        "GET" => Act::Write([events_head(), chunk("event: endpoint\ndata: /message\n\n")].concat()),
        _ if seen.line.contains("/message") => Act::Write(response("202 Accepted", "", "")),
        _ => Act::Write(response("404 Not Found", "content-type: text/html\r\n", "<pre>Cannot POST /sse</pre>")),
    }
}

#[tokio::test]
async fn http_sse_is_found_by_its_path_with_one_request_and_elsewhere_with_two() {
    for (path, asked) in [("/sse", vec!["GET"]), ("/x/sse/", vec!["GET"]), ("/events", vec!["POST", "GET"])] {
        let server = Server::start(old).await;
        let (connector, opened) = auto(&server, path).await;
        assert_eq!((connector.kind(), connector.carries_headers()), ("sse", false), "{path}");
        let _link = opened.unwrap();
        assert_eq!(verbs(&server), asked);
        // What was found out is remembered.
        let _second = connector.open(Arc::new(Nobody)).await.unwrap();
        assert_eq!(verbs(&server).len(), asked.len() + 1);
        assert_eq!(verbs(&server).last().unwrap(), "GET");
    }
}

#[tokio::test]
async fn streamable_http_is_asked_one_question_and_never_again() {
    let refusal = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#;
    for answer in [
        json(&result(0)),
        response("400 Bad Request", "content-type: application/json\r\n", refusal),
        response("401 Unauthorized", "", ""),
        [events_head(), chunk(": alive\n\n")].concat(),
    ] {
        let server = Server::start(move |seen| match seen.body.contains("server/discover") {
            true => Act::Write(answer.clone()),
            false => Act::Write(json(&result(seen.id()))),
        })
        .await;
        let (connector, opened) = auto(&server, "/mcp").await;
        assert_eq!((connector.kind(), connector.carries_headers()), ("http", true));
        assert_eq!(verbs(&server), ["POST"]);
        let link = opened.unwrap();
        link.send(message(1, "initialize", Revision::V2025_11_25)).unwrap();
        until(|| connector.found() == HTTP).await;
        connector.open(Arc::new(Nobody)).await.unwrap();
        assert_eq!(verbs(&server), ["POST", "POST"]);
    }
}

/// Many examples answer with a plain 400 while there is no session: a GET, which they refuse too, tells them apart.
#[tokio::test]
async fn streamable_http_with_plain_refusals_stays_that() {
    let server = Server::start(|seen| match seen.body.contains("initialize") {
        true => Act::Write(json(&result(seen.id()))),
        false => Act::Write(response("400 Bad Request", "content-type: text/plain\r\n", "Invalid or missing session")),
    })
    .await;
    for path in ["/mcp", "/sse"] {
        let before = verbs(&server).len();
        let (connector, opened) = auto(&server, path).await;
        let link = opened.unwrap();
        assert_eq!(connector.kind(), "http");
        link.send(message(1, "server/discover", Revision::LATEST)).unwrap();
        link.send(message(2, "initialize", Revision::V2025_11_25)).unwrap();
        until(|| connector.found() == HTTP).await;
        let asked = verbs(&server)[before..].iter().filter(|verb| *verb == "GET").count();
        assert_eq!(asked, 1, "{path}");
    }
}

#[tokio::test]
async fn a_stream_without_an_endpoint_is_no_http_sse() {
    let server = Server::start(|seen| match seen.verb() {
        "GET" => Act::Write([events_head(), chunk("event: message\ndata: {}\n\n"), b"0\r\n\r\n".to_vec()].concat()),
        _ => Act::Write(response("404 Not Found", "", "")),
    })
    .await;
    let (connector, opened) = auto(&server, "/sse").await;
    opened.unwrap();
    assert_eq!(connector.kind(), "http");
}

#[tokio::test]
async fn what_was_found_out_is_forgotten_when_opening_fails() {
    // First HTTP+SSE, then Streamable HTTP, then HTTP+SSE again, all at one address.
    let now = Arc::new(AtomicUsize::new(0));
    let at = Arc::clone(&now);
    let server = Server::start(move |seen| match (at.load(Ordering::SeqCst), seen.verb()) {
        (1, "POST") => Act::Write(json(&result(seen.id()))),
        (1, _) => Act::Write(response("405 Method Not Allowed", "", "")),
        _ => old(seen),
    })
    .await;
    let (connector, opened) = auto(&server, "/any").await;
    opened.unwrap();
    assert_eq!(connector.kind(), "sse");
    now.store(1, Ordering::SeqCst);
    assert!(connector.open(Arc::new(Nobody)).await.is_err());
    let link = connector.open(Arc::new(Nobody)).await.unwrap();
    link.send(message(1, "initialize", Revision::V2025_11_25)).unwrap();
    until(|| connector.found() == HTTP).await;
    now.store(2, Ordering::SeqCst);
    let link = connector.open(Arc::new(Nobody)).await.unwrap();
    link.send(message(1, "initialize", Revision::V2025_11_25)).unwrap();
    until(|| connector.found() == UNKNOWN).await;
    connector.open(Arc::new(Nobody)).await.unwrap();
    assert_eq!(connector.kind(), "sse");
}

#[tokio::test]
async fn a_backend_that_is_not_there_is_down_at_once() {
    for path in ["/mcp", "/sse"] {
        let connector = AutoConnector::new(HttpSpec::new("b", format!("http://127.0.0.1:1{path}"))).unwrap();
        let (events, _recorded) = recorder();
        let Err(fault) = connector.open(events).await else { panic!("it was opened") };
        assert_eq!(fault.kind, FaultKind::BackendDown);
    }
}

/// The question carries what the new era demands, and the configured headers.
#[tokio::test]
async fn the_question_is_a_request_like_any_other() {
    let seen = Arc::new(Mutex::new(None));
    let kept = Arc::clone(&seen);
    let server = Server::start(move |seen| {
        *kept.lock().unwrap() = Some(seen.clone());
        Act::Write(json(&result(0)))
    })
    .await;
    auto(&server, "/mcp").await.1.unwrap();
    let question = seen.lock().unwrap().take().unwrap();
    assert_eq!(question.header("mcp-method"), Some("server/discover"));
    assert_eq!(question.header("mcp-protocol-version"), Some("2026-07-28"));
    assert!(Envelope::parse(Bytes::from(question.body)).is_ok());
}
