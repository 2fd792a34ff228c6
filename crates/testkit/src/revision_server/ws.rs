//! The server over WebSocket: one message per text frame.

use std::sync::Arc;

use futures_util::SinkExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_stream::StreamExt as _;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderValue, StatusCode};

use super::call::OUTLET;
use super::fault::RpcFault;
use super::shared::ServerShared;
use super::talk::{Talk, TalkKind};

/// The path of the endpoint.
const PATH: &str = "/mcp";
/// The subprotocol, for clients that ask for one.
const PROTOCOL: &str = "mcp";

/// Serves until the future is dropped.
pub async fn accept(listener: TcpListener, shared: Arc<ServerShared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let _ = stream.set_nodelay(true);
        while connections.try_join_next().is_some() {}
        connections.spawn(converse(stream, shared.clone()));
    }
}

#[expect(clippy::result_large_err, reason = "the type of the refusal is given by the library")]
fn greet(request: &Request, mut response: Response) -> Result<Response, ErrorResponse> {
    if request.uri().path() != PATH {
        let mut refusal = ErrorResponse::new(None);
        *refusal.status_mut() = StatusCode::NOT_FOUND;
        return Err(refusal);
    }
    let offered = request.headers().get("sec-websocket-protocol").and_then(|value| value.to_str().ok());
    if offered.is_some_and(|offered| offered.split(',').any(|one| one.trim() == PROTOCOL)) {
        response.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static(PROTOCOL));
    }
    Ok(response)
}

async fn converse(stream: TcpStream, shared: Arc<ServerShared>) {
    let Ok(mut socket) = tokio_tungstenite::accept_hdr_async(stream, greet).await else { return };
    let (out, mut queue) = mpsc::channel(OUTLET);
    let talk = Talk::new(shared.clone(), TalkKind::Pipe, Some(out.clone()));
    let tap = shared.tap();
    loop {
        tokio::select! {
            frame = socket.next() => match frame {
                Some(Ok(Message::Text(text))) => {
                    tap.received(&text);
                    match serde_json::from_str(&text) {
                        Ok(message) => talk.receive(message, &out),
                        Err(error) => {
                            shared.violation(&format!("a frame that is no JSON: {error}"));
                            let fault = RpcFault::new(-32700, "Parse error");
                            let _ = out.try_send(super::call::Out::fault(&talk, &fault, &serde_json::Value::Null));
                        }
                    }
                }
                Some(Ok(Message::Binary(_))) => shared.violation("a binary frame"),
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => {}
            },
            message = queue.recv() => {
                let Some(message) = message else { break };
                let text = message.message.to_string();
                if socket.send(Message::text(text.as_str())).await.is_err() {
                    break;
                }
                tap.sent(&text);
            }
        }
    }
    talk.end();
}
