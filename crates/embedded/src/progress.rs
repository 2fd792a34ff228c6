//! Progress of one call.

use super::message;
use super::revision::Revision;
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::sync::mpsc::Sender;

/// Sends progress for one call, if the caller asked for it.
#[derive(Debug, Clone)]
pub struct Progress {
    token: Option<Value>,
    revision: Revision,
    outgoing: Sender<Bytes>,
}

impl Progress {
    /// Reports go to `outgoing` under the caller's own `token`; without one, nothing is sent.
    pub(crate) fn new(token: Option<Value>, revision: Revision, outgoing: Sender<Bytes>) -> Self {
        Self { token, revision, outgoing }
    }

    /// Tells the caller that so much of the whole is done.
    pub async fn report(&self, done: u64, total: u64, text: String) {
        let Some(token) = &self.token else { return };
        let mut params = json!({"progressToken": token, "progress": done, "total": total});
        if self.revision >= Revision::V2025_03_26 {
            params["message"] = text.into();
        }
        // A closed channel ends the whole server; this call need not notice by itself.
        let _ = self.outgoing.send(message::notify("notifications/progress", params)).await;
    }
}
