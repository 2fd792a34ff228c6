//! An HTTP backend that fails at any point it is told to, and counts what it has really done: its tool `run` is a side
//! effect that must not happen twice.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Context as _;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::broadcast;
use tokio::task::JoinHandle;

const OK_JSON: &str = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
/// Most messages that wait for a stream.
const STREAM_QUEUE: usize = 64;

/// Which era it speaks.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Speaks {
    /// 2025-06-18, in sessions.
    Old,
    /// 2026-07-28.
    New,
}

/// What it does with a request.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Mood {
    /// Answers.
    Well,
    /// Answers with this status and no message.
    Status(u16),
    /// Closes the connection as soon as the request has been read, without doing anything.
    CutBefore,
    /// Does what is asked and closes the connection without an answer.
    CutAfter,
    /// Does what is asked and closes the connection in the middle of the head of its answer.
    CutInHead,
    /// Does what is asked and closes the connection in the middle of its answer.
    CutInBody,
    /// Reads the request and says nothing.
    Silent,
}

/// A message that it heard.
#[derive(Clone, Debug)]
pub struct Heard {
    /// In which session.
    pub session: String,
    /// The method.
    pub method: String,
    /// The params.
    pub params: Value,
}

/// The server. Dropping it closes it.
pub struct FrailServer {
    shared: Arc<Shared>,
    address: SocketAddr,
    listening: Option<JoinHandle<()>>,
}

struct Shared {
    name: String,
    speaks: Speaks,
    state: Mutex<State>,
    runs: AtomicU64,
    sessions_made: AtomicU64,
    told: broadcast::Sender<String>,
}

struct State {
    calls: Mood,
    others: Mood,
    sessions: HashSet<String>,
    heard: Vec<Heard>,
    lines: Vec<JoinHandle<Option<()>>>,
}

impl FrailServer {
    /// Starts one on a free port.
    ///
    /// # Errors
    /// When no port is free.
    pub async fn start(name: &str, speaks: Speaks) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let state = State {
            calls: Mood::Well,
            others: Mood::Well,
            sessions: HashSet::new(),
            heard: Vec::new(),
            lines: Vec::new(),
        };
        let shared = Arc::new(Shared {
            name: name.to_owned(),
            speaks,
            state: Mutex::new(state),
            runs: AtomicU64::new(0),
            sessions_made: AtomicU64::new(0),
            told: broadcast::Sender::new(STREAM_QUEUE),
        });
        let listening = Some(tokio::spawn(accept(listener, Arc::clone(&shared))));
        Ok(Self { shared, address, listening })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it does with tool calls from now on.
    pub fn calls(&self, mood: Mood) {
        self.shared.lock().calls = mood;
    }

    /// What it does with everything from now on.
    pub fn everything(&self, mood: Mood) {
        let mut state = self.shared.lock();
        (state.calls, state.others) = (mood, mood);
    }

    /// How often `run` has run.
    pub fn runs(&self) -> u64 {
        self.shared.runs.load(SeqCst)
    }

    /// The messages of this method that it heard.
    pub fn heard(&self, method: &str) -> Vec<Heard> {
        self.shared.lock().heard.iter().filter(|heard| heard.method == method).cloned().collect()
    }

    /// Sends a message on every general stream.
    pub fn tell(&self, method: &str, params: &Value) {
        let _ = self.shared.told.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Goes away: nobody listens any more, every connection is closed, every session is forgotten.
    pub async fn go_away(&mut self) {
        if let Some(listening) = self.listening.take() {
            listening.abort();
            let _ = listening.await;
        }
        let lines = {
            let mut state = self.shared.lock();
            state.sessions.clear();
            std::mem::take(&mut state.lines)
        };
        for line in lines {
            line.abort();
            let _ = line.await;
        }
    }

    /// Comes back at the same address.
    ///
    /// # Errors
    /// When somebody else has taken it.
    pub async fn come_back(&mut self) -> anyhow::Result<()> {
        let listener = TcpListener::bind(self.address).await.context("the address is taken")?;
        self.listening = Some(tokio::spawn(accept(listener, Arc::clone(&self.shared))));
        Ok(())
    }
}

impl Drop for FrailServer {
    fn drop(&mut self) {
        if let Some(listening) = &self.listening {
            listening.abort();
        }
        for line in &self.shared.lock().lines {
            line.abort();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let line = tokio::spawn(Line { stream, shared: Arc::clone(&shared) }.serve());
        let mut state = shared.lock();
        state.lines.retain(|line| !line.is_finished());
        state.lines.push(line);
    }
}

struct Request {
    verb: String,
    session: String,
    body: Value,
}

/// One connection.
struct Line {
    stream: TcpStream,
    shared: Arc<Shared>,
}

impl Line {
    async fn serve(mut self) -> Option<()> {
        let mut buffer = Vec::new();
        loop {
            let request = read(&mut self.stream, &mut buffer).await?;
            let method = request.body["method"].as_str().unwrap_or(&request.verb).to_owned();
            let (mood, known) = {
                let mut state = self.shared.lock();
                let heard = Heard {
                    session: request.session.clone(),
                    method: method.clone(),
                    params: request.body["params"].clone(),
                };
                state.heard.push(heard);
                let mood = if method == "tools/call" { state.calls } else { state.others };
                (mood, state.sessions.contains(&request.session))
            };
            match mood {
                Mood::Silent => {
                    // Until the other side is gone.
                    let _ = self.stream.read(&mut [0; 1]).await;
                    return None;
                }
                Mood::CutBefore => return None,
                Mood::Status(status) => {
                    self.write(&format!(
                        "HTTP/1.1 {status} No\r\ncontent-type: text/plain\r\ncontent-length: 2\r\n\r\nno"
                    ))
                    .await?;
                    continue;
                }
                Mood::Well | Mood::CutAfter | Mood::CutInHead | Mood::CutInBody => {}
            }
            let sessions = self.shared.speaks == Speaks::Old;
            if sessions && !known && method != "initialize" && method != "server/discover" {
                self.write("HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n").await?;
            } else if request.verb == "GET" && sessions {
                self.stream_events(&request.session).await?;
            } else if request.verb != "POST" {
                self.write("HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n").await?;
            } else if request.body["id"].is_null() {
                self.write(ACCEPTED).await?;
            } else {
                self.answer(&request.body, &method, mood).await?;
            }
        }
    }

    async fn answer(&mut self, message: &Value, method: &str, mood: Mood) -> Option<()> {
        let mut headers = String::new();
        if method == "initialize" && self.shared.speaks == Speaks::Old {
            let session = format!("{}-{}", self.shared.name, self.shared.sessions_made.fetch_add(1, SeqCst) + 1);
            self.shared.lock().sessions.insert(session.clone());
            headers = format!("mcp-session-id: {session}\r\n");
        }
        let body = match self.result(method) {
            Some(result) => json!({"jsonrpc": "2.0", "id": message["id"], "result": result}),
            None => {
                json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}})
            }
        };
        let body = body.to_string();
        let whole = format!("{OK_JSON}{headers}content-length: {}\r\n\r\n{body}", body.len());
        match mood {
            Mood::CutAfter => None,
            Mood::CutInHead => {
                self.write(&OK_JSON[..OK_JSON.len() / 2]).await?;
                None
            }
            Mood::CutInBody => {
                self.write(&whole[..whole.len() - body.len() / 2]).await?;
                None
            }
            _ => self.write(&whole).await,
        }
    }

    fn result(&self, method: &str) -> Option<Value> {
        let capabilities = json!({"tools": {}, "logging": {}, "resources": {"subscribe": true}});
        let info = json!({"name": self.shared.name, "version": "1"});
        Some(match (method, self.shared.speaks) {
            ("initialize", Speaks::Old) => {
                json!({"protocolVersion": "2025-06-18", "serverInfo": info, "capabilities": capabilities})
            }
            ("server/discover", Speaks::New) => json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "serverInfo": info,
                "capabilities": capabilities, "ttlMs": 0, "cacheScope": "private"
            }),
            ("initialize", Speaks::New) | ("server/discover", Speaks::Old) => return None,
            ("tools/list", _) => json!({
                "resultType": "complete", "ttlMs": 60_000, "cacheScope": "private",
                "tools": [{"name": "run", "inputSchema": {"type": "object"}}]
            }),
            ("resources/list", _) => json!({
                "resultType": "complete", "ttlMs": 60_000, "cacheScope": "private",
                "resources": [{"uri": "x://y", "name": "y"}]
            }),
            ("resources/templates/list", _) => json!({
                "resultType": "complete", "ttlMs": 60_000, "cacheScope": "private", "resourceTemplates": []
            }),
            ("tools/call", _) => {
                let run = self.shared.runs.fetch_add(1, SeqCst) + 1;
                let text = format!("{} {run}", self.shared.name);
                json!({"resultType": "complete", "content": [{"type": "text", "text": text}]})
            }
            _ => json!({}),
        })
    }

    /// Tells what is to be told, until the session is forgotten.
    async fn stream_events(&mut self, session: &str) -> Option<()> {
        let mut told = self.shared.told.subscribe();
        self.write(EVENTS).await?;
        loop {
            let message = told.recv().await.ok()?;
            if !self.shared.lock().sessions.contains(session) {
                return None;
            }
            let event = format!("data: {message}\n\n");
            self.write(&format!("{:x}\r\n{event}\r\n", event.len())).await?;
        }
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
                return Some(Request { verb, session: header("mcp-session-id"), body });
            }
        }
        let mut chunk = [0; 8192];
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        buffer.extend_from_slice(&chunk[..read]);
    }
}
