//! A client whose connection is its session, over WebSocket or a bare TCP socket: what it hears comes in one order.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::{Error, Message, http};
use tokio_tungstenite::{WebSocketStream, client_async};

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// The client.
pub struct PipeClient {
    wire: Wire,
    /// What came before the answers that were waited for.
    pub before: Vec<Value>,
}

enum Wire {
    WebSocket(Box<WebSocketStream<AnySocket>>),
    Lines(BufReader<AnySocket>),
}

/// A connection of any kind: bare, inside TLS, or a pair of pipes.
pub trait Socket: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Socket for S {}

type AnySocket = Box<dyn Socket>;

/// How a connection ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PipeEnd {
    /// With a closing frame of this code and reason.
    Closed(u16, String),
    /// Without a word.
    Dropped,
}

impl PipeClient {
    /// Opens a WebSocket at this address, with these headers more.
    ///
    /// # Errors
    /// When the server refuses; the message then begins with the status.
    pub async fn websocket(address: SocketAddr, headers: &[(&'static str, &str)]) -> anyhow::Result<Self> {
        Self::websocket_over(TcpStream::connect(address).await?, address, headers).await
    }

    /// Opens a WebSocket on this connection to this address.
    ///
    /// # Errors
    /// As [`PipeClient::websocket`].
    pub async fn websocket_over(
        socket: impl Socket + 'static,
        address: SocketAddr,
        headers: &[(&'static str, &str)],
    ) -> anyhow::Result<Self> {
        let mut request = format!("ws://{address}/mcp").into_client_request()?;
        request.headers_mut().insert("sec-websocket-protocol", http::HeaderValue::from_static("mcp"));
        for (name, value) in headers {
            crate::used_secrets::note_header(name, value);
            request.headers_mut().insert(*name, value.parse()?);
        }
        let socket: AnySocket = Box::new(socket);
        let opened = tokio::time::timeout(PATIENCE, client_async(request, socket)).await?;
        match opened {
            Ok((socket, _)) => Ok(Self { wire: Wire::WebSocket(Box::new(socket)), before: Vec::new() }),
            Err(Error::Http(answer)) => {
                let body = answer.body().as_deref().map(String::from_utf8_lossy).unwrap_or_default();
                bail!("{} {body}", answer.status().as_u16())
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Opens a bare socket at this address.
    ///
    /// # Errors
    /// When nobody listens.
    pub async fn tcp(address: SocketAddr) -> anyhow::Result<Self> {
        let socket = TcpStream::connect(address).await?;
        socket.set_nodelay(true)?;
        Ok(Self::lines_over(socket))
    }

    /// Speaks one message per line on this connection.
    pub fn lines_over(socket: impl Socket + 'static) -> Self {
        Self { wire: Wire::Lines(BufReader::new(Box::new(socket))), before: Vec::new() }
    }

    /// Sends a text as it is: one frame, or one line.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn say(&mut self, text: &str) -> anyhow::Result<()> {
        match &mut self.wire {
            Wire::WebSocket(socket) => Ok(socket.send(Message::text(text)).await?),
            Wire::Lines(socket) => {
                socket.write_all(format!("{text}\n").as_bytes()).await?;
                Ok(socket.flush().await?)
            }
        }
    }

    /// Sends a binary frame.
    ///
    /// # Errors
    /// When the connection is gone or has no frames.
    pub async fn say_binary(&mut self, bytes: &[u8]) -> anyhow::Result<()> {
        match &mut self.wire {
            Wire::WebSocket(socket) => Ok(socket.send(Message::binary(bytes.to_vec())).await?),
            Wire::Lines(_) => bail!("a bare socket has no frames"),
        }
    }

    /// The next message; those about changed lists come when backends like and are passed over.
    ///
    /// # Errors
    /// When none comes.
    pub async fn next(&mut self) -> anyhow::Result<Value> {
        loop {
            let text = match self.heard().await? {
                Ok(text) => text,
                Err(end) => bail!("it ended: {end:?}"),
            };
            let message: Value = serde_json::from_str(&text).with_context(|| text.clone())?;
            if !message["method"].as_str().is_some_and(|method| method.ends_with("list_changed")) {
                return Ok(message);
            }
        }
    }

    /// Reads to the end; returns the messages that came before it, and how it came.
    ///
    /// # Errors
    /// When it does not come in time.
    pub async fn end(&mut self) -> anyhow::Result<(Vec<Value>, PipeEnd)> {
        let mut before = Vec::new();
        loop {
            match self.heard().await? {
                Ok(text) => before.push(serde_json::from_str(&text).with_context(|| text.clone())?),
                Err(end) => return Ok((before, end)),
            }
        }
    }

    /// The next text, or how it ended instead.
    async fn heard(&mut self) -> anyhow::Result<Result<String, PipeEnd>> {
        tokio::time::timeout(PATIENCE, self.wire.heard()).await.context("nothing was heard")
    }

    /// Sends a request and waits for its answer; what comes before goes to `before`.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn request(&mut self, id: u64, method: &str, params: Value) -> anyhow::Result<Value> {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()).await?;
        self.answer(id).await
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// When none comes.
    pub async fn answer(&mut self, id: u64) -> anyhow::Result<Value> {
        loop {
            let message = self.next().await?;
            if message["id"] == id && message["method"].is_null() {
                return Ok(message);
            }
            self.before.push(message);
        }
    }

    /// A request of the new era with all it must carry.
    ///
    /// # Errors
    /// When no answer comes.
    pub async fn modern(&mut self, id: u64, method: &str, mut params: Value) -> anyhow::Result<Value> {
        params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
        self.request(id, method, params).await
    }

    /// Shakes hands in the old era; returns the server's answer.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn initialize(&mut self, version: &str, capabilities: Value) -> anyhow::Result<Value> {
        let params = json!({"protocolVersion": version, "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"}});
        let answer = self.request(0, "initialize", params).await?;
        anyhow::ensure!(answer["result"].is_object(), "{answer}");
        self.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await?;
        Ok(answer)
    }
}

impl Wire {
    async fn heard(&mut self) -> Result<String, PipeEnd> {
        match self {
            Self::WebSocket(socket) => loop {
                match socket.next().await {
                    Some(Ok(Message::Text(text))) => return Ok(text.as_str().to_owned()),
                    Some(Ok(Message::Close(Some(frame)))) => {
                        let _ = socket.flush().await;
                        return Err(PipeEnd::Closed(frame.code.into(), frame.reason.as_str().to_owned()));
                    }
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    _ => return Err(PipeEnd::Dropped),
                }
            },
            Self::Lines(socket) => {
                let mut line = String::new();
                match socket.read_line(&mut line).await {
                    Ok(1..) if line.ends_with('\n') => Ok(line),
                    _ => Err(PipeEnd::Dropped),
                }
            }
        }
    }
}
