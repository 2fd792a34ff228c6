//! Connection of the runner to a server, as two channels of messages.

use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_wire::codes;
use std::time::Duration;
use tokio::sync::mpsc;

/// Error that ends a run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The server or the gateway closed the connection.
    #[error("the server ended before all calls were answered")]
    Ended,
    #[error("the server refused the handshake: {0}")]
    Refused(String),
    /// The handshake timed out.
    #[error("the server did not answer the handshake in time")]
    Silent,
}

/// Connection to the server. The runner numbers its requests itself.
#[derive(Debug)]
pub struct Connection {
    to: mpsc::Sender<Bytes>,
    from: mpsc::Receiver<Bytes>,
    last_id: u64,
}

impl Connection {
    /// Creates a connection over two channels that carry one message per item.
    #[must_use]
    pub fn new(to: mpsc::Sender<Bytes>, from: mpsc::Receiver<Bytes>) -> Self {
        Self { to, from, last_id: 0 }
    }

    pub(super) async fn initialize(&mut self, params: Value, within: Duration) -> Result<(), RunError> {
        let id = self.send_request(json!({"jsonrpc": "2.0", "method": "initialize", "params": params})).await?;
        loop {
            let message = self.next(within).await?.ok_or(RunError::Silent)?;
            if message.get("id").and_then(Value::as_u64) != Some(id) || message.get("method").is_some() {
                continue;
            }
            if let Some(error) = message.get("error") {
                let text = error.get("message").and_then(Value::as_str).unwrap_or_default();
                return Err(RunError::Refused(text.to_owned()));
            }
            return self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        }
    }

    /// Sends a request under a new id and returns the id.
    pub(super) async fn send_request(&mut self, mut request: Value) -> Result<u64, RunError> {
        self.last_id += 1;
        request["id"] = self.last_id.into();
        self.send(&request).await?;
        Ok(self.last_id)
    }

    /// Answers a server request. Sends an error if there is no recorded answer.
    pub(super) async fn answer(&mut self, id: &Value, answer: Option<Option<Value>>) -> Result<(), RunError> {
        let mut message = answer.flatten().unwrap_or_else(|| {
            let text = "the tape has no answer to this question";
            json!({"jsonrpc": "2.0", "error": {"code": codes::INTERNAL_ERROR, "message": text}})
        });
        message["id"] = id.clone();
        self.send(&message).await
    }

    async fn send(&self, message: &Value) -> Result<(), RunError> {
        self.send_bytes(message.to_string().into()).await
    }

    /// Sends the bytes of a message unchanged.
    pub(super) async fn send_bytes(&self, message: Bytes) -> Result<(), RunError> {
        self.to.send(message).await.map_err(|_| RunError::Ended)
    }

    /// Returns the next message, or `None` on a timeout.
    pub(super) async fn next(&mut self, within: Duration) -> Result<Option<Value>, RunError> {
        loop {
            match tokio::time::timeout(within, self.from.recv()).await {
                Err(_) => return Ok(None),
                Ok(None) => return Err(RunError::Ended),
                Ok(Some(bytes)) => {
                    if let Ok(message @ Value::Object(_)) = serde_json::from_slice(&bytes) {
                        return Ok(Some(message));
                    }
                }
            }
        }
    }
}
