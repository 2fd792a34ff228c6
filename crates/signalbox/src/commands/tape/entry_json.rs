//! An entry of a tape as JSON.

use serde_json::Value;
use signalbox_engine::record::Entry;
use signalbox_tape::export::jsonl;

/// The same form that `tape export` writes as JSON lines.
pub fn entry_json(entry: &Entry) -> Value {
    jsonl::value(entry).unwrap_or(Value::Null)
}
