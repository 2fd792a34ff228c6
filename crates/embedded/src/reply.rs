//! Results, each as the caller's revision wants it.

use super::message::{self, INVALID_PARAMS, Id, RpcError};
use super::revision::{META_SERVER, Revision};
use super::toolbox::{About, Answer, Ending};
use bytes::Bytes;
use serde_json::{Map, Value, json};

/// How long a list or a description may be kept: they never change while the process runs.
const TTL_MS: u64 = 3_600_000;

/// Who answers.
pub fn server_info(about: About, revision: Revision) -> Value {
    let mut info = json!({"name": about.name, "version": about.version});
    if revision >= Revision::V2025_06_18 {
        info["title"] = about.title.into();
    }
    info
}

/// A result that is valid for this moment only.
pub fn result(id: &Id, about: About, revision: Revision, mut body: Map<String, Value>) -> Bytes {
    if revision.is_stateless() {
        body.insert("resultType".into(), "complete".into());
        let meta = body.entry("_meta").or_insert_with(|| json!({}));
        meta[META_SERVER] = server_info(about, revision);
    }
    message::result(id, body)
}

/// A result that anyone may keep for a while.
pub fn cacheable(id: &Id, about: About, revision: Revision, mut body: Map<String, Value>) -> Bytes {
    if revision.is_stateless() {
        body.insert("ttlMs".into(), TTL_MS.into());
        body.insert("cacheScope".into(), "public".into());
    }
    result(id, about, revision, body)
}

/// Definitions of tools, without the members that `revision` does not know.
pub fn tools(mut tools: Vec<Value>, revision: Revision) -> Value {
    for tool in &mut tools {
        if let Value::Object(members) = tool {
            members.retain(|name, _| revision >= introduced(name));
        }
    }
    Value::Array(tools)
}

/// The revision that brought a member of a tool.
fn introduced(member: &str) -> Revision {
    match member {
        "annotations" => Revision::V2025_03_26,
        "title" | "outputSchema" | "_meta" => Revision::V2025_06_18,
        _ => Revision::V2024_11_05,
    }
}

/// The answer to `tools/call`.
///
/// What a tool could not do is a result that a model can read, except for bad arguments in the revisions before
/// 2025-11-25, where they are an error of the protocol.
pub fn tool(id: &Id, about: About, revision: Revision, answer: Answer) -> Bytes {
    let is_error = match answer.ending {
        Ending::BadArguments(data) if revision < Revision::V2025_11_25 => {
            return RpcError::new(INVALID_PARAMS, answer.text).with_data(data).into_bytes(Some(id));
        }
        Ending::Done => false,
        Ending::Failed | Ending::BadArguments(_) => true,
    };
    let mut body = Map::new();
    body.insert("content".into(), json!([{"type": "text", "text": answer.text}]));
    if let Some(structured) = answer.structured.filter(|_| revision >= Revision::V2025_06_18) {
        body.insert("structuredContent".into(), structured);
    }
    body.insert("isError".into(), is_error.into());
    if !answer.meta.is_empty() {
        body.insert("_meta".into(), Value::Object(answer.meta));
    }
    result(id, about, revision, body)
}
