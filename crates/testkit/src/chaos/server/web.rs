//! The misbehaving server over Streamable HTTP, written on the bare socket so that it can stop in the middle of
//! anything.

use std::sync::Arc;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::Server;
use super::speech::SpeechStep;

/// The head of an answer that is a stream of events.
pub const EVENTS: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
/// What is answered to a request that is not served.
pub const NOT_ALLOWED: &str = "HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n";
const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";
const UNAVAILABLE: &str = "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
const NO_SESSION: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
const ENDED: &str = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";

/// One request.
#[derive(Debug)]
pub struct Asked {
    /// The line of method and path, and the headers, in lower case.
    pub head: String,
    /// The body as JSON; `null` without one.
    pub message: Value,
}

impl Asked {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
    }
}

/// Serves one connection.
pub async fn serve(mut socket: TcpStream, server: Arc<Server>) -> Option<()> {
    let mut buffer = Vec::new();
    // Sessions are those of this process: one that was opened before a restart is gone.
    let session = format!("{}-{}", std::process::id(), server.options.name);
    loop {
        let asked = read(&mut socket, &mut buffer).await?;
        if asked.head.starts_with("delete") {
            socket.write_all(ENDED.as_bytes()).await.ok()?;
            continue;
        }
        if !asked.head.starts_with("post") {
            socket.write_all(NOT_ALLOWED.as_bytes()).await.ok()?;
            continue;
        }
        let opens = matches!(asked.message["method"].as_str(), Some("initialize" | "server/discover"));
        if !server.options.modern && !opens && asked.header("mcp-session-id") != Some(session.as_str()) {
            socket.write_all(NO_SESSION.as_bytes()).await.ok()?;
            continue;
        }
        if asked.message.get("id").is_none() || asked.message.get("method").is_none() {
            socket.write_all(ACCEPTED.as_bytes()).await.ok()?;
            continue;
        }
        let steps = server.steps(&asked.message);
        answer(&mut socket, &session, steps).await?;
    }
}

/// Takes the steps; nothing where the connection ended with them.
async fn answer(socket: &mut TcpStream, session: &str, steps: Vec<SpeechStep>) -> Option<()> {
    match &steps[..] {
        [] => {
            hang(socket).await;
            None
        }
        [SpeechStep::Say(message)] if message.get("id").is_some() => {
            let text = message.to_string();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: {session}\r\ncontent-length: {}\r\n\r\n",
                text.len()
            );
            socket.write_all(format!("{head}{text}").as_bytes()).await.ok()
        }
        [SpeechStep::Half(message)] => {
            let text = message.to_string();
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", text.len());
            let _ = socket.write_all(format!("{head}{}", &text[..text.len() / 2]).as_bytes()).await;
            None
        }
        [SpeechStep::Refuse(_)] => socket.write_all(UNAVAILABLE.as_bytes()).await.ok(),
        [SpeechStep::Garbage, ..] => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{\"jsonrpc";
            socket.write_all(head.as_bytes()).await.ok()
        }
        [SpeechStep::Reset] => {
            let _ = socket.set_zero_linger();
            None
        }
        [SpeechStep::Wait(time), rest @ ..] if rest.len() == 1 => {
            tokio::time::sleep(*time).await;
            Box::pin(answer(socket, session, rest.to_vec())).await
        }
        _ => {
            socket.write_all(EVENTS.as_bytes()).await.ok()?;
            events(socket, steps).await
        }
    }
}

/// Takes the steps on a stream of events, which ends with an answer as it should.
pub async fn events(socket: &mut TcpStream, steps: Vec<SpeechStep>) -> Option<()> {
    let mut answered = false;
    for step in steps {
        match step {
            SpeechStep::Say(message) | SpeechStep::Refuse(message) => {
                answered |= message.get("id").is_some();
                socket.write_all(event(&message).as_bytes()).await.ok()?;
            }
            SpeechStep::Wait(time) => tokio::time::sleep(time).await,
            SpeechStep::Garbage => socket.write_all(b"event: message\ndata: {\"jsonrpc\n\n").await.ok()?,
            SpeechStep::Half(message) => {
                let whole = event(&message);
                socket.write_all(&whole.as_bytes()[..whole.len() / 2]).await.ok()?;
                return None;
            }
            SpeechStep::End => return None,
            SpeechStep::Reset => {
                let _ = socket.set_zero_linger();
                return None;
            }
        }
    }
    if !answered {
        hang(socket).await;
    }
    None
}

/// A message as an event.
pub fn event(message: &Value) -> String {
    format!("event: message\ndata: {message}\n\n")
}

/// Says nothing more until the other side gives up.
async fn hang(socket: &mut TcpStream) {
    let mut rest = [0; 1024];
    while socket.read(&mut rest).await.is_ok_and(|read| read > 0) {}
}

/// Reads one request; nothing at the end of the connection.
pub async fn read(socket: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Asked> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap_or(0));
            if buffer.len() >= end + 4 + length {
                let message = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or(Value::Null);
                buffer.drain(..end + 4 + length);
                return Some(Asked { head, message });
            }
        }
        let mut chunk = [0; 8192];
        let read = socket.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        buffer.extend_from_slice(&chunk[..read]);
    }
}
