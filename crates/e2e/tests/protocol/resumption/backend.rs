//! An HTTP backend of the old era that counts: in the progress of a call, and in log messages that belong to no call.
//! It goes on after any number that it is asked to, and may lose its connections as often as its client does.

use crate::resumption::dice::Dice;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// How often a stream looks whether it may go on.
const LOOK: Duration = Duration::from_millis(1);
const OK_JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";

/// One row of numbers.
#[derive(Default)]
pub struct Row {
    /// The newest number that arrived at the other end.
    pub seen: AtomicU64,
    /// How far it may be ahead of that.
    pub window: AtomicU64,
    /// Set when it shall come to its end.
    pub stop: AtomicBool,
    /// Set if its connections break.
    pub breaks: AtomicBool,
    /// How often they did.
    pub broken: AtomicU64,
    /// The highest number that was written.
    pub highest: AtomicU64,
}

/// What the server knows.
#[derive(Default)]
pub struct Backend {
    /// The numbers in the progress of a call.
    pub call: Row,
    /// The numbers in log messages.
    pub general: Row,
    /// Every request: session and method.
    pub heard: Mutex<Vec<(String, String)>>,
    sessions: Mutex<HashSet<String>>,
    counting: Mutex<HashSet<String>>,
    next: AtomicU64,
}

/// Starts it on a free port.
pub async fn start() -> (Arc<Backend>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let backend = Arc::<Backend>::default();
    for row in [&backend.call, &backend.general] {
        row.window.store(64, SeqCst);
    }
    let shared = Arc::clone(&backend);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(Line { stream, backend: Arc::clone(&shared) }.serve());
        }
    });
    (backend, address)
}

impl Backend {
    /// Forgets every session: their streams end, and whoever names one is told that there is none.
    pub fn forget(&self) {
        self.sessions.lock().unwrap().clear();
    }

    /// The sessions in which this method was heard, oldest first.
    pub fn heard(&self, method: &str) -> Vec<String> {
        let heard = self.heard.lock().unwrap();
        heard.iter().filter(|(_, one)| one == method).map(|(session, _)| session.clone()).collect()
    }

    fn knows(&self, session: &str) -> bool {
        self.sessions.lock().unwrap().contains(session)
    }
}

struct Request {
    verb: String,
    session: String,
    last_event: String,
    body: Value,
}

/// What a stream counts in.
#[derive(Clone)]
enum Count {
    /// The progress of the call of this id, under this token.
    Call(String, String),
    /// The log messages of a session.
    Logs(String),
}

impl Count {
    /// What an event id names, and its number.
    fn of(id: &str) -> Option<(Self, u64)> {
        let parts: Vec<&str> = id.split('/').collect();
        match &parts[..] {
            ["call", id, token, number] => {
                Some((Self::Call((*id).to_owned(), (*token).to_owned()), number.parse().ok()?))
            }
            ["logs", session, number] => Some((Self::Logs((*session).to_owned()), number.parse().ok()?)),
            _ => None,
        }
    }

    fn id(&self, number: u64) -> String {
        match self {
            Self::Call(id, token) => format!("call/{id}/{token}/{number}"),
            Self::Logs(session) => format!("logs/{session}/{number}"),
        }
    }

    /// The message with this number, or the one that says how far the row went.
    fn message(&self, number: u64, end: bool) -> Value {
        let raw = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        match self {
            Self::Call(id, _) if end => json!({"jsonrpc": "2.0", "id": raw(id),
                "result": {"content": [{"type": "text", "text": (number - 1).to_string()}]}}),
            Self::Call(_, token) => json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": raw(token), "progress": number}}),
            Self::Logs(_) => json!({"jsonrpc": "2.0", "method": "notifications/message",
                "params": {"level": "error", "data": if end { json!({"end": number - 1}) } else { json!(number) }}}),
        }
    }
}

struct Line {
    stream: TcpStream,
    backend: Arc<Backend>,
}

impl Line {
    async fn serve(mut self) -> Option<()> {
        let mut buffer = Vec::new();
        loop {
            let request = read(&mut self.stream, &mut buffer).await?;
            let method = request.body["method"].as_str().unwrap_or(&request.verb).to_owned();
            self.backend.heard.lock().unwrap().push((request.session.clone(), method.clone()));
            if method == "initialize" {
                self.greet(&request.body).await?;
            } else if !self.backend.knows(&request.session) {
                self.write("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await?;
            } else if request.verb == "GET" {
                let fresh = || (Count::Logs(request.session.clone()), 0);
                let (count, after) = Count::of(&request.last_event).unwrap_or_else(fresh);
                self.count(&request.session, &count, after).await?;
            } else if request.body["id"].is_null() {
                self.write("HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await?;
            } else {
                self.answer(&request, &method).await?;
            }
        }
    }

    async fn greet(&mut self, message: &Value) -> Option<()> {
        let session = format!("s{}", self.backend.next.fetch_add(1, SeqCst) + 1);
        self.backend.sessions.lock().unwrap().insert(session.clone());
        let result = json!({"protocolVersion": "2025-06-18", "serverInfo": {"name": "counter", "version": "1"},
            "capabilities": {"tools": {}, "logging": {}, "resources": {"subscribe": true}}});
        self.json(&format!("mcp-session-id: {session}\r\n"), &message["id"], &result).await
    }

    async fn answer(&mut self, request: &Request, method: &str) -> Option<()> {
        let message = &request.body;
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        let result = match (method, message["params"]["name"].as_str()) {
            ("tools/list", _) => json!({"tools": [tool("count"), tool("count_in_logs")]}),
            ("resources/list", _) => json!({"resources": [{"uri": "x://y", "name": "y"}]}),
            ("resources/templates/list", _) => json!({"resourceTemplates": []}),
            ("tools/call", Some("count")) => {
                let token = message["params"]["_meta"]["progressToken"].to_string();
                let count = Count::Call(message["id"].to_string(), token);
                return self.count(&request.session, &count, 0).await;
            }
            ("tools/call", Some("count_in_logs")) => {
                self.backend.counting.lock().unwrap().insert(request.session.clone());
                json!({"content": []})
            }
            _ => json!({}),
        };
        self.json("", &message["id"], &result).await
    }

    /// Counts on after this number, until the row ends, the session is forgotten or the connection breaks.
    async fn count(&mut self, session: &str, count: &Count, after: u64) -> Option<()> {
        self.write(EVENTS).await?;
        let backend = Arc::clone(&self.backend);
        let row = if matches!(count, Count::Call(..)) { &backend.call } else { &backend.general };
        // Each connection brings something, and no two the same.
        let mut left = 1 + Dice::new(after + 7 * row.broken.load(SeqCst)).up_to(20);
        for number in after + 1.. {
            let end = loop {
                if !backend.knows(session) {
                    return None;
                }
                let counts = matches!(count, Count::Call(..)) || backend.counting.lock().unwrap().contains(session);
                if counts && row.stop.load(SeqCst) && number > row.highest.load(SeqCst) {
                    break true;
                }
                if counts && number <= row.seen.load(SeqCst) + row.window.load(SeqCst) {
                    break false;
                }
                tokio::time::sleep(LOOK).await;
            };
            if !end {
                row.highest.fetch_max(number, SeqCst);
            }
            let event = format!("id: {}\nretry: 20\ndata: {}\n\n", count.id(number), count.message(number, end));
            if row.breaks.load(SeqCst) && left == 0 {
                row.broken.fetch_add(1, SeqCst);
                // The event is announced in full and cut.
                let half = &event[..event.len() / 2];
                self.write(&format!("{:x}\r\n{half}", event.len())).await?;
                return None;
            }
            left = left.saturating_sub(1);
            self.write(&format!("{:x}\r\n{event}\r\n", event.len())).await?;
            if end && matches!(count, Count::Call(..)) {
                return self.write("0\r\n\r\n").await;
            }
            if end {
                // The stream for what belongs to no call stays.
                while backend.knows(session) {
                    tokio::time::sleep(LOOK).await;
                }
                return None;
            }
        }
        None
    }

    async fn json(&mut self, headers: &str, id: &Value, result: &Value) -> Option<()> {
        let body = json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string();
        self.write(&format!("{OK_JSON}{headers}content-length: {}\r\n\r\n{body}", body.len())).await
    }

    async fn write(&mut self, text: &str) -> Option<()> {
        self.stream.write_all(text.as_bytes()).await.ok()
    }
}

async fn read(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let header = |name: &str| {
                let mut lines = head.lines().filter_map(|line| line.split_once(':'));
                let found = lines.find(|(found, _)| found.eq_ignore_ascii_case(name));
                found.map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
            };
            let length: usize = header("content-length").parse().unwrap_or(0);
            if buffer.len() >= end + 4 + length {
                let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or(Value::Null);
                buffer.drain(..end + 4 + length);
                let verb = head.split(' ').next().unwrap_or_default().to_owned();
                return Some(Request {
                    verb,
                    session: header("mcp-session-id"),
                    last_event: header("last-event-id"),
                    body,
                });
            }
        }
        let mut chunk = [0; 8192];
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        buffer.extend_from_slice(&chunk[..read]);
    }
}
