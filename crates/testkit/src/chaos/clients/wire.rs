//! A connection that carries whole messages both ways, whatever it is made of.

use std::process::Stdio;
use std::time::Duration;

use anyhow::Context as _;
use bytes::Bytes;
use futures_util::{SinkExt as _, StreamExt as _};
use http_body_util::BodyExt as _;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::HeaderValue;

use crate::chaos::world::World;
use crate::gateway::stdio_command;
use crate::http_client::HttpClient;

/// Most messages that wait on either side.
const QUEUE: usize = 4096;
/// How long a connection may take to open.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a client speaks over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Means {
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
    /// WebSocket.
    WebSocket,
    /// A bare socket.
    Tcp,
    /// The standard streams of a gateway of its own.
    Stdio,
}

/// The connection; dropping it ends it without a word.
#[derive(Debug)]
pub struct StormWire {
    /// Messages to send.
    pub out: mpsc::Sender<String>,
    /// Messages that came.
    pub input: mpsc::Receiver<String>,
    io: JoinHandle<()>,
    process: Option<Child>,
}

impl Drop for StormWire {
    fn drop(&mut self) {
        self.io.abort();
    }
}

impl StormWire {
    /// Opens one.
    ///
    /// # Errors
    /// When the gateway refuses.
    pub async fn open(world: &World, means: Means) -> anyhow::Result<Self> {
        tokio::time::timeout(PATIENCE, Self::opened(world, means)).await.context("the connection does not open")?
    }

    async fn opened(world: &World, means: Means) -> anyhow::Result<Self> {
        let (out, outgoing) = mpsc::channel(QUEUE);
        let (incoming, input) = mpsc::channel(QUEUE);
        let mut process = None;
        let io = match means {
            Means::Http | Means::Sse => {
                let client = HttpClient::new(world.http);
                let asking = client.clone().with("accept", "text/event-stream");
                let response = asking.open(http::Method::GET, "/sse", Bytes::new()).await?;
                anyhow::ensure!(response.status() == 200, "status {}", response.status());
                tokio::spawn(events(client, response.into_body(), outgoing, incoming))
            }
            Means::WebSocket => {
                let mut request = format!("ws://{}/mcp", world.http).into_client_request()?;
                request.headers_mut().insert("sec-websocket-protocol", HeaderValue::from_static("mcp"));
                let socket = TcpStream::connect(world.http).await?;
                let (socket, _) = tokio_tungstenite::client_async(request, socket).await?;
                tokio::spawn(frames(socket, outgoing, incoming))
            }
            Means::Tcp => {
                let (input, output) = TcpStream::connect(world.tcp).await?.into_split();
                tokio::spawn(lines(input, output, outgoing, incoming))
            }
            Means::Stdio => {
                let command = stdio_command(&world.folder()?, &world.config)?;
                let (program, arguments) = command.split_first().context("no command")?;
                let mut command = Command::new(program);
                command.args(arguments).kill_on_drop(true);
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
                let mut child = command.spawn()?;
                let (input, output) =
                    (child.stdout.take().context("no output")?, child.stdin.take().context("no input")?);
                process = Some(child);
                tokio::spawn(lines(input, output, outgoing, incoming))
            }
        };
        Ok(Self { out, input, io, process })
    }

    /// Ends it as a client does that has nothing more to say.
    ///
    /// # Errors
    /// When the gateway behind standard streams does not end then.
    pub async fn close(mut self) -> anyhow::Result<()> {
        self.io.abort();
        if let Some(process) = &mut self.process {
            tokio::time::timeout(PATIENCE, process.wait()).await.context("a gateway does not end with its input")??;
        }
        Ok(())
    }
}

async fn lines(
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin,
    mut outgoing: mpsc::Receiver<String>,
    incoming: mpsc::Sender<String>,
) {
    let mut lines = BufReader::new(input).lines();
    loop {
        tokio::select! {
            line = lines.next_line() => match line {
                Ok(Some(line)) => drop(incoming.send(line).await),
                _ => return,
            },
            Some(message) = outgoing.recv() => {
                if output.write_all(format!("{message}\n").as_bytes()).await.is_err() || output.flush().await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn frames(
    mut socket: tokio_tungstenite::WebSocketStream<TcpStream>,
    mut outgoing: mpsc::Receiver<String>,
    incoming: mpsc::Sender<String>,
) {
    loop {
        tokio::select! {
            frame = socket.next() => match frame {
                Some(Ok(Message::Text(text))) => drop(incoming.send(text.as_str().to_owned()).await),
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                _ => return,
            },
            Some(message) = outgoing.recv() => {
                if socket.send(Message::text(message)).await.is_err() {
                    return;
                }
            }
        }
    }
}

async fn events(
    client: HttpClient,
    mut body: hyper::body::Incoming,
    mut outgoing: mpsc::Receiver<String>,
    incoming: mpsc::Sender<String>,
) {
    let (mut unread, mut post_to) = (Vec::new(), String::new());
    loop {
        tokio::select! {
            frame = body.frame() => match frame {
                Some(Ok(frame)) => unread.extend(frame.into_data().unwrap_or_default()),
                _ => return,
            },
            Some(message) = outgoing.recv(), if !post_to.is_empty() => {
                let notifies = !message.contains(r#""id":"#);
                let (client, post_to) = (client.clone(), post_to.clone());
                // A refusal is no message; the call then goes without an answer, which is found out.
                let posting = async move { client.send(http::Method::POST, &post_to, Bytes::from(message)).await };
                let posted = tokio::spawn(posting);
                if notifies {
                    // Posts overtake each other, and no call may overtake the end of the handshake.
                    let _ = posted.await;
                }
            }
        }
        while let Some(end) = unread.windows(2).position(|pair| pair == b"\n\n") {
            let event: Vec<u8> = unread.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&event).into_owned();
            let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
            match (field("event: ").as_deref(), field("data: ")) {
                (Some("endpoint"), Some(data)) => post_to = data,
                (_, Some(data)) => drop(incoming.send(data).await),
                _ => {}
            }
        }
    }
}
