//! What a client of the old era may send, by revision.

use serde_json::Value;

use super::fault::RpcFault;
use super::shared::ServerShared;
use super::talk::{Talk, TalkPhase};
use crate::revision::Revision;

/// A rule that was broken; some are no violation, as a question whether a method exists.
#[derive(Debug, PartialEq)]
pub struct Broken {
    /// What is answered.
    pub fault: RpcFault,
    /// Whether the client must not do this.
    pub violation: bool,
}

impl Broken {
    /// A violation.
    pub fn rule(fault: RpcFault) -> Self {
        Self { fault, violation: true }
    }

    /// Something that a client may try.
    pub fn tried(fault: RpcFault) -> Self {
        Self { fault, violation: false }
    }

    /// Counts it if it is a violation; returns what is answered.
    pub fn told(self, shared: &ServerShared, method: &str) -> RpcFault {
        if self.violation {
            shared.violation(&format!("{method}: {}", self.fault.message));
        }
        self.fault
    }
}

/// Methods of every old revision.
const METHODS: [&str; 13] = [
    "initialize",
    "ping",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "completion/complete",
    "logging/setLevel",
];
/// Methods of 2025-11-25 alone.
const TASK_METHODS: [&str; 4] = ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel"];
/// The question of a client that does not know yet which era we speak.
pub const PROBE: &str = "server/discover";
/// The only key of the reserved prefix that the old era has.
const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const RESERVED: &str = "io.modelcontextprotocol/";

/// Whether several messages may come as one.
pub fn takes_batches(revision: Revision) -> bool {
    revision == Revision::R2
}

/// Whether an old revision has this method.
fn has_method(revision: Revision, method: &str) -> bool {
    match method.starts_with("tasks/") {
        true => revision == Revision::R4 && TASK_METHODS.contains(&method),
        false => METHODS.contains(&method),
    }
}

/// What every message has, of both eras.
///
/// # Errors
/// The rule that it breaks.
pub fn frame(message: &Value) -> Result<(), Broken> {
    if message["jsonrpc"] != "2.0" {
        return Err(Broken::rule(RpcFault::new(-32600, "jsonrpc is not \"2.0\"")));
    }
    if !matches!(message.get("params"), None | Some(Value::Object(_))) {
        return Err(Broken::rule(RpcFault::params("params is no object")));
    }
    match message.get("id") {
        None => Ok(()),
        Some(Value::String(_)) => Ok(()),
        Some(Value::Number(id)) if id.is_i64() || id.is_u64() => Ok(()),
        Some(id) => Err(Broken::rule(RpcFault::new(-32600, format!("the id {id} is neither string nor integer")))),
    }
}

/// Judges a request.
///
/// # Errors
/// The rule that it breaks.
pub fn request(talk: &Talk, method: &str, message: &Value) -> Result<(), Broken> {
    let revision = talk.shared.revision;
    frame(message)?;
    if method == PROBE {
        return Err(Broken::tried(RpcFault::method(method)));
    }
    if !has_method(revision, method) {
        return Err(Broken::rule(RpcFault::method(method)));
    }
    match (method, talk.phase()) {
        ("ping", _) | ("initialize", TalkPhase::New) => {}
        ("initialize", _) => return Err(Broken::rule(RpcFault::new(-32600, "initialize came twice"))),
        (_, TalkPhase::Open) => {}
        (_, TalkPhase::New) => return Err(Broken::rule(RpcFault::new(-32600, "this comes before initialize"))),
        _ => return Err(Broken::rule(RpcFault::new(-32600, "this comes before notifications/initialized"))),
    }
    members(revision, &message["params"])?;
    if method == "initialize" { initialize(&message["params"]) } else { Ok(()) }
}

/// Members of parameters that an old revision does not have.
fn members(revision: Revision, params: &Value) -> Result<(), Broken> {
    for member in ["inputResponses", "requestState"] {
        if params.get(member).is_some() {
            return Err(Broken::rule(RpcFault::params(format!("`{member}` is of 2026-07-28"))));
        }
    }
    if params.get("task").is_some() && revision < Revision::R4 {
        return Err(Broken::rule(RpcFault::params("`task` is of 2025-11-25")));
    }
    let meta = &params["_meta"];
    if !(meta.is_null() || meta.is_object()) {
        return Err(Broken::rule(RpcFault::params("_meta is no object")));
    }
    let mut keys = meta.as_object().into_iter().flatten().map(|(key, _)| key);
    let known = |key: &str| revision == Revision::R4 && key == RELATED_TASK;
    if let Some(key) = keys.find(|key| key.starts_with(RESERVED) && !known(key)) {
        return Err(Broken::rule(RpcFault::params(format!("_meta key `{key}` is of another revision"))));
    }
    token(meta)
}

/// A progress token, if there is one.
///
/// # Errors
/// When it is neither string nor integer.
pub fn token(meta: &Value) -> Result<(), Broken> {
    match meta.get("progressToken") {
        None | Some(Value::String(_)) => Ok(()),
        Some(Value::Number(token)) if token.is_i64() || token.is_u64() => Ok(()),
        Some(token) => {
            Err(Broken::rule(RpcFault::params(format!("the progress token {token} is neither string nor integer"))))
        }
    }
}

fn initialize(params: &Value) -> Result<(), Broken> {
    let fits = params["protocolVersion"].is_string()
        && params["capabilities"].is_object()
        && params["clientInfo"]["name"].is_string()
        && params["clientInfo"]["version"].is_string();
    if fits { Ok(()) } else { Err(Broken::rule(RpcFault::params("initialize lacks a required member"))) }
}

/// Judges a notification.
///
/// # Errors
/// The rule that it breaks.
pub fn notification(talk: &Talk, method: &str, message: &Value) -> Result<(), Broken> {
    frame(message)?;
    let refuse = |what: String| Err(Broken::rule(RpcFault::new(-32600, what)));
    match method {
        "notifications/initialized" if talk.phase() == TalkPhase::Answered => Ok(()),
        "notifications/initialized" => refuse(format!("this comes in the phase {:?}", talk.phase())),
        "notifications/cancelled" if !talk.knows(&message["params"]["requestId"]) => {
            refuse(format!("no request has the id {}", message["params"]["requestId"]))
        }
        "notifications/cancelled" | "notifications/progress" | "notifications/roots/list_changed" => Ok(()),
        "notifications/tasks/status" if talk.shared.revision == Revision::R4 => Ok(()),
        _ => refuse("no notification of this revision".to_owned()),
    }
}
