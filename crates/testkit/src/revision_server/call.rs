//! One request while it is worked on.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use super::fault::RpcFault;
use super::methods;
use super::oddities;
use super::question::ServerQuestion;
use super::talk::{Talk, TalkKind};
use crate::revision::Revision;

/// What goes out: a message, and the HTTP status it has if it is the whole answer.
#[derive(Debug)]
pub struct Out {
    /// The message.
    pub message: Value,
    /// The status.
    pub status: u16,
}

impl Out {
    /// A message with nothing special about it.
    pub fn note(message: Value) -> Self {
        Self { message, status: 200 }
    }

    /// An error answer of this conversation.
    pub fn fault(talk: &Talk, fault: &RpcFault, id: &Value) -> Self {
        // Errors of the old era are answers like any other, but for what concerns the transport.
        let status = if talk.shared.revision.modern() { fault.status } else { 200 };
        Self { message: fault.reply(id), status }
    }
}

/// Where messages go out.
pub type Outlet = mpsc::Sender<Out>;

/// How many messages may wait to go out.
pub const OUTLET: usize = 1024;

/// A request, and everything needed to answer it.
#[derive(Debug)]
pub struct ServedCall {
    /// The conversation it came in.
    pub talk: Arc<Talk>,
    /// Its id.
    pub id: Value,
    /// Its method.
    pub method: String,
    /// Its parameters, an object.
    pub params: Value,
    /// Where everything about it goes out.
    pub out: Outlet,
    /// Told when the client cancels it.
    pub cancel: Arc<Notify>,
}

impl ServedCall {
    /// The revision spoken.
    pub fn revision(&self) -> Revision {
        self.talk.shared.revision
    }

    /// A member of `_meta`.
    pub fn meta(&self, key: &str) -> &Value {
        &self.params["_meta"][key]
    }

    /// What the caller calls this call, to find it again in what was counted.
    pub fn tag(&self) -> &str {
        self.params["arguments"]["tag"].as_str().unwrap_or_default()
    }

    /// What the client declared.
    pub fn capabilities(&self) -> Value {
        match self.revision() {
            Revision::R5 => self.meta("io.modelcontextprotocol/clientCapabilities").clone(),
            _ => self.talk.capabilities(),
        }
    }

    /// Sends a notification on the stream of this request.
    pub async fn notify(&self, method: &str, params: Value) {
        // A client that left reads nothing more.
        let _ = self.out.send(Out::note(json!({"jsonrpc": "2.0", "method": method, "params": params}))).await;
    }

    /// Asks the client something, as the old era does: by a request of our own.
    ///
    /// # Errors
    /// When the client answers with an error, or with something of another shape.
    pub async fn ask(&self, question: ServerQuestion, params: Value) -> anyhow::Result<Value> {
        let (id, answer) = self.talk.expect(question);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": question.method(), "params": params});
        self.out.send(Out::note(message)).await?;
        answer.await?
    }

    /// Works on it to its end, or until the client does not want it any more.
    pub async fn run(self) {
        let outcome = tokio::select! {
            biased;
            () = self.gone(), if !oddities::stays(&self) => None,
            outcome = methods::answer(&self) => Some(outcome),
        };
        self.talk.finished(&self.id);
        let out = match outcome {
            Some(Ok(result)) => Out::note(json!({"jsonrpc": "2.0", "id": self.id, "result": result})),
            Some(Err(fault)) => Out::fault(&self.talk, &fault, &self.id),
            None => return,
        };
        let _ = self.out.send(out).await;
    }

    /// Waits until the client cancels: by a notification, or in the new era over HTTP by leaving.
    async fn gone(&self) {
        if self.talk.kind == TalkKind::Stateless {
            tokio::select! {
                () = self.cancel.notified() => {}
                () = self.out.closed() => {}
            }
        } else {
            self.cancel.notified().await;
        }
    }
}
