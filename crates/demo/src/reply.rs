//! Turns outcomes into results, each as the caller's revision wants it.

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::message::{self, INVALID_PARAMS, Id, RpcError};
use super::revision::{META_SERVER, Revision};
use super::toolbox::Outcome;

/// How long a list or a description may be kept: the demo's never change while it runs.
const TTL_MS: u64 = 3_600_000;

const META_RISK: &str = "signalbox/risk";
const META_ERROR: &str = "signalbox/error";
const META_SKIPPED: &str = "signalbox/skipped_directories";

/// Who answers.
pub(super) fn server_info(revision: Revision) -> Value {
    let mut info = json!({"name": "signalbox-demo", "version": env!("CARGO_PKG_VERSION")});
    if revision >= Revision::V2025_06_18 {
        info["title"] = "Signalbox demo tools".into();
    }
    info
}

/// A result that is valid for this moment only.
pub(super) fn result(id: &Id, revision: Revision, mut body: Map<String, Value>) -> Bytes {
    if revision.is_stateless() {
        body.insert("resultType".into(), "complete".into());
        let meta = body.entry("_meta").or_insert_with(|| json!({}));
        meta[META_SERVER] = server_info(revision);
    }
    message::result(id, body)
}

/// A result that anyone may keep for a while.
pub(super) fn cacheable(id: &Id, revision: Revision, mut body: Map<String, Value>) -> Bytes {
    if revision.is_stateless() {
        body.insert("ttlMs".into(), TTL_MS.into());
        body.insert("cacheScope".into(), "public".into());
    }
    result(id, revision, body)
}

/// The answer to `tools/call`.
///
/// What a tool could not do is a result that a model can read, except for bad arguments in the revisions before
/// 2025-11-25, where they are an error of the protocol.
pub(super) fn tool(id: &Id, revision: Revision, outcome: Outcome) -> Bytes {
    let path = outcome.requested_path.as_deref();
    let mut body = Map::new();
    let mut meta = Map::new();
    if let Some(risk) = outcome.risk {
        meta.insert(META_RISK.into(), risk.word().into());
    }
    match outcome.answer {
        Ok(answer) => {
            body.insert("content".into(), text(&answer.text));
            if let Some(structured) = answer.structured
                && revision >= Revision::V2025_06_18
            {
                body.insert("structuredContent".into(), structured);
            }
            if answer.skipped > 0 {
                meta.insert(META_SKIPPED.into(), answer.skipped.into());
            }
            body.insert("isError".into(), false.into());
        }
        Err(fault) if fault.is_about_arguments() && revision < Revision::V2025_11_25 => {
            let mut data = fault.to_json(path);
            data["reason"] = "invalid_arguments".into();
            return RpcError::new(INVALID_PARAMS, fault.to_text()).with_data(data).into_bytes(Some(id));
        }
        Err(fault) => {
            body.insert("content".into(), text(&fault.to_text()));
            body.insert("isError".into(), true.into());
            meta.insert(META_ERROR.into(), fault.to_json(path));
        }
    }
    if !meta.is_empty() {
        body.insert("_meta".into(), Value::Object(meta));
    }
    result(id, revision, body)
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}
