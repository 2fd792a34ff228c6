//! WebSocket: one message per text frame.

use std::sync::Arc;

use anyhow::Context as _;
use futures_util::SinkExt as _;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_stream::StreamExt as _;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

use super::ears::Ears;
use super::wire::{ClientWire, QUEUE, TaskGuard};

/// Connects.
///
/// # Errors
/// When the server refuses.
pub async fn open(url: &str, ears: Arc<Ears>) -> anyhow::Result<ClientWire> {
    let address = url.strip_prefix("ws://").and_then(|rest| rest.split('/').next()).context("no ws:// URL")?;
    let stream = TcpStream::connect(address).await.with_context(|| address.to_owned())?;
    stream.set_nodelay(true)?;
    let (socket, _) = tokio_tungstenite::client_async(url, stream).await.context("no WebSocket")?;
    let (out, queue) = mpsc::channel(QUEUE);
    let task = tokio::spawn(converse(socket, ears, out.clone(), queue)).abort_handle();
    Ok(ClientWire::Pipe { out, tasks: vec![TaskGuard(task)], child: None })
}

async fn converse(
    mut socket: WebSocketStream<TcpStream>,
    ears: Arc<Ears>,
    out: mpsc::Sender<Value>,
    mut queue: mpsc::Receiver<Value>,
) {
    let tap = ears.log.connection();
    loop {
        tokio::select! {
            frame = socket.next() => match frame {
                Some(Ok(Message::Text(text))) => {
                    tap.received(&text);
                    match serde_json::from_str(&text) {
                        Ok(message) => {
                            for reply in ears.hear(message, None) {
                                if out.try_send(reply).is_err() {
                                    ears.violation("more questions than can be answered");
                                }
                            }
                        }
                        Err(error) => ears.violation(format!("a frame that is no JSON: {error}: {text}")),
                    }
                }
                Some(Ok(Message::Binary(_))) => ears.violation("a binary frame"),
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
            message = queue.recv() => {
                let Some(message) = message else { break };
                let text = message.to_string();
                tap.sent(&text);
                if socket.send(Message::text(text)).await.is_err() {
                    break;
                }
            }
        }
    }
    ears.closed("the socket closed");
}
