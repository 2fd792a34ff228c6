//! Raw sockets on both sides, so that what is on the wire is what is compared.

use super::*;
use crate::tap::{HttpTap, Running};
use signalbox_engine::fact::{MessageFact, Point};
use signalbox_engine::{Caller, Fact, FactSink};
use std::net::SocketAddr;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl FactSink for Notes {
    fn wants_messages(&self) -> bool {
        true
    }

    fn fact(&self, fact: &Fact) {
        let line = match fact {
            Fact::Message(MessageFact { point, exchange, bytes, .. }) => {
                let arrow = if *point == Point::ClientIn { '>' } else { '<' };
                format!("{arrow}{} {}", exchange.map_or(0, |id| id.0), String::from_utf8_lossy(bytes))
            }
            Fact::Finished(end) => format!("{} {}", end.method, end.outcome.label()),
            _ => return,
        };
        self.0.lock().unwrap().push(line);
    }
}

struct Scene {
    server: TcpListener,
    address: SocketAddr,
    notes: Arc<Notes>,
    running: Running<HttpEvent>,
    stop: watch::Sender<bool>,
    serving: tokio::task::JoinHandle<()>,
}

impl Scene {
    async fn new(path: &str) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{path}", server.local_addr().unwrap());
        let notes = Arc::new(Notes::default());
        let tap = HttpTap::new("srv".into(), Caller::anonymous("http"), 1 << 20);
        let (feed, running) = Feed::start(tap, vec![notes.clone()]).unwrap();
        let proxy = Proxy::new(&url, BackTlsSpec::default(), Some(feed)).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopping) = watch::channel(false);
        let serving = tokio::spawn(async move { proxy.serve(listener, stopping).await });
        Self { server, address, notes, running, stop, serving }
    }

    async fn client(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    async fn finish(self) -> Vec<String> {
        self.stop.send_replace(true);
        self.serving.await.unwrap();
        let running = self.running;
        tokio::task::spawn_blocking(move || running.finish()).await.unwrap();
        self.notes.0.lock().unwrap().clone()
    }
}

/// Reads until `end` stands at the end of what was read.
async fn until(socket: &mut TcpStream, end: &str) -> String {
    let mut text = Vec::new();
    while !text.ends_with(end.as_bytes()) {
        let mut byte = [0];
        let read = socket.read(&mut byte).await.unwrap();
        assert_eq!(read, 1, "{:?} does not end with {end:?}", String::from_utf8_lossy(&text));
        text.push(byte[0]);
    }
    String::from_utf8(text).unwrap()
}

/// Proves S-50.
#[tokio::test]
async fn heads_and_bodies_pass_as_they_are_but_for_host_and_the_connection() {
    let scene = Scene::new("/mcp?key=k").await;
    let mut client = scene.client().await;
    let body = "{\"jsonrpc\": \"2.0\",\r\n \"id\":1,\"method\":\"ping\"}\n";
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nX-Odd-CASE: a, b\r\nauthorization: Bearer t\r\nConnection: keep-alive, x-hop\r\n\
         x-hop: 1\r\ncontent-length: {}\r\n\r\n",
        scene.address,
        body.len()
    );
    client.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    let (mut server, _) = scene.server.accept().await.unwrap();
    let got = until(&mut server, body).await;
    let there = scene.server.local_addr().unwrap();
    assert_eq!(
        got,
        format!(
            "POST /mcp?key=k HTTP/1.1\r\nHost: {there}\r\nX-Odd-CASE: a, b\r\nauthorization: Bearer t\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        )
    );
    let answer = "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}";
    let said = format!("HTTP/1.1 203 Odd\r\nX-Mine: 1\r\nContent-Length: {}\r\n\r\n{answer}", answer.len());
    server.write_all(said.as_bytes()).await.unwrap();
    let heard = until(&mut client, answer).await;
    assert!(heard.starts_with("HTTP/1.1 203 ") && heard.contains("\r\nX-Mine: 1\r\n"), "{heard}");
    // The same connection to the server is used again, and other paths pass too.
    client.write_all(format!("GET /other?q HTTP/1.1\r\nhost: {}\r\n\r\n", scene.address).as_bytes()).await.unwrap();
    assert!(until(&mut server, "\r\n\r\n").await.starts_with("GET /other?q HTTP/1.1\r\n"));
    server.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    assert!(until(&mut client, "\r\n\r\n").await.starts_with("HTTP/1.1 204 "));
    let notes = scene.finish().await;
    assert_eq!(notes, [format!(">1 {body}"), format!("<1 {answer}"), "ping success".to_owned()]);
}

/// Proves S-51.
#[tokio::test]
async fn events_pass_one_by_one_and_the_server_notices_a_client_that_goes() {
    let scene = Scene::new("/mcp").await;
    let mut client = scene.client().await;
    client.write_all(format!("GET /mcp HTTP/1.1\r\nhost: {}\r\n\r\n", scene.address).as_bytes()).await.unwrap();
    let (mut server, _) = scene.server.accept().await.unwrap();
    until(&mut server, "\r\n\r\n").await;
    server.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n").await.unwrap();
    until(&mut client, "\r\n\r\n").await;
    for part in [": comment\n\n", "id: 1\ndata: {\"jsonrpc\":\"2.0\",", "\"method\":\"n\"}\n\n", "data: x\n\n"] {
        server.write_all(part.as_bytes()).await.unwrap();
        let heard = until(&mut client, &format!("{part}\r\n")).await;
        assert_eq!(heard, format!("{:X}\r\n{part}\r\n", part.len()));
    }
    drop(client);
    assert_eq!(server.read(&mut [0; 1]).await.unwrap_or(0), 0);
    assert_eq!(scene.finish().await, ["<0 {\"jsonrpc\":\"2.0\",\"method\":\"n\"}", "<0 x"]);
}

#[tokio::test]
async fn a_page_from_elsewhere_is_refused_and_a_server_that_is_away_is_named() {
    let scene = Scene::new("/mcp").await;
    let mut client = scene.client().await;
    client.write_all(b"POST /mcp HTTP/1.1\r\nhost: evil.example\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    let refused = until(&mut client, "machine\n").await;
    assert!(refused.starts_with("HTTP/1.1 403 "), "{refused}");
    let Scene { server, address, notes, running, stop, serving } = scene;
    drop(server);
    let mut client = TcpStream::connect(address).await.unwrap();
    let body = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}";
    let request = format!("POST /mcp HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    client.write_all(request.as_bytes()).await.unwrap();
    let answer = until(&mut client, ")\n").await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("gave no answer"), "{answer}");
    stop.send_replace(true);
    serving.await.unwrap();
    tokio::task::spawn_blocking(move || running.finish()).await.unwrap();
    // Nothing was sent, so nothing was seen of the body.
    assert!(notes.0.lock().unwrap().iter().all(|line| !line.contains("success")));
}
