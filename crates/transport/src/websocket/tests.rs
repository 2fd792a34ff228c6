//! Two ends of a WebSocket over a pipe in memory.

use super::*;
use std::future::poll_fn;
use tokio::io::{DuplexStream, duplex};

const MAX: usize = 1000;
const PATIENCE: Patience = Patience { silent: 3, unfinished: 3 };

async fn ends(room: usize) -> (Duplex<DuplexStream>, Duplex<DuplexStream>) {
    let (one, other) = duplex(room);
    (
        Duplex::new(one, b"", Role::Client, MAX, None, PATIENCE).await,
        Duplex::new(other, b"", Role::Server, MAX, None, PATIENCE).await,
    )
}

fn text(text: &str) -> Utf8Bytes {
    text.to_owned().into()
}

/// Gives out these messages and then waits for ever.
fn source(mut messages: Vec<Utf8Bytes>) -> impl FnMut(&mut Context<'_>) -> Poll<Option<Utf8Bytes>> {
    messages.reverse();
    move |_| messages.pop().map_or(Poll::Pending, |message| Poll::Ready(Some(message)))
}

/// Drives an end until a message comes or it ends.
async fn until(end: &mut Duplex<DuplexStream>, messages: Vec<Utf8Bytes>) -> SocketEvent {
    let mut source = source(messages);
    loop {
        match poll_fn(|cx| end.poll_step(cx, true, &mut source)).await {
            SocketEvent::Written => {}
            step => return step,
        }
    }
}

async fn message(end: &mut Duplex<DuplexStream>) -> String {
    match until(end, Vec::new()).await {
        SocketEvent::Message(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        other => panic!("expected a message, got {other:?}"),
    }
}

#[tokio::test]
async fn messages_go_both_ways_at_once_though_neither_side_has_room_for_them() {
    let (mut client, mut server) = ends(64).await;
    let long = |letter: &str| vec![text(&letter.repeat(900))];
    let (at_client, at_server) = tokio::join!(until(&mut client, long("a")), until(&mut server, long("b")));
    let SocketEvent::Message(at_server) = at_server else { panic!("{at_server:?}") };
    let SocketEvent::Message(at_client) = at_client else { panic!("{at_client:?}") };
    assert_eq!((&at_server[..3], &at_client[..3]), (&b"aaa"[..], &b"bbb"[..]));
}

#[tokio::test]
async fn a_source_that_never_runs_dry_does_not_keep_the_other_side_from_being_heard() {
    let (mut client, mut server) = ends(4096).await;
    let hearing = async {
        let mut unread = 0;
        loop {
            let endless = |_: &mut Context<'_>| Poll::Ready(Some(text("more")));
            match poll_fn(|cx| server.poll_step(cx, true, endless)).await {
                SocketEvent::Written => unread += 1,
                SocketEvent::Message(bytes) => break assert_eq!(bytes, "stop"),
                other => panic!("{other:?} after {unread}"),
            }
            tokio::task::yield_now().await;
        }
    };
    let saying = async {
        client.socket.send(Message::Text(text("stop"))).await.unwrap();
        while matches!(client.socket.next().await, Some(Ok(_))) {}
    };
    tokio::select! {
        () = hearing => {}
        () = saying => panic!("the connection ended"),
    }
}

#[tokio::test]
async fn what_is_not_to_be_read_is_not_read() {
    let (mut client, mut server) = ends(4096).await;
    let mut given = source(vec![text("one")]);
    assert!(matches!(poll_fn(|cx| client.poll_step(cx, true, &mut given)).await, SocketEvent::Written));
    let refused = poll_fn(|cx| Poll::Ready(server.poll_step(cx, false, |_| Poll::<Option<Utf8Bytes>>::Pending))).await;
    assert!(refused.is_pending());
    assert_eq!(message(&mut server).await, "one");
}

#[tokio::test]
async fn a_ping_is_answered_and_seen_as_a_sign_of_life() {
    let (mut client, mut server) = ends(4096).await;
    let before = client.socket.get_ref().moves();
    client.socket.send(Message::Ping(Bytes::from_static(b"x"))).await.unwrap();
    client.socket.send(Message::Text(text("after"))).await.unwrap();
    assert_eq!(message(&mut server).await, "after");
    assert_eq!(client.socket.next().await.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"x")));
    assert!(client.socket.get_ref().moves() > before);
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_it_with_a_code() {
    let (mut client, mut server) = ends(64).await;
    let too_large = vec![text(&"x".repeat(MAX + 1))];
    let refused = async {
        let SocketEvent::Ended(ending) = until(&mut server, Vec::new()).await else { panic!("no end") };
        assert_eq!((&ending, ending.code()), (&Ending::TooLarge, Some(CloseCode::Size)));
        server.close(CloseCode::Size, "too large").await;
    };
    let told = async {
        let SocketEvent::Ended(ending) = until(&mut client, too_large).await else { panic!("no end") };
        assert_eq!(ending.to_string(), "closed the connection with code 1009: too large");
        assert_eq!(ending.code(), None);
        client.closed().await;
    };
    tokio::join!(told, refused);
}

#[tokio::test]
async fn what_is_no_websocket_ends_it() {
    let (mut raw, other) = duplex(4096);
    let mut server = Duplex::new(other, b"", Role::Server, MAX, None, PATIENCE).await;
    raw.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let SocketEvent::Ended(ending) = until(&mut server, Vec::new()).await else { panic!("no end") };
    assert_eq!(ending.code(), Some(CloseCode::Protocol), "{ending}");
    let (raw, other) = duplex(4096);
    let mut server = Duplex::new(other, b"", Role::Server, MAX, None, PATIENCE).await;
    drop(raw);
    let SocketEvent::Ended(ending) = until(&mut server, Vec::new()).await else { panic!("no end") };
    assert_eq!(ending.to_string(), "broke the connection: it ended without a closing");
}
