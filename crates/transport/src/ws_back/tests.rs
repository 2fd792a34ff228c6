//! Links to a WebSocket server on a real socket.

use super::*;
use crate::child::recorder::{RecordedEvent, RecordedEvents, outbound, recorder};
use futures_util::{SinkExt as _, StreamExt as _};
use signalbox_engine::FaultKind;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

struct Server(TcpListener);

impl Server {
    async fn start() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn spec(&self) -> WsSpec {
        WsSpec::new("b", format!("ws://{}/mcp?k=1", self.0.local_addr().unwrap()))
    }

    /// Accepts a connection; the headers of its handshake come with it.
    async fn accept(&self, protocol: Option<&'static str>) -> (WebSocketStream<TcpStream>, http::HeaderMap) {
        let (socket, _) = self.0.accept().await.unwrap();
        let mut seen = http::HeaderMap::new();
        #[expect(clippy::result_large_err, reason = "the library wants it so")]
        let look = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
            assert_eq!(request.uri().path_and_query().unwrap(), "/mcp?k=1");
            seen.clone_from(request.headers());
            if let Some(protocol) = protocol {
                response.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static(protocol));
            }
            Ok(response)
        };
        let socket = accept_hdr_async(socket, look).await.unwrap();
        (socket, seen)
    }

    /// A link and the server's end of it.
    async fn linked(&self, spec: WsSpec) -> (Arc<dyn Link>, RecordedEvents, WebSocketStream<TcpStream>) {
        let (events, recorded) = recorder();
        let connector = WsConnector::new(spec).unwrap();
        let (link, (socket, _)) = tokio::join!(connector.open(events), self.accept(Some("mcp")));
        (link.unwrap(), recorded, socket)
    }

    /// Answers one handshake with these bytes and tells the fault that comes of it.
    async fn refusing(&self, answer: &'static str) -> Fault {
        let (events, _recorded) = recorder();
        let connector = WsConnector::new(self.spec()).unwrap();
        let refuse = async {
            let (mut socket, _) = self.0.accept().await.unwrap();
            let mut head = [0; 4096];
            let _ = socket.read(&mut head).await.unwrap();
            socket.write_all(answer.as_bytes()).await.unwrap();
        };
        tokio::join!(connector.open(events), refuse).0.err().unwrap()
    }
}

async fn next(socket: &mut WebSocketStream<TcpStream>) -> Message {
    socket.next().await.unwrap().unwrap()
}

#[tokio::test]
async fn messages_go_as_text_frames_and_come_back_in_either_kind() {
    let server = Server::start().await;
    let (link, mut recorded, mut socket) = server.linked(server.spec()).await;
    link.send(outbound("{\"a\":\n1}", None)).unwrap();
    assert_eq!(next(&mut socket).await, Message::text("{\"a\":\n1}"));
    socket.send(Message::text("{\"b\":\n2}")).await.unwrap();
    assert_eq!(recorded.message().await, "{\"b\":\n2}");
    socket.send(Message::Ping(bytes::Bytes::from_static(b"?"))).await.unwrap();
    socket.send(Message::binary(&b"{}"[..])).await.unwrap();
    assert_eq!(recorded.message().await, "{}");
    assert_eq!(next(&mut socket).await, Message::Pong(bytes::Bytes::from_static(b"?")));
}

#[tokio::test]
async fn the_handshake_offers_mcp_and_carries_the_configured_headers() {
    let server = Server::start().await;
    let mut spec = server.spec();
    spec.headers = vec![(header::AUTHORIZATION, HeaderValue::from_static("Bearer secret"))];
    let connector = WsConnector::new(spec).unwrap();
    assert_eq!((connector.kind(), connector.is_process(), connector.carries_headers()), ("websocket", false, false));
    let (events, _recorded) = recorder();
    // A server that chooses no subprotocol is taken too.
    let (link, (_socket, seen)) = tokio::join!(connector.open(events), server.accept(None));
    assert!(link.is_ok());
    assert_eq!(
        (&seen["sec-websocket-protocol"], &seen["authorization"]),
        (&"mcp".parse().unwrap(), &"Bearer secret".parse().unwrap())
    );
}

#[tokio::test]
async fn a_backend_that_does_not_shake_hands_is_down() {
    let server = Server::start().await;
    for (answer, expected) in [
        ("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "with status 404"),
        (
            "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-accept: x\r\n\r\n",
            "with a wrong sec-websocket-accept header",
        ),
        ("SSH-2.0-x\r\n", "with something that cannot be read"),
        ("", "with something that cannot be read"),
    ] {
        let fault = server.refusing(answer).await;
        assert_eq!(fault.kind, FaultKind::BackendDown, "{fault}");
        assert!(fault.message.starts_with("backend `b` answered the WebSocket handshake "), "{fault}");
        assert!(fault.message.contains(expected), "{fault}");
    }
    let spec = server.spec();
    drop(server);
    let fault = WsConnector::new(spec).unwrap().open(recorder().0).await.err().unwrap();
    assert!(fault.message.starts_with("backend `b` cannot be reached at 127.0.0.1:"), "{fault}");
}

#[tokio::test]
async fn the_end_is_told_once_and_nothing_is_taken_after_it() {
    let server = Server::start().await;
    let (link, mut recorded, mut socket) = server.linked(server.spec()).await;
    socket.close(Some(CloseFrame { code: CloseCode::Away, reason: "bye".into() })).await.unwrap();
    assert_eq!(recorded.lost().await, "closed the connection with code 1001: bye");
    let fault = link.send(outbound("{}", Some(1))).unwrap_err();
    assert_eq!(fault.kind, FaultKind::BackendDown);
    link.close();
    recorded.silence().await;

    let (_link, mut recorded, socket) = server.linked(server.spec()).await;
    drop(socket);
    assert!(recorded.lost().await.starts_with("broke the connection: "));
}

#[tokio::test]
async fn closing_sends_what_was_queued_and_then_says_goodbye() {
    let server = Server::start().await;
    let (link, mut recorded, mut socket) = server.linked(server.spec()).await;
    link.send(outbound("{\"last\":1}", None)).unwrap();
    link.close();
    link.send(outbound("{}", None)).unwrap_err();
    assert_eq!(next(&mut socket).await, Message::text("{\"last\":1}"));
    assert!(matches!(next(&mut socket).await, Message::Close(Some(frame)) if frame.code == CloseCode::Normal));
    assert_eq!(recorded.lost().await, "was closed by the gateway");

    let (link, mut recorded, _socket) = server.linked(server.spec()).await;
    drop(link);
    assert_eq!(recorded.lost().await, "was closed by the gateway");
}

#[tokio::test]
async fn a_message_that_is_too_large_ends_the_connection_with_a_code() {
    let server = Server::start().await;
    let spec = WsSpec { max_message: 100, ..server.spec() };
    let (_link, mut recorded, mut socket) = server.linked(spec).await;
    socket.send(Message::text("x".repeat(101))).await.unwrap();
    assert_eq!(recorded.lost().await, "sent a message that is too large");
    assert!(matches!(next(&mut socket).await, Message::Close(Some(frame)) if frame.code == CloseCode::Size));
}

#[tokio::test]
async fn what_is_no_text_is_refused_and_the_next_message_goes() {
    let server = Server::start().await;
    let (link, mut recorded, mut socket) = server.linked(server.spec()).await;
    let bad = outbound("", Some(7)).with_bytes_for_test(&b"\"\xff\""[..]);
    link.send(bad).unwrap();
    link.send(outbound("{}", None)).unwrap();
    assert!(
        matches!(recorded.next().await, RecordedEvent::Failed(7, fault) if fault.kind == FaultKind::InvalidRequest)
    );
    assert_eq!(next(&mut socket).await, Message::text("{}"));
}

#[tokio::test]
async fn a_backend_that_does_not_read_fills_the_queue_and_no_more() {
    let server = Server::start().await;
    let (link, _recorded, _socket) = server.linked(server.spec()).await;
    let large = "x".repeat(1024 * 1024);
    let mut sent = 0;
    let fault = loop {
        match link.send(outbound(&large, None)) {
            Ok(()) => sent += 1,
            Err(fault) => break fault,
        }
        assert!(sent < 1000, "nothing is refused");
        tokio::task::yield_now().await;
    };
    assert_eq!(fault.kind, FaultKind::Overloaded);
    assert!(sent >= crate::send_queue::QUEUE_BYTES / large.len(), "{sent}");
}

#[test]
fn what_cannot_be_used_is_refused_and_not_repeated() {
    for url in
        ["", "ws://", "http://h/secret", "wsss://h/secret", "https://h/secret", "ws://me:secret@h/", "ws://h:x/secret"]
    {
        let error = WsConnector::new(WsSpec::new("b", url)).unwrap_err();
        assert!(!error.to_string().contains("secret"), "{url}: {error}");
    }
    let mut spec = WsSpec::new("b", "ws://h/mcp");
    spec.headers = vec![(header::SEC_WEBSOCKET_KEY, HeaderValue::from_static("x"))];
    assert!(matches!(WsConnector::new(spec), Err(SpecError::ReservedHeader { .. })));
}
