//! A conversation with one client: a pipe, a session, or (new era over HTTP) everyone.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::anyhow;
use serde_json::{Value, json};
use tokio::sync::{Notify, oneshot};

use super::call::{Out, Outlet, ServedCall};
use super::fault::RpcFault;
use super::question::ServerQuestion;
use super::shared::ServerShared;
use super::{rules, rules_modern};

/// Messages that wait for a client to open its general stream.
const BACKLOG: usize = 64;
/// Most requests of one conversation, each of whose ids is remembered.
const MAX_REQUESTS: usize = 1_000_000;
/// The level below which nothing is logged before the client says otherwise.
const DEFAULT_LEVEL: usize = 1;

/// What carries the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TalkKind {
    /// One connection that carries everything: stdio, HTTP+SSE, WebSocket.
    Pipe,
    /// A session of Streamable HTTP in the old era.
    Session,
    /// The new era over HTTP: all clients at once.
    Stateless,
}

/// How far the handshake of the old era came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TalkPhase {
    /// Nothing came.
    New,
    /// `initialize` was answered.
    Answered,
    /// The client said that it is ready.
    Open,
}

/// A conversation.
#[derive(Debug)]
pub struct Talk {
    /// What it shares with others.
    pub shared: Arc<ServerShared>,
    /// What carries it.
    pub kind: TalkKind,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    phase: TalkPhase,
    capabilities: Value,
    level: usize,
    general: Option<Outlet>,
    backlog: Vec<Value>,
    follows: HashSet<String>,
    used: HashSet<String>,
    running: HashMap<String, Arc<Notify>>,
    tokens: HashMap<String, Value>,
    asked: HashMap<String, (ServerQuestion, oneshot::Sender<anyhow::Result<Value>>)>,
}

impl Talk {
    /// A conversation that just began.
    pub fn new(shared: Arc<ServerShared>, kind: TalkKind, general: Option<Outlet>) -> Arc<Self> {
        let inner = Inner {
            phase: TalkPhase::New,
            capabilities: json!({}),
            level: DEFAULT_LEVEL,
            general,
            backlog: Vec::new(),
            follows: HashSet::new(),
            used: HashSet::new(),
            running: HashMap::new(),
            tokens: HashMap::new(),
            asked: HashMap::new(),
        };
        let talk = Arc::new(Self { shared, kind, inner: Mutex::new(inner) });
        talk.shared.join(&talk);
        talk
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what came from the client. What it sets off goes to the outlet, which is let go of when there is no more.
    pub fn receive(self: &Arc<Self>, message: Value, out: &Outlet) {
        match message {
            Value::Array(batch) if rules::takes_batches(self.shared.revision) && !batch.is_empty() => {
                for one in batch {
                    self.receive_one(one, out);
                }
            }
            one => self.receive_one(one, out),
        }
    }

    fn receive_one(self: &Arc<Self>, message: Value, out: &Outlet) {
        let id = message["id"].clone();
        let kind = (message["method"].is_string(), message.get("id").is_some());
        let judged = match kind {
            (true, true) => self.request(message, out),
            (true, false) => self.notification(&message),
            (false, _) => self.response(&message),
        };
        if let Err(fault) = judged {
            if kind == (true, false) || (kind.1 && !kind.0) {
                return;
            }
            // A client that left reads nothing more.
            let _ = out.try_send(Out::fault(self, &fault, &id));
        }
    }

    fn request(self: &Arc<Self>, mut message: Value, out: &Outlet) -> Result<(), RpcFault> {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let judged = match self.shared.revision.modern() {
            true => rules_modern::request(&method, &message),
            false => rules::request(self, &method, &message),
        };
        judged.map_err(|broken| broken.told(&self.shared, &method))?;
        let id = message["id"].take();
        let params = match message["params"].take() {
            Value::Null => json!({}),
            params => params,
        };
        let cancel = self.started(&id, &params["_meta"]["progressToken"])?;
        if method == "initialize" {
            // Here and not where it is answered, so that messages are judged in the order they came.
            self.initialized(params["capabilities"].clone());
        }
        let call = ServedCall { talk: self.clone(), id, method, params, out: out.clone(), cancel };
        tokio::spawn(call.run());
        Ok(())
    }

    /// Remembers a request that begins.
    fn started(&self, id: &Value, token: &Value) -> Result<Arc<Notify>, RpcFault> {
        let cancel = Arc::new(Notify::new());
        // Ids and tokens of different clients may be the same where no connection tells them apart.
        if self.kind == TalkKind::Stateless {
            return Ok(cancel);
        }
        let mut inner = self.inner();
        if inner.used.len() >= MAX_REQUESTS || inner.running.len() >= MAX_REQUESTS {
            return Err(RpcFault::new(-32603, "too many requests"));
        }
        let key = id.to_string();
        let before = if self.shared.revision.modern() {
            inner.running.contains_key(&key)
        } else {
            !inner.used.insert(key.clone())
        };
        let token_before = inner.tokens.values().any(|other| other == token);
        if before || token_before {
            drop(inner);
            let what = if before { format!("id {id} used before") } else { format!("progress token {token} in use") };
            self.shared.violation(&what);
            return Err(RpcFault::new(-32600, what));
        }
        if !token.is_null() {
            inner.tokens.insert(key.clone(), token.clone());
        }
        inner.running.insert(key, cancel.clone());
        Ok(cancel)
    }

    /// Forgets a request that ended.
    pub fn finished(&self, id: &Value) {
        let mut inner = self.inner();
        inner.running.remove(&id.to_string());
        inner.tokens.remove(&id.to_string());
    }

    fn notification(&self, message: &Value) -> Result<(), RpcFault> {
        let method = message["method"].as_str().unwrap_or_default();
        let judged = match self.shared.revision.modern() {
            true => rules_modern::notification(method, message, self.kind),
            false => rules::notification(self, method, message),
        };
        judged.map_err(|broken| broken.told(&self.shared, method))?;
        match method {
            "notifications/initialized" => self.inner().phase = TalkPhase::Open,
            "notifications/cancelled" => {
                let running = self.inner().running.get(&message["params"]["requestId"].to_string()).cloned();
                if let Some(cancel) = running {
                    cancel.notify_one();
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn response(&self, message: &Value) -> Result<(), RpcFault> {
        let asked = self.inner().asked.remove(&message["id"].to_string());
        let Some((question, answer)) = asked else {
            let what = format!("no request nor the answer to one: {message}");
            self.shared.violation(&what);
            return Err(RpcFault::new(-32600, what));
        };
        let outcome = match question.judge(message, self.shared.revision) {
            Ok(outcome) => outcome,
            Err(fault) => {
                let what = format!("answer to {}: {fault:#}", question.method());
                self.shared.violation(&what);
                Err(anyhow!("VIOLATION {what}"))
            }
        };
        // The call that asked may be gone.
        let _ = answer.send(outcome);
        Ok(())
    }

    /// Waits for the answer to a question that is about to be asked; returns the id to ask it under.
    pub fn expect(&self, question: ServerQuestion) -> (Value, oneshot::Receiver<anyhow::Result<Value>>) {
        let id = json!(format!("question-{}", self.shared.number()));
        let (sender, receiver) = oneshot::channel();
        self.inner().asked.insert(id.to_string(), (question, sender));
        (id, receiver)
    }

    /// How far the handshake came.
    pub fn phase(&self) -> TalkPhase {
        self.inner().phase
    }

    /// Whether the client said that it is ready.
    pub fn open(&self) -> bool {
        self.phase() == TalkPhase::Open
    }

    /// Whether a request of this id was made.
    pub fn knows(&self, id: &Value) -> bool {
        let inner = self.inner();
        inner.used.contains(&id.to_string())
    }

    /// Takes what the client declares.
    fn initialized(&self, capabilities: Value) {
        let mut inner = self.inner();
        inner.phase = TalkPhase::Answered;
        inner.capabilities = capabilities;
    }

    /// What the client declared.
    pub fn capabilities(&self) -> Value {
        self.inner().capabilities.clone()
    }

    /// From which level on log messages are sent.
    pub fn level(&self) -> usize {
        self.inner().level
    }

    /// Sets that level.
    pub fn set_level(&self, level: usize) {
        self.inner().level = level;
    }

    /// Follows a resource, or no longer.
    pub fn follow(&self, uri: &str, on: bool) {
        let mut inner = self.inner();
        if on {
            inner.follows.insert(uri.to_owned());
        } else {
            inner.follows.remove(uri);
        }
    }

    /// Whether the client follows this resource.
    pub fn follows(&self, uri: &str) -> bool {
        self.inner().follows.contains(uri)
    }

    /// Whether the client has its general stream open.
    pub fn has_general(&self) -> bool {
        self.inner().general.as_ref().is_some_and(|out| !out.is_closed())
    }

    /// Opens the general stream, and sends what waited for it.
    pub fn set_general(&self, out: Outlet) {
        let mut inner = self.inner();
        for message in inner.backlog.drain(..) {
            // The backlog is smaller than a fresh outlet.
            let _ = out.try_send(Out::note(message));
        }
        inner.general = Some(out);
    }

    /// Tells the client something that belongs to no request.
    pub fn tell(&self, message: Value) {
        let mut inner = self.inner();
        let left = match &inner.general {
            Some(out) if !out.is_closed() => out.try_send(Out::note(message)).is_err(),
            _ if inner.backlog.len() < BACKLOG => {
                inner.backlog.push(message);
                false
            }
            _ => true,
        };
        if left {
            eprintln!("a client does not read what it is told");
        }
    }

    /// The client is gone: nothing it asked for is wanted any more.
    pub fn end(&self) {
        let running: Vec<Arc<Notify>> = self.inner().running.drain().map(|(_, cancel)| cancel).collect();
        for cancel in running {
            cancel.notify_one();
        }
    }
}
