//! An HTTP backend of the old era that misbehaves: which way, the name of the called tool says.

use serde_json::{Value, json};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// The tools; each misbehaves as its name says, but for the first.
pub const TOOLS: &[&str] = &[
    "web_fine",
    "web_twice",
    "web_other_id",
    "web_text_id",
    "web_error_without_id",
    "web_double_key",
    "web_garbage",
    "web_half_json",
    "web_comments",
    "web_endless_event",
    "web_endless_json",
    "web_slow_json",
    "web_huge_length",
    "web_closes",
    "web_not_http",
    "web_redirect",
    "web_two_answers_in_one_body",
    "web_foreign_progress",
];

/// The running server.
pub struct Hostile {
    pub address: SocketAddr,
    /// Endless answers that are still being written.
    pub writing: Arc<AtomicUsize>,
}

/// Starts it on a free port.
pub async fn start() -> Hostile {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let writing = Arc::<AtomicUsize>::default();
    let count = Arc::clone(&writing);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&count)));
        }
    });
    Hostile { address, writing }
}

async fn serve(mut stream: TcpStream, writing: Arc<AtomicUsize>) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let request = read_request(&mut stream, &mut buffer).await?;
        let id = request["id"].clone();
        let answer = match request["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                "serverInfo": {"name": "hostile", "version": "1"}}),
            Some("tools/list") => {
                let tools = TOOLS.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
                json!({"tools": tools.collect::<Vec<Value>>()})
            }
            Some("tools/call") => {
                let name = request["params"]["name"].as_str().unwrap_or_default();
                writing.fetch_add(1, Ordering::SeqCst);
                let kept = misbehave(&mut stream, name, &id).await;
                writing.fetch_sub(1, Ordering::SeqCst);
                kept?;
                continue;
            }
            Some(_) if id.is_null() => {
                stream.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await.ok()?;
                continue;
            }
            _ => {
                stream.write_all(b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n").await.ok()?;
                continue;
            }
        };
        body(&mut stream, &json!({"jsonrpc": "2.0", "id": id, "result": answer}).to_string()).await?;
    }
}

/// One request's message; `null` for a request without a body.
async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Value> {
    loop {
        let end = buffer.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let head = String::from_utf8_lossy(&buffer[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: usize = length.map_or(0, |length| length.trim().parse().unwrap_or(0));
            if buffer.len() >= end + 4 + length {
                let message = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or(Value::Null);
                buffer.drain(..end + 4 + length);
                return Some(message);
            }
        }
        let mut chunk = [0; 8192];
        let read = stream.read(&mut chunk).await.ok().filter(|read| *read > 0)?;
        buffer.extend_from_slice(&chunk[..read]);
    }
}

async fn body(stream: &mut TcpStream, text: &str) -> Option<()> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n", text.len());
    stream.write_all(format!("{head}{text}").as_bytes()).await.ok()
}

/// A head, then the same chunk for ever, as fast as it is read or with a pause.
async fn endless(stream: &mut TcpStream, kind: &str, first: &str, again: &str, pause: Duration) -> Option<()> {
    let chunk = |text: &str| format!("{:x}\r\n{text}\r\n", text.len());
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n{}", chunk(first));
    stream.write_all(head.as_bytes()).await.ok()?;
    let again = chunk(again);
    loop {
        stream.write_all(again.as_bytes()).await.ok()?;
        tokio::time::sleep(pause).await;
    }
}

/// The answer that would be right.
fn right(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "right"}]}})
}

/// None where the connection is to be closed.
async fn misbehave(stream: &mut TcpStream, name: &str, id: &Value) -> Option<()> {
    const SOON: Duration = Duration::from_millis(20);
    const AT_ONCE: Duration = Duration::ZERO;
    const JSON: &str = "application/json";
    const EVENTS: &str = "text/event-stream";
    let event = |message: &Value| format!("data: {message}\n\n");
    let wrong =
        |id: Value| json!({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": "WRONG"}]}});
    match name {
        "web_twice" => {
            let both = event(&right(id)) + &event(&wrong(id.clone()));
            endless(stream, EVENTS, &both, ": \n\n", SOON).await
        }
        "web_other_id" => body(stream, &wrong(json!(id.as_u64().unwrap_or(0) + 1)).to_string()).await,
        "web_text_id" => body(stream, &wrong(json!(id.to_string())).to_string()).await,
        "web_error_without_id" => body(stream, r#"{"jsonrpc":"2.0","error":{"code":-1,"message":"no id"}}"#).await,
        "web_double_key" => {
            let text = right(id).to_string().replace(r#""text":"right""#, r#""text":"right","text":"WRONG""#);
            body(stream, &text).await
        }
        "web_garbage" => body(stream, "<html>WRONG</html>").await,
        "web_half_json" => body(stream, r#"{"jsonrpc":"2.0","id":1,"result":{"content":["#).await,
        "web_comments" => endless(stream, EVENTS, ":\n", ": still here\n\n", AT_ONCE).await,
        "web_endless_event" => endless(stream, EVENTS, "data: ", &"x".repeat(65_536), AT_ONCE).await,
        "web_endless_json" => endless(stream, JSON, "{\"jsonrpc\":\"2.0\",", &" ".repeat(65_536), AT_ONCE).await,
        "web_slow_json" => endless(stream, JSON, "{\"jsonrpc\":\"2.0\",", " ", SOON).await,
        "web_huge_length" => {
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 99999999999\r\n\r\n{";
            stream.write_all(head.as_bytes()).await.ok()
        }
        "web_closes" => None,
        "web_not_http" => {
            stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n\r\n").await.ok()?;
            None
        }
        "web_redirect" => {
            let head =
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/WRONG\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(head.as_bytes()).await.ok()
        }
        "web_two_answers_in_one_body" => body(stream, &format!("{}{}", wrong(id.clone()), right(id))).await,
        "web_foreign_progress" => {
            let note = |token: Value| json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": token, "progress": 1}});
            let notes: String = (0..50).map(|token| event(&note(json!(token)))).collect();
            let whole = notes + &event(&note(json!("WRONG"))) + &event(&right(id));
            endless(stream, EVENTS, &whole, ":\n\n", SOON).await
        }
        _ => body(stream, &right(id).to_string()).await,
    }
}
