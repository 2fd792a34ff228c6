//! The misbehaving server over WebSocket.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;

use super::Server;
use super::speech::SpeechStep;

/// Most steps that wait for the socket.
const QUEUE: usize = 4096;

#[expect(clippy::result_large_err, reason = "the type of the refusal is given by the library")]
fn greet(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    if request.headers().contains_key("sec-websocket-protocol") {
        response.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("mcp"));
    }
    Ok(response)
}

/// Serves one connection.
pub async fn serve(socket: TcpStream, server: Arc<Server>) -> Option<()> {
    let mut socket = tokio_tungstenite::accept_hdr_async(socket, greet).await.ok()?;
    let (sender, mut queue) = mpsc::channel(QUEUE);
    loop {
        tokio::select! {
            frame = socket.next() => match frame?.ok()? {
                Message::Text(text) => {
                    let Ok(message) = serde_json::from_str(&text) else { continue };
                    let (steps, sender) = (server.steps(&message), sender.clone());
                    tokio::spawn(async move {
                        for step in steps {
                            match step {
                                SpeechStep::Wait(time) => tokio::time::sleep(time).await,
                                step => sender.send(step).await?,
                            }
                        }
                        Ok::<_, mpsc::error::SendError<SpeechStep>>(())
                    });
                }
                Message::Close(_) => return None,
                _ => {}
            },
            Some(step) = queue.recv() => take(&mut socket, step).await?,
        }
    }
}

/// Takes a step; nothing where the connection ended with it.
async fn take(socket: &mut WebSocketStream<TcpStream>, step: SpeechStep) -> Option<()> {
    match step {
        SpeechStep::Say(message) | SpeechStep::Refuse(message) => {
            socket.send(Message::text(message.to_string())).await.ok()
        }
        SpeechStep::Garbage => socket.send(Message::text("Traceback (most recent call last): {")).await.ok(),
        SpeechStep::Half(message) => {
            let whole = message.to_string();
            let length = u16::try_from(whole.len()).unwrap_or(u16::MAX).to_be_bytes();
            let frame = [&[0x81, 126], &length[..], &whole.as_bytes()[..whole.len() / 2]].concat();
            socket.get_mut().write_all(&frame).await.ok()?;
            None
        }
        SpeechStep::Reset => {
            let _ = socket.get_mut().set_zero_linger();
            None
        }
        SpeechStep::End => {
            let _ = socket.close(None).await;
            None
        }
        SpeechStep::Wait(_) => Some(()),
    }
}
