//! Where responses begin and end, as servers really send them.

use super::server::*;
use signalbox_engine::FaultKind;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// An answer of this many bytes.
fn large(key: u64, length: usize) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{key},"result":{{"x":"{}"}}}}"#, "x".repeat(length))
}

#[tokio::test]
async fn heads_that_only_promise_a_response_are_passed_over_within_a_bound() {
    let promises = |count: usize| b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n".repeat(count);
    let server = Server::start(move |seen| {
        let count = if seen.id() == 7 { 3 } else { 1000 };
        Act::Write([promises(count), json(&result(seen.id()))].concat())
    })
    .await;
    let mut opened = Opened::new(&server).await;
    assert_eq!(opened.ask(call(7)).await.received().0, result(7));
    let text = opened.ask(call(8)).await.failed(8, FaultKind::BackendGarbage);
    assert!(text.contains("too many heads"), "{text}");
}

#[tokio::test]
async fn a_response_that_comes_byte_by_byte_is_read() {
    let server = Server::start(|seen| {
        let bytes = format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{}", chunked(&result(seen.id())));
        Act::Slowly(bytes.bytes().map(|byte| vec![byte]).collect(), Duration::ZERO)
    })
    .await;
    let mut opened = Opened::new(&server).await;
    for key in 1..4 {
        assert_eq!(opened.ask(call(key)).await.received().0, result(key));
    }
    assert_eq!(server.connections(), 1);
}

fn chunked(text: &str) -> String {
    let chunks: String = text
        .as_bytes()
        .chunks(5000)
        .map(|one| format!("{:x}\r\n{}\r\n", one.len(), String::from_utf8_lossy(one)))
        .collect();
    format!("{chunks}0\r\n\r\n")
}

#[tokio::test]
async fn large_and_small_answers_take_turns_on_one_connection() {
    let sizes = [3_000_000, 0, 70_000, 1, 65_536, 1_048_576, 8_000];
    let server = Server::start(move |seen| {
        let text = large(seen.id(), sizes[seen.id() as usize % sizes.len()]);
        let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
        Act::Write(match seen.id() % 2 {
            0 => format!("{head}content-length: {}\r\n\r\n{text}", text.len()).into_bytes(),
            _ => format!("{head}transfer-encoding: chunked\r\n\r\n{}", chunked(&text)).into_bytes(),
        })
    })
    .await;
    let mut opened = Opened::new(&server).await;
    for key in 0..28 {
        let text = opened.ask(call(key)).await.received().0;
        assert!(text == large(key, sizes[key as usize % sizes.len()]), "{key}: {} bytes", text.len());
    }
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_that_breaks_off_is_no_answer_and_one_that_ends_with_the_connection_is() {
    let text = result(7);
    let ways = [
        (format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{text}", text.len() + 1), false),
        (format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{text}\r\n", text.len()), false),
        (format!("HTTP/1.1 200 OK\r\n\r\n{text}"), true),
        (format!("HTTP/1.0 200 OK\r\n\r\n{text}"), true),
    ];
    for (bytes, whole) in ways {
        let shown = bytes.clone();
        let server = Server::start(move |_| Act::Last(bytes.clone().into_bytes())).await;
        let event = Opened::new(&server).await.ask(call(7)).await;
        if whole {
            assert_eq!(event.received().0, text, "{shown}");
        } else {
            let why = event.failed(7, FaultKind::BackendDied);
            assert!(why.contains("in the middle of the answer"), "{shown}: {why}");
        }
    }
}

/// What follows a response without having been asked for could be taken for the next answer.
#[tokio::test]
async fn a_connection_that_brings_more_than_was_asked_for_is_not_used_again() {
    let server = Server::start(|seen| Act::Write([json(&result(seen.id())), json(&result(99))].concat())).await;
    let mut opened = Opened::new(&server).await;
    for key in 1..4 {
        assert_eq!(opened.ask(call(key)).await.received().0, result(key));
    }
    assert_eq!(server.connections(), 3);
}

#[tokio::test]
async fn a_head_without_end_is_given_up() {
    let server = Server::start(|_| {
        let lines = b"HTTP/1.1 200 OK\r\nx: ".iter().copied().chain(std::iter::repeat_n(b'y', 200_000));
        Act::Write(lines.collect())
    })
    .await;
    let text = Opened::new(&server).await.ask(call(7)).await.failed(7, FaultKind::BackendGarbage);
    assert!(text.contains("too large"), "{text}");
}

/// The server answers after the first bytes, and reads no further: nobody waits for the rest to be written.
#[tokio::test]
async fn a_request_that_is_refused_before_it_was_read_gets_its_refusal() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let refusing = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; 100]).await.unwrap();
        stream.write_all(&response("413 Payload Too Large", "", "too much")).await.unwrap();
        stream
    });
    let server =
        Server { address, seen: Default::default(), connections: Default::default(), hung_up: Default::default() };
    let mut opened = Opened::new(&server).await;
    let text = opened.ask(call(7).with_bytes_for_test(large(7, 32_000_000))).await;
    let text = text.failed(7, FaultKind::BackendRefused);
    assert!(text.contains("HTTP 413: too much"), "{text}");
    assert_eq!(opened.connector.backend.pool.idle(), 0);
    drop(refusing.await.unwrap());
}
