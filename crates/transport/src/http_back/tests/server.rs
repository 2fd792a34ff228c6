//! A scripted HTTP server on a real socket, and a recorder of what a link posts.

use super::super::{HttpConnector, HttpSpec};
use bytes::Bytes;
use signalbox_engine::back::ToBackend;
use signalbox_engine::{Fault, FaultKind, Principal};
use signalbox_runtime::{Connector as _, Link, LinkEvents};
use signalbox_wire::{RejectedMessage, Revision};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct SeenRequest {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl SeenRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self.headers.iter().filter(|(key, _)| key == name);
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there twice");
        value
    }

    pub fn verb(&self) -> &str {
        self.line.split(' ').next().unwrap()
    }

    /// The id in the body.
    pub fn id(&self) -> u64 {
        let (_, rest) = self.body.split_once("\"id\":").unwrap();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap();
        rest[..end].parse().unwrap()
    }
}

/// What the server does about a request.
pub enum Act {
    /// Writes this and goes on.
    Write(Vec<u8>),
    /// Writes these with a pause after each, and goes on.
    Slowly(Vec<Vec<u8>>, Duration),
    /// Writes this and closes.
    Last(Vec<u8>),
    /// Closes without a word.
    Close,
    /// Does nothing until the client closes, and notes that.
    Hang,
    /// Writes what comes, until that is none or the client closes.
    Follow(mpsc::Receiver<Option<String>>),
}

type Script = dyn Fn(&SeenRequest) -> Act + Send + Sync;

/// The server.
pub struct Server {
    pub address: SocketAddr,
    pub seen: Arc<Mutex<Vec<SeenRequest>>>,
    pub connections: Arc<AtomicUsize>,
    /// How many connections the client has closed.
    pub hung_up: Arc<AtomicUsize>,
}

impl Server {
    pub async fn start(script: impl Fn(&SeenRequest) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            address: listener.local_addr().unwrap(),
            seen: Arc::default(),
            connections: Arc::default(),
            hung_up: Arc::default(),
        };
        let script: Arc<Script> = Arc::new(script);
        let (seen, connections) = (server.seen.clone(), server.connections.clone());
        let hung_up = server.hung_up.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                stream.set_nodelay(true).unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                let (script, seen, hung_up) = (script.clone(), seen.clone(), hung_up.clone());
                tokio::spawn(async move {
                    serve(stream, &*script, &seen).await;
                    hung_up.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        server
    }

    pub fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub fn seen(&self) -> Vec<SeenRequest> {
        self.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn serve(mut stream: TcpStream, script: &Script, log: &Mutex<Vec<SeenRequest>>) {
    let mut buffer = Vec::new();
    while let Some(seen) = read_request(&mut stream, &mut buffer).await {
        log.lock().unwrap().push(seen.clone());
        let ok = match script(&seen) {
            Act::Write(bytes) => stream.write_all(&bytes).await.is_ok(),
            Act::Slowly(parts, pause) => {
                for part in parts {
                    if stream.write_all(&part).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(pause).await;
                }
                true
            }
            Act::Last(bytes) => {
                let _ = stream.write_all(&bytes).await;
                false
            }
            Act::Close => false,
            Act::Hang => {
                let _ = stream.read(&mut [0; 16]).await;
                false
            }
            Act::Follow(said) => {
                follow(&mut stream, said).await;
                false
            }
        };
        if !ok {
            return;
        }
    }
}

async fn follow(stream: &mut TcpStream, mut said: mpsc::Receiver<Option<String>>) {
    loop {
        tokio::select! {
            _ = stream.readable() => return,
            next = said.recv() => match next.flatten() {
                Some(text) => {
                    if stream.write_all(text.as_bytes()).await.is_err() {
                        return;
                    }
                }
                None => return,
            },
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<SeenRequest> {
    let head = loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    };
    let text = String::from_utf8(buffer[..head].to_vec()).unwrap();
    let mut lines = text.trim_end().split("\r\n");
    let line = lines.next().unwrap().to_owned();
    let headers: Vec<(String, String)> = lines
        .map(|line| line.split_once(": ").unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.map_or(0, |(_, value)| value.parse().unwrap());
    while buffer.len() < head + length {
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
    let body = String::from_utf8(buffer[head..head + length].to_vec()).unwrap();
    buffer.drain(..head + length);
    Some(SeenRequest { line, headers, body })
}

/// A response with a length.
pub fn response(status: &str, headers: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A JSON response.
pub fn json(body: &str) -> Vec<u8> {
    response("200 OK", "content-type: application/json\r\n", body)
}

/// The head of an event stream in chunks.
pub fn events_head() -> Vec<u8> {
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n".to_vec()
}

/// One chunk.
pub fn chunk(text: &str) -> Vec<u8> {
    format!("{:x}\r\n{text}\r\n", text.len()).into_bytes()
}

/// The end of the chunks.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// A whole event stream in one chunk.
pub fn events(text: &str) -> Vec<u8> {
    [events_head(), chunk(text), LAST_CHUNK.to_vec()].concat()
}

/// What a link posted.
#[derive(Debug)]
pub enum Event {
    Received(String, Option<u64>, Option<u16>),
    Failed(u64, Fault),
    Expired(ToBackend),
    Doubted,
    Parted(u64, Option<Duration>),
    Garbage(String),
}

impl Event {
    /// The fault, which must be of this kind, for this key.
    #[track_caller]
    pub fn failed(self, key: u64, kind: FaultKind) -> String {
        match self {
            Self::Failed(found, fault) => {
                assert_eq!((found, fault.kind), (key, kind), "{fault}");
                fault.message
            }
            other => panic!("{other:?}"),
        }
    }

    #[track_caller]
    pub fn received(self) -> (String, Option<u64>, Option<u16>) {
        match self {
            Self::Received(text, about, status) => (text, about, status),
            other => panic!("{other:?}"),
        }
    }
}

struct Recorder(mpsc::Sender<Event>, Option<Principal>);

impl LinkEvents for Recorder {
    fn user(&self) -> Option<signalbox_engine::BackendUser> {
        self.1.clone().map(signalbox_engine::BackendUser::from)
    }

    fn received(&self, bytes: Bytes, about: Option<u64>, status: Option<u16>) {
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        self.0.try_send(Event::Received(text, about, status)).unwrap();
    }

    fn failed(&self, key: u64, fault: Fault) {
        self.0.try_send(Event::Failed(key, fault)).unwrap();
    }

    fn expired(&self, message: ToBackend) {
        self.0.try_send(Event::Expired(message)).unwrap();
    }

    fn doubted(&self) {
        self.0.try_send(Event::Doubted).unwrap();
    }

    fn parted(&self, key: u64, retry: Option<Duration>) {
        self.0.try_send(Event::Parted(key, retry)).unwrap();
    }

    fn garbage(&self, why: &RejectedMessage) {
        self.0.try_send(Event::Garbage(why.to_string())).unwrap();
    }

    fn lost(&self, why: String) {
        panic!("an HTTP link is never lost: {why}");
    }
}

/// A link and what it posts.
pub struct Opened {
    pub link: Arc<dyn Link>,
    pub events: mpsc::Receiver<Event>,
    pub connector: HttpConnector,
    /// The waits that the backend has named when it closed streams.
    pub parted: Vec<(u64, Option<Duration>)>,
}

impl Opened {
    pub async fn to(spec: HttpSpec) -> Self {
        Self::by(None, spec).await
    }

    /// The link of a caller.
    pub async fn by(caller: Option<Principal>, spec: HttpSpec) -> Self {
        let connector = HttpConnector::new(spec).unwrap();
        let (sender, events) = mpsc::channel(10_000);
        let link = connector.open(Arc::new(Recorder(sender, caller))).await.unwrap();
        Self { link, events, connector, parted: Vec::new() }
    }

    pub async fn new(server: &Server) -> Self {
        Self::to(HttpSpec::new("demo", server.url())).await
    }

    pub async fn next(&mut self) -> Event {
        loop {
            let next = tokio::time::timeout(Duration::from_secs(10), self.events.recv());
            match next.await.expect("nothing was posted").unwrap() {
                Event::Parted(key, retry) => self.parted.push((key, retry)),
                other => return other,
            }
        }
    }

    /// Sends a request and gives what comes first.
    pub async fn ask(&mut self, message: ToBackend) -> Event {
        self.link.send(message).unwrap();
        self.next().await
    }
}

/// A request of the old era.
pub fn call(key: u64) -> ToBackend {
    message(key, "tools/call", Revision::V2025_11_25)
}

/// A request.
pub fn message(key: u64, method: &'static str, revision: Revision) -> ToBackend {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{key},"method":"{method}","params":{{}}}}"#);
    ToBackend::for_test(Some(key), method, Some(revision), body)
}

/// `initialize`.
pub fn initialize(key: u64) -> ToBackend {
    let body = format!(r#"{{"jsonrpc":"2.0","id":{key},"method":"initialize","params":{{}}}}"#);
    ToBackend::for_test(Some(key), "initialize", None, body)
}

/// A notification of the old era.
pub fn note(method: &'static str) -> ToBackend {
    let body = format!(r#"{{"jsonrpc":"2.0","method":"{method}"}}"#);
    ToBackend::for_test(None, method, Some(Revision::V2025_11_25), body)
}

/// The answer to a request.
pub fn result(id: u64) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#)
}

/// Waits until it is so.
pub async fn until(what: impl Fn() -> bool) {
    for _ in 0..1000 {
        if what() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("it did not happen");
}
