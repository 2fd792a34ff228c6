//! What a client of 2026-07-28 may send.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::HeaderMap;
use serde_json::{Value, json};

use super::fault::RpcFault;
use super::rules::{Broken, frame, token};
use super::talk::TalkKind;
use super::tools::LEVELS;
use crate::revision::Revision;

/// The version of every request.
pub const VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// Who the client is.
pub const INFO: &str = "io.modelcontextprotocol/clientInfo";
/// What the client can do.
pub const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// From which level on a request wants log messages.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";

/// Methods of 2026-07-28, with its extension for tasks.
const METHODS: [&str; 13] = [
    "server/discover",
    "subscriptions/listen",
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/read",
    "resources/templates/list",
    "completion/complete",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
];
/// Methods whose answer may be a question.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];

/// Judges a request.
///
/// # Errors
/// The rule that it breaks.
pub fn request(method: &str, message: &Value) -> Result<(), Broken> {
    frame(message)?;
    if method == "initialize" {
        // A client may try whether we speak the old era as well.
        return Err(Broken::tried(RpcFault::method(method)));
    }
    if !METHODS.contains(&method) {
        return Err(Broken::rule(RpcFault::method(method)));
    }
    let (params, meta) = (&message["params"], &message["params"]["_meta"]);
    let lacks = |key: &str| Broken::rule(RpcFault::params(format!("_meta lacks `{key}`")).status(400));
    match &meta[VERSION] {
        Value::String(version) if version == Revision::R5.name() => {}
        Value::String(version) => {
            let data = json!({"supported": [Revision::R5.name()], "requested": version});
            return Err(Broken::rule(RpcFault::new(-32022, "Unsupported protocol version").with(data)));
        }
        _ => return Err(lacks(VERSION)),
    }
    if !meta[CAPABILITIES].is_object() {
        return Err(lacks(CAPABILITIES));
    }
    if !(meta[INFO]["name"].is_string() && meta[INFO]["version"].is_string()) {
        return Err(lacks(INFO));
    }
    let level = &meta[LOG_LEVEL];
    if !level.is_null() && !LEVELS.iter().any(|known| level == known) {
        return Err(Broken::rule(RpcFault::params(format!("{level} is no log level"))));
    }
    let answers = params.get("inputResponses").is_some() || params.get("requestState").is_some();
    if answers && !ASKING.contains(&method) && method != "tasks/update" {
        return Err(Broken::rule(RpcFault::params("this method never asks, so it takes no answers")));
    }
    if params.get("task").is_some() {
        return Err(Broken::rule(RpcFault::params("`task` is of 2025-11-25")));
    }
    token(meta)
}

/// Judges a notification.
///
/// # Errors
/// The rule that it breaks.
pub fn notification(method: &str, message: &Value, kind: TalkKind) -> Result<(), Broken> {
    frame(message)?;
    let refuse = |what: &str| Err(Broken::rule(RpcFault::new(-32600, what)));
    match (method, kind) {
        ("notifications/cancelled", TalkKind::Stateless) => {
            refuse("over HTTP a request is cancelled by closing its stream")
        }
        ("notifications/cancelled", _) if message["params"]["requestId"].is_null() => refuse("no requestId"),
        ("notifications/cancelled", _) => Ok(()),
        _ => refuse("no notification of this revision"),
    }
}

/// Judges the headers of a request against its body.
///
/// # Errors
/// The rule that they break.
pub fn headers(headers: &HeaderMap, message: &Value) -> Result<(), Broken> {
    if message["method"] == "initialize" {
        return Err(Broken::tried(RpcFault::method("initialize")));
    }
    let method = message["method"].as_str().unwrap_or_default();
    let params = &message["params"];
    let name = match method {
        "tools/call" | "prompts/get" => params["name"].as_str(),
        "resources/read" => params["uri"].as_str(),
        "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
        _ => None,
    };
    // A body without a version is told so by the rules for bodies.
    let version = params["_meta"][VERSION].as_str();
    same(headers, "mcp-protocol-version", version)?;
    same(headers, "mcp-method", Some(method))?;
    if message.get("id").is_some() {
        same(headers, "mcp-name", name)?;
    }
    if headers.contains_key("mcp-session-id") {
        return Err(Broken::rule(RpcFault::new(-32600, "Mcp-Session-Id is of the old era")));
    }
    Ok(())
}

fn same(headers: &HeaderMap, name: &str, body: Option<&str>) -> Result<(), Broken> {
    let Some(body) = body else { return Ok(()) };
    let header = headers.get(name).and_then(|value| value.to_str().ok()).and_then(decoded);
    if header.as_deref() == Some(body) {
        return Ok(());
    }
    let what = format!("the header {name} is {header:?} and the body says {body:?}");
    Err(Broken::rule(RpcFault::new(-32020, what)))
}

/// A header's value; what is not plain ASCII comes as base64 between markers.
fn decoded(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|value| value.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(BASE64_STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}
