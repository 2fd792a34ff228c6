//! The misbehaving server over HTTP+SSE: one stream of events, and a POST for each message.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;

use super::Server;
use super::speech::SpeechStep;
use super::web::{EVENTS, NOT_ALLOWED, event, read};

/// Most steps that wait for a stream.
const QUEUE: usize = 4096;

/// The open streams, by the number of their session.
pub type Streams = Arc<Mutex<HashMap<u64, mpsc::Sender<SpeechStep>>>>;

/// Serves one connection.
pub async fn serve(mut socket: TcpStream, server: Arc<Server>, streams: Streams) -> Option<()> {
    let mut buffer = Vec::new();
    loop {
        let asked = read(&mut socket, &mut buffer).await?;
        if asked.head.starts_with("get /sse") {
            return stream(socket, &server, &streams).await;
        }
        let session =
            asked.head.split("sessionid=").nth(1).and_then(|rest| rest.split([' ', '&']).next()?.parse().ok());
        let queue = |number: u64| streams.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
        let (true, Some(queue)) = (asked.head.starts_with("post /message"), session.and_then(queue)) else {
            let answer = if asked.head.starts_with("post /message") {
                "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"
            } else {
                NOT_ALLOWED
            };
            socket.write_all(answer.as_bytes()).await.ok()?;
            continue;
        };
        let steps = server.steps(&asked.message);
        if let [SpeechStep::Refuse(_)] = &steps[..] {
            socket.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await.ok()?;
            continue;
        }
        tokio::spawn(async move {
            for step in steps {
                match step {
                    SpeechStep::Wait(time) => tokio::time::sleep(time).await,
                    step => queue.send(step).await?,
                }
            }
            Ok::<_, mpsc::error::SendError<SpeechStep>>(())
        });
        socket.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 8\r\n\r\nAccepted").await.ok()?;
    }
}

async fn stream(mut socket: TcpStream, server: &Server, streams: &Streams) -> Option<()> {
    let number = server.number();
    let (sender, mut queue) = mpsc::channel(QUEUE);
    streams.lock().unwrap_or_else(PoisonError::into_inner).insert(number, sender);
    let endpoint = format!("{EVENTS}event: endpoint\ndata: /message?sessionId={number}\n\n");
    let _ = socket.write_all(endpoint.as_bytes()).await;
    let mut gone = [0; 16];
    loop {
        let step = tokio::select! {
            step = queue.recv() => step,
            // Nothing comes on a stream but its end.
            _ = tokio::io::AsyncReadExt::read(&mut socket, &mut gone) => None,
        };
        let Some(step) = step else { break };
        if take(&mut socket, step).await.is_none() {
            break;
        }
    }
    streams.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
    None
}

async fn take(socket: &mut TcpStream, step: SpeechStep) -> Option<()> {
    match step {
        SpeechStep::Say(message) | SpeechStep::Refuse(message) => {
            socket.write_all(event(&message).as_bytes()).await.ok()
        }
        SpeechStep::Garbage => socket.write_all(b"event: message\ndata: {\"jsonrpc\n\n").await.ok(),
        SpeechStep::Half(message) => {
            let whole = event(&message);
            let _ = socket.write_all(&whole.as_bytes()[..whole.len() / 2]).await;
            None
        }
        SpeechStep::End => None,
        SpeechStep::Reset => {
            let _ = socket.set_zero_linger();
            None
        }
        SpeechStep::Wait(_) => Some(()),
    }
}
