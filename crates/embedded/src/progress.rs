//! Progress reports of a call.

use super::message;
use super::revision::McpRevision;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

/// Sends the progress of one call, if the caller asked for it.
#[derive(Debug, Clone)]
pub struct Progress {
    token: Option<Value>,
    revision: McpRevision,
    outgoing: Sender<Bytes>,
}

impl Progress {
    /// Creates a reporter for `outgoing` with the caller's `token`. Without a token, it sends nothing.
    pub(crate) fn new(token: Option<Value>, revision: McpRevision, outgoing: Sender<Bytes>) -> Self {
        Self { token, revision, outgoing }
    }

    /// Reports that `done` of `total` steps are done.
    pub async fn report(&self, done: u64, total: u64, text: String) {
        let Some(token) = &self.token else { return };
        let mut params = json!({"progressToken": token, "progress": done, "total": total});
        if self.revision >= McpRevision::V2025_03_26 {
            params["message"] = text.into();
        }
        // A closed channel ends the whole server, so this call can ignore it.
        let _ = self.outgoing.send(message::notify("notifications/progress", params)).await;
    }
}
