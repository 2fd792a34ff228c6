//! A page as a backend. Each connection serves one [`PageTarget`], whose page may change.
//!
//! The server side of a connection speaks an old revision, in which a server announces list changes by itself. It looks
//! up the page of the target on each call.

use crate::call::{CallEnd, RelayCall};
use crate::code::Code;
use crate::json_text::JsonText;
use crate::mcp_result;
use crate::relay::{BACKEND, PageTarget, Relay, own_tools};
use crate::session::SessionRecord;
use crate::store::{EventReader, RelayEvent};
use crate::tool_request::{ToolRequest, WorkerError};
use crate::tools::{self, CONNECT, CONNECTED, with_session_code};
use crate::{random, settings::millis};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use signalbox_engine::catalog::ListOwners;
use signalbox_engine::{Fault, Principal};
use signalbox_runtime::clock::unix_millis;
use signalbox_runtime::{BoxFuture, Connector, Link, LinkEvents};
use signalbox_transport::in_process::{InProcessConnector, ServerChannels};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;
use tokio::task::{AbortHandle, JoinSet};

/// `_meta` member by which a legacy call asks for its result in the form that the page sent.
pub const REST: &str = "io.signalbox/rest";
/// JSON-RPC code for a session that no longer exists.
pub const SESSION_EXPIRED: i64 = -32002;
const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC code when the memory budget has no room for a response.
const OVERLOADED: i64 = -32603;
/// Revisions that the server side speaks.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

type Serve = Box<dyn Fn(ServerChannels) -> BoxFuture<()> + Send + Sync>;

/// Connector that opens connections to pages.
pub struct RelayConnector {
    inner: InProcessConnector<Serve>,
    relay: Arc<Relay>,
}

impl fmt::Debug for RelayConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RelayConnector")
    }
}

impl RelayConnector {
    /// Creates a connector to the pages of this relay.
    #[must_use]
    pub fn new(relay: &Arc<Relay>) -> Self {
        let served = Arc::clone(relay);
        let serve: Serve = Box::new(move |visitor: ServerChannels| Box::pin(serve(Arc::clone(&served), visitor)));
        Self { inner: InProcessConnector::new(BACKEND, serve), relay: Arc::clone(relay) }
    }
}

impl Connector for RelayConnector {
    fn open(&self, events: Arc<dyn LinkEvents>) -> BoxFuture<Result<Arc<dyn Link>, Fault>> {
        self.inner.open(events)
    }

    fn carries_headers(&self) -> bool {
        false
    }

    fn is_process(&self) -> bool {
        false
    }

    fn kind(&self) -> &'static str {
        BACKEND
    }

    fn is_per_user(&self) -> bool {
        true
    }

    fn is_apart(&self) -> bool {
        true
    }

    fn list_owners(&self) -> Option<Arc<dyn ListOwners>> {
        Some(Arc::clone(&self.relay) as _)
    }
}

/// Serves one connection until it is closed.
async fn serve(relay: Arc<Relay>, visitor: ServerChannels) {
    let ServerChannels { mut incoming, outgoing, principal } = visitor;
    let target = principal.as_ref().map_or(PageTarget::Nowhere, |principal| relay.target_of(principal));
    let mut conversation = Conversation {
        target,
        who: principal.map_or_else(String::new, |principal: Principal| principal.as_str().to_owned()),
        relay,
        outgoing,
        events: None,
        calls: JoinSet::new(),
        running: HashMap::new(),
    };
    loop {
        tokio::select! {
            message = incoming.recv() => match message {
                Some(bytes) => conversation.receive(bytes).await,
                None => return,
            },
            event = next(&mut conversation.events) => conversation.handle_event(event).await,
            Some(ended) = conversation.calls.join_next(), if !conversation.calls.is_empty() => {
                if let Ok((id, reply)) = ended && conversation.running.remove(&id).is_some() {
                    conversation.reply(&id, reply).await;
                }
            }
        }
    }
}

/// Returns the next event of the session; pends forever without a subscription.
async fn next(events: &mut Option<EventReader>) -> Option<RelayEvent> {
    match events {
        Some(events) => events.recv().await,
        None => std::future::pending().await,
    }
}

/// Server side of one connection.
struct Conversation {
    relay: Arc<Relay>,
    target: PageTarget,
    /// Name of the principal, under which wrong codes of this session are counted.
    who: String,
    outgoing: Sender<Bytes>,
    events: Option<EventReader>,
    calls: JoinSet<(Box<str>, String)>,
    running: HashMap<Box<str>, AbortHandle>,
}

/// JSON-RPC message from the gateway.
#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    name: String,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta", default)]
    meta: CallMeta,
}

/// Members of a call's `_meta` that are read. The rest may be large and is skipped.
#[derive(Deserialize, Default)]
struct CallMeta {
    #[serde(rename = "progressToken", default)]
    progress_token: Value,
    #[serde(rename = "io.signalbox/rest", default)]
    rest: Value,
}

/// Call received from the gateway.
struct ToolCall {
    name: String,
    arguments: JsonText,
    meta: CallMeta,
}

impl Conversation {
    async fn receive(&mut self, bytes: Bytes) {
        let Ok(message) = serde_json::from_slice::<Message<'_>>(&bytes) else { return };
        let params = message.params.map_or("{}", RawValue::get);
        let Some(id) = message.id else {
            if message.method.as_deref() == Some("notifications/cancelled") {
                self.cancelled(params);
            }
            return;
        };
        match message.method.as_deref() {
            Some("initialize") => {
                self.listen().await;
                let reply = result(id.get(), &initialized(params));
                self.send(reply).await;
            }
            Some("ping") => self.send(result(id.get(), "{}")).await,
            Some("tools/list") => {
                let list = self.list().await;
                self.send(result(id.get(), &list)).await;
            }
            Some("tools/call") => self.call(id.get(), &bytes, params).await,
            Some(other) => {
                let text = format!("there is no method {other:?} here");
                self.send(error(id.get(), METHOD_NOT_FOUND, &text, None)).await;
            }
            None => {}
        }
    }

    async fn send(&self, message: String) {
        let _ = self.outgoing.send(message.into()).await;
    }

    /// Sends the response to a call. It is charged to the budget like responses of other backends, and replaced by an
    /// error if there is no room.
    async fn reply(&self, id: &str, reply: String) {
        let held = self.relay.shares.hold_for_page(reply.into());
        let reply = held.unwrap_or_else(|refused| error(id, OVERLOADED, &refused.to_string(), None).into());
        let _ = self.outgoing.send(reply).await;
    }

    fn cancelled(&mut self, params: &str) {
        let params: Value = serde_json::from_str(params).unwrap_or_default();
        if let Some(call) = self.running.remove(params["requestId"].to_string().as_str()) {
            call.abort();
        }
    }

    /// Handles a session event: a change of the page's tools, or the end of the session.
    async fn handle_event(&mut self, event: Option<RelayEvent>) {
        match event {
            Some(RelayEvent::ToolsChanged) => {
                if let Ok(Some(record)) = self.relay.bound(&self.target).await {
                    self.relay.note_tools(&self.who, &record);
                }
                self.announce_tools_changed().await;
            }
            Some(RelayEvent::Ended) | None => {
                // The next list subscribes anew.
                self.events = None;
            }
            Some(_) => {}
        }
    }

    async fn announce_tools_changed(&self) {
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#.to_owned()).await;
    }

    /// Subscribes to the session that the target is bound to, so that changes of its tools are announced. Returns the
    /// session.
    async fn listen(&mut self) -> Option<SessionRecord> {
        let record = self.relay.bound(&self.target).await.ok().flatten()?;
        if self.events.is_none() {
            self.events = self.relay.store.subscribe(&record.code).await.ok();
        }
        Some(record)
    }

    /// Lists every tool that can be called at this target. The gateway filters the list for each caller.
    async fn list(&mut self) -> String {
        let record = self.listen().await;
        let own = record.as_ref().map(own_tools).unwrap_or_default();
        let all = self.relay.tools.all(&own);
        let tools: Vec<Value> = match &self.target {
            PageTarget::Session(_) => all.cloned().chain([tools::connect_tool()]).collect(),
            PageTarget::Code(_) | PageTarget::Nowhere => all.map(with_session_code).collect(),
        };
        json!({"tools": tools}).to_string()
    }

    async fn call(&mut self, id: &str, message: &Bytes, params: &str) {
        let Ok(params) = serde_json::from_str::<CallParams>(params) else {
            return self.send(error(id, INVALID_PARAMS, "params.name must be a string", None)).await;
        };
        if params.name == CONNECT && matches!(self.target, PageTarget::Session(_)) {
            let reply = match self.connect(params.arguments).await {
                Ok(text) => text_result(text),
                Err(failure) => mcp_result::of_error(&failure),
            };
            return self.send(result(id, &reply)).await;
        }
        let call = PageCall {
            relay: Arc::clone(&self.relay),
            target: self.target.clone(),
            outgoing: self.outgoing.clone(),
            id: id.to_owned(),
        };
        let arguments = params.arguments.map(|raw| JsonText::within(message, raw));
        let asked = ToolCall {
            name: params.name,
            arguments: arguments.unwrap_or_else(JsonText::empty_object),
            meta: params.meta,
        };
        let key: Box<str> = id.into();
        let task = self.calls.spawn({
            let key = key.clone();
            async move { (key, call.run(asked).await) }
        });
        self.running.insert(key, task);
    }

    /// Binds the MCP session of this target to the page whose code the ticket stands for.
    async fn connect(&mut self, arguments: Option<&RawValue>) -> Result<&'static str, WorkerError> {
        let PageTarget::Session(mcp_id) = self.target.clone() else { return Err(refused("this needs a session")) };
        let arguments: Value = arguments.and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
        let given = arguments["sessionId"].as_str().and_then(|ticket| self.relay.redeem(ticket));
        let Some(given) = given else { return Err(refused("sessionId must be the code that the page shows")) };
        // By address too: a caller can open any number of sessions.
        let sources = [&*given.address, &*self.who];
        let code = Code::parse(&given.code).map_err(|error| {
            self.relay.guessed(&sources);
            refused(&error.to_string())
        })?;
        let found = self.relay.find(&code, &sources).await.map_err(|refusal| refused(&refusal.to_string()))?;
        match self.relay.store.bind(&mcp_id, &code, unix_millis()).await {
            Ok(true) => {}
            Ok(false) => return Err(refused("the session is over: initialize again")),
            Err(error) => return Err(refused(&error.to_string())),
        }
        self.events = self.relay.store.subscribe(&code).await.ok();
        self.relay.note_tools(&self.who, &found);
        self.announce(&found).await;
        self.announce_tools_changed().await;
        Ok("Connected to the page. Its tools can be used now.")
    }

    /// Tells the page that an agent has connected. Its answer is ignored.
    async fn announce(&self, record: &SessionRecord) {
        let Ok(id) = random::request_id() else { return };
        let (at, limits) = (unix_millis(), &self.relay.settings.limits);
        let request = ToolRequest {
            id: id.into(),
            tool: CONNECTED.into(),
            arguments: JsonText::empty_object(),
            at,
            deadline: at.saturating_add(millis(limits.request_timeout)),
            idempotent: true,
            sent_to: None,
        };
        let _ = self.relay.store.push(&record.code, request, limits.queue, at).await;
    }
}

/// Call that runs against a page.
struct PageCall {
    relay: Arc<Relay>,
    target: PageTarget,
    outgoing: Sender<Bytes>,
    id: String,
}

impl PageCall {
    async fn run(self, asked: ToolCall) -> String {
        let record = match self.relay.bound(&self.target).await {
            Ok(Some(record)) => record,
            Ok(None) if self.target == PageTarget::Nowhere => {
                let text = "say which page is meant: give `sessionCode`, the 8-character code that the page shows";
                return result(&self.id, &mcp_result::of_error(&refused(text)));
            }
            Ok(None) => return self.expired(),
            Err(error) => return result(&self.id, &mcp_result::of_error(&refused(&error.to_string()))),
        };
        let own = own_tools(&record);
        if !self.relay.tools.has(&asked.name, &own) {
            let text = format!("there is no tool {:?} here", asked.name);
            return error(&self.id, INVALID_PARAMS, &text, None);
        }
        let mut record = record;
        if self.relay.touch(&mut record).await.is_err() {
            return self.expired();
        }
        let (token, form) = (asked.meta.progress_token, asked.meta.rest == Value::Bool(true));
        let limits = &self.relay.settings.limits;
        let call = RelayCall {
            within: if form { limits.request_ttl } else { limits.request_timeout },
            code: record.code.clone(),
            idempotent: self.relay.tools.is_idempotent(&asked.name, &own),
            tool: asked.name,
            arguments: asked.arguments,
        };
        let outgoing = self.outgoing.clone();
        let progress = |how_far: &str| {
            if !token.is_null()
                && let Some(message) = progressed(&token, how_far)
            {
                // Progress may be dropped when the queue is full: the next message supersedes it.
                let _ = outgoing.try_send(message.into());
            }
        };
        match call.run(&self.relay, progress).await {
            CallEnd::Answered(answer) => result(&self.id, &mcp_result::of_answer(&answer, form)),
            CallEnd::Failed(failure) => result(&self.id, &mcp_result::of_error(&failure)),
            CallEnd::Expired => self.expired(),
        }
    }

    fn expired(&self) -> String {
        let session = match &self.target {
            PageTarget::Session(id) => Some(&**id),
            PageTarget::Code(_) | PageTarget::Nowhere => None,
        };
        error(&self.id, SESSION_EXPIRED, "Session expired", Some(&expired_data(session)))
    }
}

/// Returns the error data for a session that has ended.
#[must_use]
pub fn expired_data(session: Option<&str>) -> Value {
    match session {
        Some(id) => json!({"sessionId": id, "originalCode": "SESSION_EXPIRED"}),
        None => json!({"originalCode": "SESSION_EXPIRED"}),
    }
}

fn refused(message: &str) -> WorkerError {
    WorkerError { kind: "invalid_args".into(), message: message.into(), details: None }
}

fn initialized(params: &str) -> String {
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let revision = REVISIONS.into_iter().find(|known| *known == asked).unwrap_or(REVISIONS[3]);
    json!({
        "protocolVersion": revision,
        "capabilities": {"tools": {"listChanged": true}},
        "serverInfo": {"name": "codap-mcp-server", "version": "1.0.0"},
    })
    .to_string()
}

fn progressed(token: &Value, how_far: &str) -> Option<String> {
    let how_far: Value = serde_json::from_str(how_far).ok()?;
    let mut params = json!({"progressToken": token, "progress": how_far["progress"].as_f64()?});
    for (key, wanted) in [("total", how_far["total"].is_number()), ("message", how_far["message"].is_string())] {
        if wanted {
            params[key] = how_far[key].clone();
        }
    }
    Some(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}).to_string())
}

fn text_result(text: &str) -> String {
    json!({"content": [{"type": "text", "text": text}]}).to_string()
}

fn result(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn error(id: &str, code: i64, message: &str, data: Option<&Value>) -> String {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data.clone();
    }
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}
