//! An MCP client that speaks exactly one revision, over every transport of that revision, and judges what it is told.
//!
//! Like [`crate::revision_server`] it is an independent witness: it shares no code with the gateway nor with an MCP
//! library.

mod answers;
mod ears;
mod events;
mod http;
mod judge;
mod judge_notes;
mod pipe;
mod sse;
mod wire;
mod ws;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use crate::revision::Revision;
use crate::wire_log::Logged;
use ears::{Ears, Wanted};
use wire::{ClientWire, Sent};

pub use answers::Answers;
pub use ears::Reply;
pub use wire::Reach;

/// Most rounds of questions in one call.
const MAX_ROUNDS: usize = 8;
/// Most pages of one list.
const MAX_PAGES: usize = 100;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A client.
#[derive(Debug)]
pub struct Client {
    revision: Revision,
    ears: Arc<Ears>,
    wire: ClientWire,
    next: AtomicU64,
    level: Mutex<Option<&'static str>>,
    patience: Duration,
    listening: Mutex<Vec<Begun>>,
}

/// A request that is on its way. In the new era over HTTP, dropping it cancels it.
#[derive(Debug)]
pub struct Begun {
    id: Value,
    answer: oneshot::Receiver<anyhow::Result<Reply>>,
    sent: Sent,
}

impl Client {
    /// Connects, and shakes hands as the revision does.
    ///
    /// # Errors
    /// When that fails, or the server does not speak the revision.
    pub async fn open(revision: Revision, reach: Reach, answers: Answers) -> anyhow::Result<Self> {
        Self::open_with(revision, reach, answers, PATIENCE).await
    }

    /// The same, with another patience for every answer.
    ///
    /// # Errors
    /// When that fails, or the server does not speak the revision.
    pub async fn open_with(
        revision: Revision,
        reach: Reach,
        answers: Answers,
        patience: Duration,
    ) -> anyhow::Result<Self> {
        reach.fits(revision)?;
        let ears = Arc::new(Ears::new(revision, answers));
        let wire =
            tokio::time::timeout(patience, ClientWire::open(reach, ears.clone())).await.context("no connection")??;
        let client = Self {
            revision,
            ears,
            wire,
            next: AtomicU64::new(1),
            level: Mutex::default(),
            patience,
            listening: Mutex::default(),
        };
        if revision.modern() {
            client.discover().await?
        } else {
            client.initialize().await?
        }
        Ok(client)
    }

    async fn initialize(&self) -> anyhow::Result<()> {
        let params = json!({
            "protocolVersion": self.revision.name(),
            "capabilities": self.ears.answers.capabilities(self.revision),
            "clientInfo": {"name": "revision-client", "version": "1"},
        });
        let result = self.request("initialize", params).await?.result()?;
        ensure!(result["protocolVersion"] == self.revision.name(), "the server speaks another revision: {result}");
        self.notify("notifications/initialized", None).await?;
        self.wire.general().await
    }

    async fn discover(&self) -> anyhow::Result<()> {
        let result = self.request("server/discover", json!({})).await?.result()?;
        let versions = result["supportedVersions"].as_array().context("no supportedVersions")?;
        ensure!(versions.iter().any(|version| version == self.revision.name()), "not among {versions:?}");
        Ok(())
    }

    /// Sends a request; returns once it is on its way.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn begin(&self, method: &str, mut params: Value) -> anyhow::Result<Begun> {
        let id = json!(self.next.fetch_add(1, Ordering::Relaxed));
        let level = *self.level.lock().unwrap_or_else(PoisonError::into_inner);
        if self.revision.modern() {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(self.revision.name());
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "revision-client", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.ears.answers.capabilities(self.revision);
            if let Some(level) = level {
                meta["io.modelcontextprotocol/logLevel"] = json!(level);
            }
        }
        let answer = self.expect(&id, method, &params);
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let sent = self.wire.send(message).await?;
        Ok(Begun { id, answer, sent })
    }

    fn expect(&self, id: &Value, method: &str, params: &Value) -> oneshot::Receiver<anyhow::Result<Reply>> {
        self.ears.expect(id, Wanted { method: method.to_owned(), params: params.clone() })
    }

    /// Sends requests as one batch, as 2025-03-26 has it, and waits for all answers.
    ///
    /// # Errors
    /// When an answer does not come in time, or the connection breaks.
    pub async fn batch(&self, requests: &[(&str, Value)]) -> anyhow::Result<Vec<Reply>> {
        let (mut batch, mut begun) = (Vec::new(), Vec::new());
        for (method, params) in requests {
            let id = json!(self.next.fetch_add(1, Ordering::Relaxed));
            let answer = self.expect(&id, method, params);
            batch.push(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
            begun.push(Begun { id, answer, sent: Sent::default() });
        }
        let _sent = self.wire.send(Value::Array(batch)).await?;
        let mut replies = Vec::new();
        for one in begun {
            replies.push(self.finish(one).await.context("batch")?);
        }
        Ok(replies)
    }

    /// Sends a message as it is, which may be one that no client should send.
    ///
    /// # Errors
    /// When the connection is gone, or it is refused.
    pub async fn say(&self, message: Value) -> anyhow::Result<()> {
        self.wire.send(message).await.map(drop)
    }

    /// Waits for the answer to a request.
    ///
    /// # Errors
    /// When none comes in time, or the connection breaks.
    pub async fn finish(&self, begun: Begun) -> anyhow::Result<Reply> {
        let Begun { id, answer, sent } = begun;
        let answer = tokio::time::timeout(self.patience, answer).await;
        drop(sent);
        answer.with_context(|| format!("no answer to request {id} in time"))?.context("the connection ended")?
    }

    /// Sends a request and waits for its answer.
    ///
    /// # Errors
    /// When none comes.
    pub async fn request(&self, method: &str, params: Value) -> anyhow::Result<Reply> {
        let begun = self.begin(method, params).await?;
        self.finish(begun).await.with_context(|| method.to_owned())
    }

    /// Calls off a request, as the revision and the transport do.
    ///
    /// # Errors
    /// When the connection is gone.
    pub async fn cancel(&self, begun: Begun) -> anyhow::Result<()> {
        self.ears.forget(&begun.id);
        if self.revision.modern() && self.wire.stateless() {
            drop(begun);
            return Ok(());
        }
        self.notify("notifications/cancelled", Some(json!({"requestId": begun.id}))).await
    }

    /// Sends a notification.
    ///
    /// # Errors
    /// When the connection is gone, or it is refused.
    pub async fn notify(&self, method: &str, params: Option<Value>) -> anyhow::Result<()> {
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if let Some(params) = params {
            message["params"] = params;
        }
        self.wire.send(message).await.map(drop)
    }

    /// Calls a tool and answers what the server asks meanwhile.
    ///
    /// # Errors
    /// When no answer comes, or the questions do not end.
    pub async fn call(&self, tool: &str, arguments: Value) -> anyhow::Result<Reply> {
        self.call_with(json!({"name": tool, "arguments": arguments})).await.with_context(|| tool.to_owned())
    }

    /// The same with whole parameters.
    ///
    /// # Errors
    /// When no answer comes, or the questions do not end.
    pub async fn call_with(&self, params: Value) -> anyhow::Result<Reply> {
        let mut round = params.clone();
        for _ in 0..MAX_ROUNDS {
            let reply = self.request("tools/call", round).await?;
            let Reply::Result(result) = &reply else { return Ok(reply) };
            if !self.revision.modern() || result["resultType"] != "input_required" {
                return Ok(reply);
            }
            round = params.clone();
            if let Some(state) = result.get("requestState") {
                round["requestState"] = state.clone();
            }
            if let Some(requests) = result["inputRequests"].as_object() {
                round["inputResponses"] = self.answered(requests)?;
            }
        }
        bail!("still questions after {MAX_ROUNDS} rounds")
    }

    /// Answers to the questions of an unfinished result.
    ///
    /// # Errors
    /// When there is no answer to one of them.
    pub fn answered(&self, requests: &Map<String, Value>) -> anyhow::Result<Value> {
        let answer = |(key, request): (&String, &Value)| {
            let method = request["method"].as_str().unwrap_or_default();
            let answer = self.ears.answer(method, &request["params"]);
            Ok((key.clone(), answer.with_context(|| format!("no answer to {method}"))?))
        };
        requests.iter().map(answer).collect()
    }

    /// All entries of a list, page by page.
    ///
    /// # Errors
    /// When a page does not come.
    pub async fn list(&self, method: &str, member: &str) -> anyhow::Result<Vec<Value>> {
        let mut all = Vec::new();
        let mut params = json!({});
        for _ in 0..MAX_PAGES {
            let result = self.request(method, params).await?.result()?;
            all.extend(result[member].as_array().with_context(|| format!("no {member}: {result}"))?.iter().cloned());
            match result.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => return Ok(all),
            }
        }
        bail!("{method} does not end")
    }

    /// Wants to hear of changes: of the tools, and of this resource.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn follow(&self, uri: &str) -> anyhow::Result<()> {
        if !self.revision.modern() {
            return self.request("resources/subscribe", json!({"uri": uri})).await?.result().map(drop);
        }
        let wanted = json!({"toolsListChanged": true, "resourceSubscriptions": [uri]});
        let mut begun = self.begin("subscriptions/listen", json!({"notifications": wanted})).await?;
        let id = begun.id.clone();
        let acknowledged = |note: &Value| {
            note["method"] == "notifications/subscriptions/acknowledged"
                && note["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == id
        };
        tokio::select! {
            note = self.heard(0, acknowledged) => note.context("no acknowledgement")?,
            answer = &mut begun.answer => bail!("listening ended at once: {:?}", answer?),
        };
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).push(begun);
        Ok(())
    }

    /// Wants log messages from this level on.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn set_level(&self, level: &'static str) -> anyhow::Result<()> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
        if self.revision.modern() {
            return Ok(());
        }
        self.request("logging/setLevel", json!({"level": level})).await?.result().map(drop)
    }

    /// How many notifications came so far.
    pub fn mark(&self) -> usize {
        self.ears.notifications().len()
    }

    /// All notifications so far.
    pub fn notifications(&self) -> Vec<Value> {
        self.ears.notifications()
    }

    /// The first notification after the mark that fits; waits for it.
    ///
    /// # Errors
    /// When none comes in time.
    pub async fn heard(&self, mark: usize, fits: impl Fn(&Value) -> bool) -> anyhow::Result<Value> {
        let heard = tokio::time::timeout(self.patience, self.ears.heard(mark, &fits)).await;
        heard.with_context(|| format!("only {:?}", self.ears.notifications().split_off(mark)))
    }

    /// The methods of the questions that were asked so far.
    pub fn asked(&self) -> Vec<String> {
        self.ears.asked()
    }

    /// What was seen that the revision does not allow, since this was last asked.
    pub fn violations(&self) -> Vec<String> {
        self.ears.violations()
    }

    /// Every message that was sent or received so far.
    pub fn wire_log(&self) -> Vec<Logged> {
        self.ears.log.messages()
    }

    /// Ends a server that is a child process, in good order.
    ///
    /// # Errors
    /// When it does not end, or fails.
    pub async fn end(&mut self) -> anyhow::Result<()> {
        tokio::time::timeout(self.patience, self.wire.end()).await.context("the child process goes on")?
    }

    /// Whether nothing more can come, since the server is gone.
    pub fn ended(&self) -> bool {
        let listening = self.listening.lock().unwrap_or_else(PoisonError::into_inner);
        self.wire.ended() && listening.iter().all(|begun| begun.sent.ended())
    }

    /// What a child process wrote to standard error, if the server is one.
    pub fn error_lines(&self) -> Vec<String> {
        self.wire.error_lines()
    }
}
