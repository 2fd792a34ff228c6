//! Everything the client hears, whatever carries it: answers find their requests, questions get answers, the rest is
//! kept.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{anyhow, bail};
use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};

use super::answers::Answers;
use super::{judge, judge_notes};
use crate::revision::Revision;
use crate::wire_log::WireLog;

/// Most notifications and violations that are kept.
const MAX_KEPT: usize = 10_000;

/// The answer to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A result.
    Result(Value),
    /// An error: `code`, `message` and perhaps `data`.
    Error(Value),
}

impl Reply {
    /// The result.
    ///
    /// # Errors
    /// When it is an error.
    pub fn result(self) -> anyhow::Result<Value> {
        match self {
            Self::Result(result) => Ok(result),
            Self::Error(error) => bail!("error {error}"),
        }
    }

    /// The first text of a tool's result that is no failure.
    ///
    /// # Errors
    /// When it is something else.
    pub fn text(self) -> anyhow::Result<String> {
        let result = self.result()?;
        anyhow::ensure!(result["isError"] != true, "a failure: {result}");
        let text = result["content"][0]["text"].as_str();
        text.map(str::to_owned).ok_or_else(|| anyhow!("no text: {result}"))
    }
}

/// What is known of a request while its answer is waited for.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// Its method.
    pub method: String,
    /// Its parameters.
    pub params: Value,
}

/// A request that is on its way.
#[derive(Debug)]
pub struct Pending {
    /// The request.
    pub wanted: Wanted,
    /// The last progress that was told.
    pub progress: Option<f64>,
    /// Whether listening was acknowledged.
    pub acknowledged: bool,
    answer: Option<oneshot::Sender<anyhow::Result<Reply>>>,
}

/// The ears of a client.
#[derive(Debug)]
pub struct Ears {
    /// The revision that is spoken.
    pub revision: Revision,
    /// What is answered to questions.
    pub answers: Answers,
    /// Every message that was sent or received.
    pub log: Arc<WireLog>,
    state: Mutex<EarsState>,
    news: watch::Sender<()>,
}

/// What was heard.
#[derive(Debug, Default)]
pub struct EarsState {
    /// Requests on their way, by id.
    pub pending: HashMap<String, Pending>,
    cancelled: Vec<String>,
    notifications: Vec<Value>,
    violations: Vec<String>,
    asked: Vec<String>,
}

impl Ears {
    /// Ears that heard nothing yet.
    pub fn new(revision: Revision, answers: Answers) -> Self {
        let (log, news) = (WireLog::in_memory(), watch::Sender::new(()));
        Self { revision, answers, log, state: Mutex::default(), news }
    }

    fn state(&self) -> MutexGuard<'_, EarsState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the answer to a request that is about to be sent.
    pub fn expect(&self, id: &Value, wanted: Wanted) -> oneshot::Receiver<anyhow::Result<Reply>> {
        let (sender, receiver) = oneshot::channel();
        let pending = Pending { wanted, progress: None, acknowledged: false, answer: Some(sender) };
        self.state().pending.insert(id.to_string(), pending);
        receiver
    }

    /// Forgets a request that was called off.
    pub fn forget(&self, id: &Value) {
        let mut state = self.state();
        state.pending.remove(&id.to_string());
        state.cancelled.push(id.to_string());
    }

    /// A request got no answer, for this reason.
    pub fn fail(&self, id: &Value, why: anyhow::Error) {
        let pending = self.state().pending.remove(&id.to_string());
        if let Some(answer) = pending.and_then(|pending| pending.answer) {
            // Whoever asked may not wait any more.
            let _ = answer.send(Err(why));
        }
    }

    /// The connection is gone: nothing more will be answered.
    pub fn closed(&self, why: &str) {
        let pending: Vec<Pending> = self.state().pending.drain().map(|(_, pending)| pending).collect();
        for answer in pending.into_iter().filter_map(|pending| pending.answer) {
            let _ = answer.send(Err(anyhow!("the connection ended: {why}")));
        }
    }

    /// Something was seen that the revision does not allow.
    pub fn violation(&self, what: impl Into<String>) {
        let mut state = self.state();
        if state.violations.len() < MAX_KEPT {
            state.violations.push(what.into());
        }
    }

    /// Hears a message; `stream` is the id of the request on whose HTTP stream it came. Returns what to send back.
    pub fn hear(&self, message: Value, stream: Option<&Value>) -> Vec<Value> {
        match message {
            Value::Array(batch) if self.revision == Revision::R2 => {
                batch.into_iter().filter_map(|one| self.hear_one(one, stream)).collect()
            }
            one => self.hear_one(one, stream).into_iter().collect(),
        }
    }

    fn hear_one(&self, message: Value, stream: Option<&Value>) -> Option<Value> {
        if message["jsonrpc"] != "2.0" {
            self.violation(format!("no JSON-RPC 2.0: {message}"));
        }
        match (message["method"].as_str(), message.get("id")) {
            (Some(_), Some(_)) => self.question(&message),
            (Some(_), None) => {
                self.notification(message, stream);
                None
            }
            (None, _) => {
                self.answer_came(&message);
                None
            }
        }
    }

    fn question(&self, message: &Value) -> Option<Value> {
        let method = message["method"].as_str().unwrap_or_default();
        if let Err(what) = judge::question(self.revision, message) {
            self.violation(format!("{what:#}"));
        }
        let id = &message["id"];
        if method == "ping" {
            return Some(json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        }
        Some(match self.answer(method, &message["params"]) {
            Some(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            None => {
                let error = json!({"code": -32601, "message": format!("Method not found: {method}")});
                json!({"jsonrpc": "2.0", "id": id, "error": error})
            }
        })
    }

    /// The answer to a question, if it was declared.
    pub fn answer(&self, method: &str, params: &Value) -> Option<Value> {
        if let Err(what) = judge::asked(self.revision, &self.answers, method, params) {
            self.violation(format!("{what:#}"));
        }
        self.state().asked.push(method.to_owned());
        self.answers.to(method).filter(|_| method != "elicitation/create" || self.revision.elicits())
    }

    fn notification(&self, message: Value, stream: Option<&Value>) {
        let judged = judge_notes::notification(self.revision, &mut self.state(), &message, stream);
        if let Err(what) = judged {
            self.violation(format!("{what:#}"));
        }
        let mut state = self.state();
        if state.notifications.len() < MAX_KEPT {
            state.notifications.push(message);
        }
        drop(state);
        self.news.send_replace(());
    }

    fn answer_came(&self, message: &Value) {
        let id = message["id"].to_string();
        let mut state = self.state();
        let Some(pending) = state.pending.remove(&id) else {
            // An answer may cross a cancellation on its way.
            let late = state.cancelled.contains(&id);
            drop(state);
            if !late {
                self.violation(format!("an answer to nothing: {message}"));
            }
            return;
        };
        drop(state);
        if let Err(what) = judge::answer(self.revision, &pending.wanted, message) {
            self.violation(format!("{what:#}"));
        }
        let reply = match (message.get("result"), message.get("error")) {
            (Some(result), None) => Ok(Reply::Result(result.clone())),
            (None, Some(error)) => Ok(Reply::Error(error.clone())),
            _ => Err(anyhow!("neither a result nor an error: {message}")),
        };
        if let Some(answer) = pending.answer {
            // Whoever asked may not wait any more.
            let _ = answer.send(reply);
        }
    }

    /// All notifications so far.
    pub fn notifications(&self) -> Vec<Value> {
        self.state().notifications.clone()
    }

    /// The violations that were not taken before.
    pub fn violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state().violations)
    }

    /// The methods of all questions so far.
    pub fn asked(&self) -> Vec<String> {
        self.state().asked.clone()
    }

    /// Waits for a notification after the mark that fits.
    pub async fn heard(&self, mark: usize, fits: &impl Fn(&Value) -> bool) -> Value {
        let mut news = self.news.subscribe();
        loop {
            let found = self.state().notifications.iter().skip(mark).find(|note| fits(note)).cloned();
            if let Some(found) = found {
                return found;
            }
            // The sender lives as long as these ears.
            let _ = news.changed().await;
        }
    }
}
