//! Clients of the gateway, without a transport.

use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_engine::front::Mode;
use signalbox_engine::{Caller, Principal, Proof};
use signalbox_runtime::{Gateway, Session, StreamReader};
use signalbox_wire::Envelope;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long an answer may take before it counts as lost.
const PATIENCE: Duration = Duration::from_secs(50);

static NEXT: AtomicU64 = AtomicU64::new(1);

fn number() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// A client of the old era with a session of its own.
pub struct Client {
    /// Its session.
    pub session: Arc<Session>,
}

impl Client {
    /// A client that declares these capabilities, and has said hello.
    pub async fn open(gateway: &Arc<Gateway>, capabilities: Value) -> Self {
        Self::open_as(gateway, Mode::Session, capabilities).await
    }

    /// The same for a caller of this name.
    pub async fn open_by(gateway: &Arc<Gateway>, principal: &str, capabilities: Value) -> Self {
        Self::greet(gateway, caller(&Principal::named(principal)), Mode::Session, capabilities).await
    }

    async fn open_as(gateway: &Arc<Gateway>, mode: Mode, capabilities: Value) -> Self {
        Self::greet(gateway, Caller::anonymous("test"), mode, capabilities).await
    }

    async fn greet(gateway: &Arc<Gateway>, caller: Caller, mode: Mode, capabilities: Value) -> Self {
        let external = format!("session-{}", number());
        let client = Self { session: gateway.open_session(caller, mode, &external, "test").unwrap() };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": capabilities,
            "clientInfo": {"name": "client", "version": "1"}
        });
        let answer = client.ask("initialize", hello).await;
        assert!(answer["result"].is_object(), "{answer}");
        let stream = client.session.open_stream().unwrap();
        let note = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        client.session.receive(&stream, envelope(&note));
        client
    }

    /// Sends a request on a stream of its own, without waiting.
    pub fn post(&self, method: &str, params: Value) -> StreamReader {
        let stream = self.session.open_stream().unwrap();
        let message = json!({"jsonrpc": "2.0", "id": number(), "method": method, "params": params});
        self.session.receive(&stream, envelope(&message));
        stream
    }

    /// Sends a request and waits for its answer.
    pub async fn ask(&self, method: &str, params: Value) -> Value {
        answer(&self.post(method, params)).await.expect("a stream ended without its answer")
    }

    /// The names of the tools it is shown.
    pub async fn tools(&self) -> Vec<String> {
        names(&self.ask("tools/list", json!({})).await, "tools")
    }

    /// The answer of a tool.
    pub async fn call(&self, tool: &str) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": {}})).await
    }
}

/// The answer to one tool call of a client of the new era.
pub async fn modern_call(gateway: &Arc<Gateway>, tool: &str) -> Value {
    modern(gateway, "tools/call", json!({"name": tool, "arguments": {}})).await
}

/// The answer to one request of a client of the new era that has no params of its own.
pub async fn modern_ask(gateway: &Arc<Gateway>, method: &str) -> Value {
    modern(gateway, method, json!({})).await
}

async fn modern(gateway: &Arc<Gateway>, method: &str, mut params: Value) -> Value {
    let session = gateway.open_session(Caller::anonymous("test"), Mode::Stateless, "", "test").unwrap();
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}
    });
    Client { session }.ask(method, params).await
}

/// A client of the new era: who it is, and what it declares.
pub struct Modern {
    /// The gateway it calls.
    pub gateway: Arc<Gateway>,
    /// On whose behalf.
    pub principal: Principal,
    /// Its capabilities.
    pub capabilities: Value,
}

impl Modern {
    /// Somebody who can be asked for a form, for a sample and for roots.
    pub fn askable(gateway: &Arc<Gateway>) -> Self {
        let capabilities = json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {}});
        Self { gateway: Arc::clone(gateway), principal: Principal::anonymous(), capabilities }
    }

    /// Sends a call, with more members of its params, without waiting.
    pub fn post(&self, tool: &str, more: &Value) -> StreamReader {
        let session = self.gateway.open_session(caller(&self.principal), Mode::Stateless, "", "test").unwrap();
        let mut params = json!({"name": tool, "arguments": {}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": self.capabilities
        }});
        for (key, value) in more.as_object().into_iter().flatten() {
            params[key] = value.clone();
        }
        Client { session }.post("tools/call", params)
    }

    /// Sends a call and waits for its answer.
    pub async fn call(&self, tool: &str, more: Value) -> Value {
        answer(&self.post(tool, &more)).await.expect("a stream ended without its answer")
    }
}

/// The next message on a stream; none where it has ended.
pub async fn next(stream: &StreamReader) -> Option<Value> {
    let out = tokio::time::timeout(PATIENCE, stream.next()).await.expect("nothing came, and nothing will");
    out.map(|out| serde_json::from_slice(out.bytes()).unwrap())
}

/// The answer on a stream, without what comes before it; none where the stream ends without one.
pub async fn answer(stream: &StreamReader) -> Option<Value> {
    while let Some(message) = next(stream).await {
        if message.get("method").is_none() {
            return Some(message);
        }
    }
    None
}

/// The names in the result of a list.
pub fn names(answer: &Value, member: &str) -> Vec<String> {
    let list = answer["result"][member].as_array().unwrap_or_else(|| panic!("no list: {answer}"));
    list.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

/// What a tool said; an error fails the test.
pub fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text: {answer}"))
}

/// A message of a client.
pub fn envelope(message: &Value) -> Envelope {
    Envelope::parse(Bytes::from(message.to_string())).unwrap()
}

/// Whoever calls on behalf of this principal.
pub fn caller(principal: &Principal) -> Caller {
    Caller::of(principal.clone(), Proof::LocalUser, "test")
}
