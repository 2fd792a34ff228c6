//! Sessions of the old era: begun, carried, expired, ended.

use super::server::*;
use signalbox_runtime::Connector as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// Gives session `s1`, then `s2`, … at each `initialize`, and knows only the last.
fn sessions() -> impl Fn(&SeenRequest) -> Act + Send + Sync {
    let current = AtomicUsize::new(0);
    move |seen| {
        if seen.body.contains("\"initialize\"") {
            let number = current.fetch_add(1, Ordering::SeqCst) + 1;
            let headers = format!("content-type: application/json\r\nMcp-Session-Id: s{number}\r\n");
            return Act::Write(response("200 OK", &headers, &result(seen.id())));
        }
        let known = format!("s{}", current.load(Ordering::SeqCst));
        match (seen.header("mcp-session-id"), seen.verb()) {
            (Some(session), _) if session != known => Act::Write(response("404 Not Found", "", "")),
            (None, _) => Act::Write(response("400 Bad Request", "", "no session")),
            (_, "DELETE") => Act::Write(response("200 OK", "", "")),
            (_, "GET") => Act::Write(response("405 Method Not Allowed", "", "")),
            _ if seen.body.contains("\"id\"") => Act::Write(json(&result(seen.id()))),
            _ => Act::Write(response("202 Accepted", "", "")),
        }
    }
}

#[tokio::test]
async fn the_session_is_kept_and_sent() {
    let server = Server::start(sessions()).await;
    let mut opened = Opened::new(&server).await;
    opened.ask(initialize(1)).await.received();
    opened.link.send(note("notifications/initialized")).unwrap();
    opened.ask(call(2)).await.received();
    let seen = server.seen();
    let sent: Vec<_> = seen.iter().map(|seen| seen.header("mcp-session-id")).collect();
    assert_eq!(sent, [None, Some("s1"), Some("s1")]);
}

#[tokio::test]
async fn an_expired_session_gives_the_message_back() {
    let server = Server::start(sessions()).await;
    let mut first = Opened::new(&server).await;
    first.ask(initialize(1)).await.received();
    let mut second = Opened::new(&server).await;
    second.ask(initialize(1)).await.received();

    let Event::Expired(message) = first.ask(call(2)).await else { panic!() };
    assert_eq!(message.key(), Some(2));
    first.link.send(note("notifications/cancelled")).unwrap();
    let Event::Expired(_) = first.next().await else { panic!() };

    first.link.forget_session();
    first.ask(initialize(3)).await.received();
    let (text, ..) = first.ask(message).await.received();
    assert_eq!(text, result(2));
}

/// A server that has restarted and says 400 instead of 404.
#[tokio::test]
async fn a_400_that_denies_the_session_gives_the_message_back() {
    let bodies = [
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":2}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
        "Invalid or missing session ID",
    ];
    for body in bodies {
        let script = sessions();
        let server = Server::start(move |seen| match seen.header("mcp-session-id") {
            Some("s1") => Act::Write(response("400 Bad Request", "content-type: application/json\r\n", body)),
            _ => script(seen),
        })
        .await;
        let mut opened = Opened::new(&server).await;
        opened.ask(initialize(1)).await.received();
        let Event::Expired(message) = opened.ask(call(2)).await else { panic!("{body}") };
        opened.link.forget_session();
        opened.ask(initialize(3)).await.received();
        assert_eq!(opened.ask(message).await.received().0, result(2));
    }
}

/// What a 400 does not show to be unprocessed is not sent again; a ping finds out about the session.
#[tokio::test]
async fn a_400_that_says_nothing_of_the_session_raises_a_doubt() {
    let script = sessions();
    let server = Server::start(move |seen| match seen.header("mcp-session-id") {
        Some(_) => Act::Write(response("400 Bad Request", "", "what is this?")),
        None => script(seen),
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.ask(initialize(1)).await.received();
    assert!(matches!(opened.ask(call(2)).await, Event::Doubted));
    opened.next().await.failed(2, signalbox_engine::FaultKind::BackendRefused);
    let ping = message(3, signalbox_wire::method::PING, signalbox_wire::Revision::V2025_11_25);
    assert!(matches!(opened.ask(ping).await, Event::Expired(_)));
}

/// A 400 that answers the request says nothing against the session.
#[tokio::test]
async fn a_400_with_an_answer_to_the_request_is_that_answer() {
    let script = sessions();
    let server = Server::start(move |seen| match seen.header("mcp-session-id") {
        Some(_) => {
            let id = seen.id();
            let error = r#"{"code":-32602,"message":"your session not found in the database"}"#;
            Act::Write(response("400 Bad Request", "", &format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)))
        }
        None => script(seen),
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.ask(initialize(1)).await.received();
    assert_eq!(opened.ask(call(2)).await.received().2, Some(400));
    assert!(opened.events.try_recv().is_err());
}

/// The stream for what belongs to no request may be all that is ever asked of a session.
#[tokio::test]
async fn a_general_stream_that_meets_an_expired_session_says_so() {
    let forgotten = Arc::<AtomicBool>::default();
    let server = Server::start({
        let (script, forgotten) = (sessions(), Arc::clone(&forgotten));
        move |seen| match seen.verb() {
            "GET" if forgotten.load(Ordering::SeqCst) => Act::Write(response("404 Not Found", "", "")),
            "GET" => Act::Write(events("retry: 20\nid: a\ndata:\n\n")),
            _ => script(seen),
        }
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.ask(initialize(1)).await.received();
    opened.link.open_general();
    until(|| server.seen().len() >= 3).await;
    assert!(opened.events.try_recv().is_err());
    forgotten.store(true, Ordering::SeqCst);
    assert!(matches!(opened.next().await, Event::Doubted));
}

/// Without a session a 404 is an answer like others.
#[tokio::test]
async fn a_404_without_a_session_fails_the_request() {
    let server = Server::start(|_| Act::Write(response("404 Not Found", "", "nothing here"))).await;
    let mut opened = Opened::new(&server).await;
    let kind = signalbox_engine::FaultKind::BackendGarbage;
    let text = opened.ask(call(1)).await.failed(1, kind);
    assert_eq!(text, "backend `demo` answered HTTP 404: nothing here");
}

#[tokio::test]
async fn close_ends_the_session() {
    let server = Server::start(sessions()).await;
    let mut opened = Opened::new(&server).await;
    opened.ask(initialize(1)).await.received();
    opened.ask(call(2)).await.received();
    assert!(!opened.connector.is_ending_sessions());
    opened.link.close();
    opened.link.close();
    assert!(opened.connector.is_ending_sessions(), "whoever shuts down waits for the DELETE");
    until(|| !opened.connector.is_ending_sessions()).await;
    drop(opened);
    until(|| server.seen().len() == 3).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    let seen = server.seen();
    assert_eq!((seen.len(), seen[2].verb()), (3, "DELETE"));
    assert_eq!(seen[2].header("mcp-session-id"), Some("s1"));
    assert_eq!(seen[2].header("mcp-protocol-version"), Some("2025-11-25"));
}

#[tokio::test]
async fn a_link_without_a_session_ends_silently() {
    let server = Server::start(|seen| Act::Write(json(&result(seen.id())))).await;
    let mut opened = Opened::new(&server).await;
    opened.ask(call(1)).await.received();
    drop(opened);
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(server.seen().len(), 1);
}

/// POSTs overtake each other, but none may overtake `notifications/initialized`.
#[tokio::test]
async fn nothing_overtakes_the_end_of_the_handshake() {
    let script = sessions();
    let server = Server::start(move |seen| {
        let act = script(seen);
        match act {
            Act::Write(bytes) if seen.body.contains("initialized") => {
                let (head, rest) = bytes.split_at(10);
                Act::Slowly(vec![head.to_vec(), rest.to_vec()], Duration::from_millis(60))
            }
            other => other,
        }
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.ask(initialize(1)).await.received();
    opened.link.send(note("notifications/initialized")).unwrap();
    opened.link.open_general();
    opened.link.send(call(2)).unwrap();
    tokio::time::sleep(Duration::from_millis(30)).await;
    assert_eq!(server.seen().len(), 2);
    opened.next().await.received();
    until(|| server.seen().len() == 4).await;
    let line = |index: usize| server.seen()[index].line.clone();
    assert!(line(2) != line(3), "one GET and one POST");
}
