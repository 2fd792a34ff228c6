//! Builds results in the form of the caller's revision.

use super::message::{self, INVALID_PARAMS, Id, RpcError};
use super::revision::{META_SERVER, McpRevision};
use super::toolbox::{Answer, CallOutcome, ServerDescription};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// Cache lifetime of lists and descriptions, which are constant while the process runs.
const TTL_MS: u64 = 3_600_000;

/// Builds the server info.
pub fn server_info(about: ServerDescription, revision: McpRevision) -> Value {
    let mut info = json!({"name": about.name, "version": about.version});
    if revision >= McpRevision::V2025_06_18 {
        info["title"] = about.title.into();
    }
    info
}

/// Builds a result that must not be cached.
pub fn result(id: &Id, about: ServerDescription, revision: McpRevision, mut body: Map<String, Value>) -> Bytes {
    if revision.is_stateless() {
        body.insert("resultType".into(), "complete".into());
        let meta = body.entry("_meta").or_insert_with(|| json!({}));
        meta[META_SERVER] = server_info(about, revision);
    }
    message::result(id, body)
}

/// Builds a result that any client may cache.
pub fn cacheable(id: &Id, about: ServerDescription, revision: McpRevision, mut body: Map<String, Value>) -> Bytes {
    if revision.is_stateless() {
        body.insert("ttlMs".into(), TTL_MS.into());
        body.insert("cacheScope".into(), "public".into());
    }
    result(id, about, revision, body)
}

/// Removes members that `revision` does not have from tool definitions.
pub fn tools(mut tools: Vec<Value>, revision: McpRevision) -> Value {
    for tool in &mut tools {
        if let Value::Object(members) = tool {
            members.retain(|name, _| revision >= introduced(name));
        }
    }
    Value::Array(tools)
}

/// Returns the revision that introduced a member of a tool.
fn introduced(member: &str) -> McpRevision {
    match member {
        "annotations" => McpRevision::V2025_03_26,
        "title" | "outputSchema" | "_meta" => McpRevision::V2025_06_18,
        _ => McpRevision::V2024_11_05,
    }
}

/// Builds the answer to `tools/call`.
///
/// A failure is a result that the model can read, except for invalid arguments before 2025-11-25, which are a protocol
/// error.
pub fn tool(id: &Id, about: ServerDescription, revision: McpRevision, answer: Answer) -> Bytes {
    let is_error = match answer.ending {
        CallOutcome::BadArguments(data) if revision < McpRevision::V2025_11_25 => {
            return RpcError::new(INVALID_PARAMS, answer.text).with_data(data).into_bytes(Some(id));
        }
        CallOutcome::Done => false,
        CallOutcome::Failed | CallOutcome::BadArguments(_) => true,
    };
    let mut body = Map::new();
    body.insert("content".into(), json!([{"type": "text", "text": answer.text}]));
    if let Some(structured) = answer.structured.filter(|_| revision >= McpRevision::V2025_06_18) {
        body.insert("structuredContent".into(), structured);
    }
    body.insert("isError".into(), is_error.into());
    if !answer.meta.is_empty() {
        body.insert("_meta".into(), Value::Object(answer.meta));
    }
    result(id, about, revision, body)
}
