//! MCP client of the gateway, in the same process over the stdio front or at its control socket. Used by `tools`.

use crate::api::routes::MCP;
use crate::control_socket::{AskError, LineStream, ProcessAddress};
use serde_json::{Map, Value, json};
use signalbox_engine::Caller;
use signalbox_runtime::Gateway;
use signalbox_transport::stdio_front;
use signalbox_wire::printable::one_line;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// Size of the pipe buffer in each direction, in bytes.
const BUFFER: usize = 256 * 1024;
/// Protocol revision that the client requests.
const REVISION: &str = "2025-11-25";

/// Error of a request to the gateway.
#[derive(Debug, thiserror::Error)]
pub enum PipeError {
    /// The gateway refused the request.
    #[error("{} ({code})", one_line(message))]
    Refused { code: i64, message: String },
    /// The connection ended before the answer.
    #[error("the gateway ended before it answered")]
    Ended,
    #[error("the gateway cannot be asked: {0}")]
    Io(#[from] io::Error),
    /// The request to the control socket failed.
    #[error(transparent)]
    Control(#[from] AskError),
    /// The answer is not JSON.
    #[error("the gateway said something that is not JSON: {0}")]
    Garbage(#[from] serde_json::Error),
}

/// An initialised MCP session inside this process.
pub struct InProcessSession {
    input: WriteHalf<DuplexStream>,
    output: Lines<BufReader<ReadHalf<DuplexStream>>>,
    last_id: u64,
}

impl InProcessSession {
    /// Opens a session and performs the handshake.
    ///
    /// # Errors
    /// If the gateway refuses the session.
    pub async fn open(gateway: &Arc<Gateway>, caller: Caller) -> Result<Self, PipeError> {
        let (ours, theirs) = tokio::io::duplex(BUFFER);
        let (from, to) = tokio::io::split(theirs);
        let gateway = Arc::clone(gateway);
        tokio::spawn(async move {
            if let Err(error) = stdio_front::serve(from, to, gateway, caller, Duration::ZERO).await {
                tracing::debug!(%error, "the pipe ended");
            }
        });
        let (output, input) = tokio::io::split(ours);
        let mut pipe = Self { input, output: BufReader::new(output).lines(), last_id: 0 };
        pipe.request("initialize", introduction(), |_| ()).await?;
        pipe.send(&initialized()).await?;
        Ok(pipe)
    }

    /// Sends a request and waits for its result. Notifications that arrive meanwhile go to `on_notification`.
    ///
    /// # Errors
    /// The JSON-RPC error, or the reason why there is no answer.
    pub async fn request(
        &mut self,
        method: &str,
        params: Value,
        on_notification: impl Fn(&Value),
    ) -> Result<Value, PipeError> {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await?;
        loop {
            let line = self.output.next_line().await?.ok_or(PipeError::Ended)?;
            match ServerMessage::read(line.as_bytes(), id)? {
                ServerMessage::Notification(notification) => on_notification(&notification),
                ServerMessage::Answer(result) => return Ok(result),
                ServerMessage::Other => {}
            }
        }
    }

    async fn send(&mut self, message: &Value) -> Result<(), PipeError> {
        self.input.write_all(format!("{message}\n").as_bytes()).await?;
        Ok(())
    }
}

/// A message of the gateway while a request waits for its answer.
pub(crate) enum ServerMessage {
    Notification(Value),
    Answer(Value),
    /// A question, or the answer to another request.
    Other,
}

impl ServerMessage {
    pub(crate) fn read(line: &[u8], id: u64) -> Result<Self, PipeError> {
        let mut message: Map<String, Value> = serde_json::from_slice(line)?;
        if message.contains_key("method") {
            return Ok(if message.contains_key("id") { Self::Other } else { Self::Notification(message.into()) });
        }
        if message.get("id").and_then(Value::as_u64) != Some(id) {
            return Ok(Self::Other);
        }
        match message.remove("result") {
            Some(result) => Ok(Self::Answer(result)),
            None => Err(refused(message.get("error").unwrap_or(&Value::Null))),
        }
    }
}

/// Sends one request to a process, in a session of its own.
///
/// # Errors
/// The JSON-RPC error, or the reason why there is no answer.
pub async fn request_of(
    process: impl Into<ProcessAddress>,
    method: &str,
    params: Value,
    on_notification: impl Fn(&Value),
) -> Result<Value, PipeError> {
    let lines = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": introduction()}),
        initialized(),
        json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": params}),
    ];
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let mut heard = LineStream::send(process, MCP, lines.join("\n")).await?;
    let mut waiting_for = 1;
    loop {
        let line = heard.next().await?.ok_or(PipeError::Ended)?;
        match ServerMessage::read(&line, waiting_for)? {
            ServerMessage::Notification(notification) => on_notification(&notification),
            ServerMessage::Answer(_) if waiting_for == 1 => waiting_for = 2,
            ServerMessage::Answer(result) => return Ok(result),
            ServerMessage::Other => {}
        }
    }
}

/// Returns the params of `initialize`.
fn introduction() -> Value {
    json!({
        "protocolVersion": REVISION,
        "capabilities": {},
        "clientInfo": {"name": "signalbox", "version": env!("CARGO_PKG_VERSION")},
    })
}

fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

fn refused(error: &Value) -> PipeError {
    PipeError::Refused {
        code: error["code"].as_i64().unwrap_or(0),
        message: error["message"].as_str().unwrap_or("refused without a reason").to_owned(),
    }
}
