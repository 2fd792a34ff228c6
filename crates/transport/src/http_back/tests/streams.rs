//! Event streams: of a request, taken up again, and the general one.

use super::server::*;
use signalbox_engine::FaultKind;
use signalbox_wire::Revision;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const NOTE: &str = r#"{"jsonrpc":"2.0","method":"notifications/message","params":{}}"#;

/// Proves N-46 and NO-6.
#[tokio::test]
async fn notifications_come_before_the_answer() {
    let server = Server::start(|_| {
        let text = format!("event: message\ndata: {NOTE}\n\n: hi\n\nevent: other\ndata: x\n\ndata: {}\n\n", result(7));
        Act::Write(events(&text))
    })
    .await;
    let mut opened = Opened::new(&server).await;
    assert_eq!(opened.ask(call(7)).await.received(), (NOTE.to_owned(), Some(7), Some(200)));
    assert_eq!(opened.next().await.received(), (result(7), Some(7), Some(200)));
    until(|| opened.connector.backend.pool.idle() == 1).await;
    assert!(opened.events.try_recv().is_err());
}

#[tokio::test]
async fn events_may_be_cut_anywhere() {
    let server = Server::start(|_| {
        let text = format!("id: 1\r\ndata: {NOTE}\r\n\r\ndata: {}\r\n\r\n", result(7));
        let chunks = text.as_bytes().chunks(5).map(|part| chunk(std::str::from_utf8(part).unwrap()));
        let parts = std::iter::once(events_head()).chain(chunks).chain([LAST_CHUNK.to_vec()]);
        Act::Slowly(parts.collect(), Duration::from_micros(200))
    })
    .await;
    let mut opened = Opened::new(&server).await;
    assert_eq!(opened.ask(call(7)).await.received().0, NOTE);
    assert_eq!(opened.next().await.received().0, result(7));
}

#[tokio::test]
async fn a_stream_that_stays_open_after_the_answer_is_dropped() {
    let server =
        Server::start(|_| Act::Slowly(vec![events_head(), chunk(&format!("data: {}\n\n", result(7)))], Duration::ZERO))
            .await;
    let mut opened = Opened::new(&server).await;
    opened.ask(call(7)).await.received();
    until(|| server.hung_up.load(Ordering::SeqCst) == 1).await;
    assert_eq!(opened.connector.backend.pool.idle(), 0);
}

#[tokio::test]
async fn a_stream_without_the_answer_fails_the_request() {
    for act in [events(&format!("data: {NOTE}\n\n")), events("")] {
        let server = Server::start(move |_| Act::Write(act.clone())).await;
        let mut opened = Opened::new(&server).await;
        opened.link.send(call(7)).unwrap();
        let text = loop {
            match opened.next().await {
                Event::Received(..) => {}
                other => break other.failed(7, FaultKind::BackendDied),
            }
        };
        assert!(text.contains("closed the stream before the answer"), "{text}");
    }
}

/// The stream breaks twice; each time it is taken up after the last id.
fn breaking(seen: &SeenRequest) -> Act {
    match (seen.verb(), seen.header("last-event-id")) {
        ("POST", _) => Act::Write(events(&format!("retry: 30\nid: a\ndata:\n\nid: b\ndata: {NOTE}\n\n"))),
        ("GET", Some("b")) => {
            let part = chunk(&format!("id: c\ndata: {NOTE}\n\n"));
            Act::Last([events_head(), part].concat())
        }
        ("GET", Some("c")) => Act::Write(events(&format!("data: {}\n\n", result(7)))),
        _ => Act::Write(response("400 Bad Request", "", "")),
    }
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_after_the_last_event() {
    let server = Server::start(breaking).await;
    let mut opened = Opened::new(&server).await;
    let started = std::time::Instant::now();
    assert_eq!(opened.ask(call(7)).await.received(), (NOTE.to_owned(), Some(7), Some(200)));
    assert_eq!(opened.next().await.received().0, NOTE);
    assert_eq!(opened.next().await.received(), (result(7), Some(7), Some(200)));
    assert!(started.elapsed() >= Duration::from_millis(60), "it waits as it is told");
    // Its client is told to wait as long.
    assert_eq!(opened.parted, [(7, Some(Duration::from_millis(30))); 2]);
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    assert_eq!(seen[1].header("accept"), Some("text/event-stream"));
    assert_eq!(seen[1].header("mcp-protocol-version"), Some("2025-11-25"));
}

/// Whatever a backend says, nobody is told to wait for ever, or not at all.
#[tokio::test]
async fn a_wait_that_is_passed_on_is_bounded() {
    for (told, passed) in [("0", 20), ("99999999999", 30_000)] {
        let text = format!("retry: {told}\nid: a\ndata: {NOTE}\n\n");
        let server = Server::start(move |_| Act::Write(events(&text))).await;
        let mut opened = Opened::new(&server).await;
        opened.ask(call(7)).await.received();
        let Some(Event::Parted(7, retry)) = opened.events.recv().await else { panic!() };
        assert_eq!(retry, Some(Duration::from_millis(passed)));
    }
}

#[tokio::test]
async fn the_new_era_takes_nothing_up() {
    let server = Server::start(breaking).await;
    let mut opened = Opened::new(&server).await;
    let call = message(7, "tools/call", Revision::LATEST);
    assert_eq!(opened.ask(call).await.received().0, NOTE);
    opened.next().await.failed(7, FaultKind::BackendDied);
    assert_eq!(server.seen().len(), 1);
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_fails_the_request() {
    let server = Server::start(|seen| match seen.verb() {
        "POST" => Act::Write(events("retry: 1\nid: a\ndata:\n\n")),
        _ => Act::Write(response("405 Method Not Allowed", "", "")),
    })
    .await;
    let text = Opened::new(&server).await.ask(call(7)).await.failed(7, FaultKind::BackendDied);
    assert!(text.contains("does not resume it (HTTP 405)"), "{text}");
}

#[tokio::test]
async fn taking_up_a_stream_has_an_end() {
    let server = Server::start(|seen| match seen.verb() {
        "POST" => Act::Write(events("retry: 1\nid: a\ndata:\n\n")),
        _ => Act::Write(events("")),
    })
    .await;
    Opened::new(&server).await.ask(call(7)).await.failed(7, FaultKind::BackendDied);
    assert_eq!(server.seen().len(), 7);
}

#[tokio::test]
async fn a_backend_without_a_general_stream_is_asked_once() {
    let server = Server::start(|_| Act::Write(response("405 Method Not Allowed", "", ""))).await;
    let opened = Opened::new(&server).await;
    opened.link.open_general();
    opened.link.open_general();
    until(|| server.hung_up.load(Ordering::SeqCst) == 1).await;
    opened.link.open_general();
    tokio::time::sleep(Duration::from_millis(30)).await;
    let seen = server.seen();
    assert_eq!((seen.len(), seen[0].verb()), (1, "GET"));
    assert_eq!(seen[0].header("accept"), Some("text/event-stream"));
}

#[tokio::test]
async fn the_general_stream_is_opened_again_after_the_last_event() {
    let count = AtomicUsize::new(0);
    let server = Server::start(move |_| match count.fetch_add(1, Ordering::SeqCst) {
        0 => Act::Write(events(&format!("retry: 20\nid: a\ndata: {NOTE}\n\n"))),
        1 => Act::Write(response("503 Busy", "", "")),
        _ => Act::Slowly(vec![events_head(), chunk(&format!("data: {NOTE}\n\n"))], Duration::ZERO),
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.link.open_general();
    assert_eq!(opened.next().await.received(), (NOTE.to_owned(), None, None));
    assert_eq!(opened.next().await.received(), (NOTE.to_owned(), None, None));
    let seen = server.seen();
    let ids: Vec<_> = seen.iter().map(|seen| seen.header("last-event-id")).collect();
    assert_eq!(ids, [None, Some("a"), Some("a")]);
    opened.link.close();
    until(|| server.hung_up.load(Ordering::SeqCst) == 3).await;
}

#[tokio::test]
async fn a_request_lets_the_general_stream_go_first_but_does_not_wait_for_ever() {
    let server = Server::start(|seen| match seen.verb() {
        "GET" => Act::Hang,
        _ => Act::Write(events(&format!("data: {}\n\n", result(7)))),
    })
    .await;
    let mut opened = Opened::new(&server).await;
    opened.link.open_general();
    assert_eq!(opened.ask(call(7)).await.received().0, result(7));
    let verbs: Vec<String> = server.seen().iter().map(|seen| seen.verb().to_owned()).collect();
    assert_eq!(verbs, ["GET", "POST"]);
}
