//! Session with one peer: dispatches messages and tracks running calls.

use super::message::{
    self, INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, Id, Incoming, LIMITED, METHOD_NOT_FOUND, Request, RpcError,
};
use super::progress::Progress;
use super::reply;
use super::revision::{self, McpRevision};
use super::toolbox::{ServerDescription, Toolbox};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use tokio::sync::mpsc::Sender;
use tokio::task::{AbortHandle, JoinSet};

/// Maximum number of concurrent calls.
const MAX_RUNNING: usize = 64;

/// State of a session.
#[derive(Debug)]
pub struct ServerSession<T> {
    toolbox: T,
    about: ServerDescription,
    outgoing: Sender<Bytes>,
    revision: Option<McpRevision>,
    tasks: JoinSet<(Id, Bytes)>,
    running: HashMap<Id, AbortHandle>,
}

impl<T: Toolbox> ServerSession<T> {
    /// Creates a session. `outgoing` carries progress; replies are returned.
    pub fn new(toolbox: T, outgoing: Sender<Bytes>) -> Self {
        let about = toolbox.about();
        Self { toolbox, about, outgoing, revision: None, tasks: JoinSet::new(), running: HashMap::new() }
    }

    /// Returns `true` if calls are running.
    pub fn is_busy(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Processes a message. Returns a reply if it is available at once.
    pub fn receive(&mut self, bytes: &[u8]) -> Option<Bytes> {
        match message::parse(bytes) {
            Incoming::Request(request) => self.request(request),
            Incoming::Cancelled(id) => {
                if let Some(call) = self.running.remove(&id) {
                    call.abort();
                }
                None
            }
            Incoming::Nothing => None,
            Incoming::Broken(id, error) => Some(error.into_bytes(id.as_ref())),
        }
    }

    /// Waits for a call to finish and returns its reply. A cancelled call has none.
    pub async fn next_finished(&mut self) -> Option<Bytes> {
        match self.tasks.join_next_with_id().await? {
            Ok((task, (id, reply))) => {
                // While the reply was in transit, its id may have been cancelled and even reused.
                let current = self.running.get(&id).is_some_and(|call| call.id() == task);
                current.then(|| {
                    self.running.remove(&id);
                    reply
                })
            }
            Err(error) => {
                let broken = self.running.iter().find(|(_, call)| call.id() == error.id());
                let id = broken.map(|(id, _)| id.clone())?;
                self.running.remove(&id);
                let text = "The tool ended without an answer.";
                Some(RpcError::new(INTERNAL_ERROR, text).into_bytes(Some(&id)))
            }
        }
    }

    fn request(&mut self, request: Request) -> Option<Bytes> {
        let id = request.id.clone();
        match self.answer(request) {
            Ok(reply) => reply,
            Err(error) => Some(error.into_bytes(Some(&id))),
        }
    }

    fn answer(&mut self, request: Request) -> Result<Option<Bytes>, RpcError> {
        if request.method == "initialize" {
            return self.initialize(&request).map(Some);
        }
        let revision = revision::of_request(&request, self.revision)?;
        match (request.method.as_str(), revision.is_stateless()) {
            ("ping", false) => Ok(Some(reply::result(&request.id, self.about, revision, Map::new()))),
            ("server/discover", true) => Ok(Some(self.discover(&request, revision))),
            ("tools/list", _) => self.list(&request, revision).map(Some),
            ("tools/call", _) => self.call(request, revision).map(|()| None),
            (method, _) => {
                let text = format!("There is no method {method:?} here.");
                Err(RpcError::new(METHOD_NOT_FOUND, text))
            }
        }
    }

    fn initialize(&mut self, request: &Request) -> Result<Bytes, RpcError> {
        let asked = request.params.get("protocolVersion").and_then(Value::as_str);
        let Some(asked) = asked else {
            let text = "`params.protocolVersion` must be a string.";
            return Err(RpcError::new(INVALID_PARAMS, text));
        };
        let revision = McpRevision::negotiate(asked);
        self.revision = Some(revision);
        let mut body = Map::new();
        body.insert("protocolVersion".into(), revision.name().into());
        body.insert("capabilities".into(), json!({"tools": {}}));
        body.insert("serverInfo".into(), reply::server_info(self.about, revision));
        body.insert("instructions".into(), self.about.instructions.into());
        Ok(reply::result(&request.id, self.about, revision, body))
    }

    fn call(&mut self, request: Request, revision: McpRevision) -> Result<(), RpcError> {
        if self.running.contains_key(&request.id) {
            let text = "A request with this id is still running.";
            return Err(RpcError::new(INVALID_REQUEST, text));
        }
        let progress = Progress::new(progress_token(&request)?, revision, self.outgoing.clone());
        let (name, arguments) = tool_call(&request)?;
        if self.running.len() >= MAX_RUNNING {
            let text = format!("{MAX_RUNNING} calls are running already.");
            let data = json!({"reason": "too_many_running", "limit": MAX_RUNNING});
            return Err(RpcError::new(LIMITED, text).with_data(data));
        }
        let calling = self.toolbox.call(name, arguments, progress).ok_or_else(|| self.unknown_tool(name))?;
        let (id, about) = (request.id.clone(), self.about);
        let task = self.tasks.spawn(async move {
            let reply = reply::tool(&id, about, revision, calling.await);
            (id, reply)
        });
        self.running.insert(request.id, task);
        Ok(())
    }

    fn unknown_tool(&self, name: &str) -> RpcError {
        let tools = self.toolbox.tools();
        let known: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        let text = format!("There is no tool {name:?}; there are {}.", known.join(", "));
        RpcError::new(INVALID_PARAMS, text).with_data(json!({"reason": "unknown_tool"}))
    }

    fn discover(&self, request: &Request, revision: McpRevision) -> Bytes {
        let mut body = Map::new();
        body.insert("supportedVersions".into(), json!(McpRevision::STATELESS));
        body.insert("capabilities".into(), json!({"tools": {}}));
        body.insert("instructions".into(), self.about.instructions.into());
        reply::cacheable(&request.id, self.about, revision, body)
    }

    fn list(&self, request: &Request, revision: McpRevision) -> Result<Bytes, RpcError> {
        if request.params.contains_key("cursor") {
            let text = "There is one page only, so no cursor was ever given out.";
            return Err(RpcError::new(INVALID_PARAMS, text));
        }
        let mut body = Map::new();
        body.insert("tools".into(), reply::tools(self.toolbox.tools(), revision));
        Ok(reply::cacheable(&request.id, self.about, revision, body))
    }
}

/// Parses the tool name and arguments of a call.
fn tool_call(request: &Request) -> Result<(&str, Map<String, Value>), RpcError> {
    let invalid = |text: &str| RpcError::new(INVALID_PARAMS, text);
    let name = request.params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| invalid("`params.name` must be the name of a tool."))?;
    match request.params.get("arguments") {
        None => Ok((name, Map::new())),
        Some(Value::Object(arguments)) => Ok((name, arguments.clone())),
        Some(_) => Err(invalid("`params.arguments` must be an object.")),
    }
}

fn progress_token(request: &Request) -> Result<Option<Value>, RpcError> {
    match request.meta().and_then(|meta| meta.get("progressToken")) {
        None => Ok(None),
        Some(token) if Id::from_value(token).is_some() => Ok(Some(token.clone())),
        Some(_) => {
            let text = "`params._meta.progressToken` must be a string or a whole number.";
            Err(RpcError::new(INVALID_PARAMS, text))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolbox::{Answer, RunningCall};

    struct Echo;

    impl Toolbox for Echo {
        fn about(&self) -> ServerDescription {
            ServerDescription { name: "echo", title: "Echo", version: "1", instructions: "" }
        }

        fn tools(&self) -> Vec<Value> {
            vec![json!({"name": "echo", "title": "Echo", "inputSchema": {"type": "object"}})]
        }

        fn call(&mut self, tool: &str, arguments: Map<String, Value>, _: Progress) -> Option<RunningCall> {
            let text = arguments.get("text").and_then(Value::as_str).unwrap_or_default().to_owned();
            (tool == "echo").then(|| Box::pin(async { Answer::text(text) }) as RunningCall)
        }
    }

    fn echo(text: &str) -> String {
        let params = json!({"name": "echo", "arguments": {"text": text}});
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string()
    }

    #[tokio::test]
    async fn an_answer_that_is_cancelled_on_its_way_is_not_given_even_if_the_id_is_used_again() {
        let (outgoing, _progress) = tokio::sync::mpsc::channel(1);
        let mut session = ServerSession::new(Echo, outgoing);
        session.revision = Some(McpRevision::LAST_WITH_SESSIONS);
        let cancel = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
        assert_eq!(session.receive(echo("first").as_bytes()), None);
        // One thread runs everything here, so by then the first call has its answer.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert_eq!(session.receive(cancel), None);
        assert_eq!(session.receive(echo("second").as_bytes()), None);
        let mut replies = Vec::new();
        while session.is_busy() {
            replies.extend(session.next_finished().await);
        }
        assert_eq!(replies.len(), 1);
        assert!(String::from_utf8_lossy(&replies[0]).contains("second"));
        assert!(session.running.is_empty());
    }
}
