//! Entries of tapes as JSON.

use serde_json::Value;
use signalbox_engine::record::Entry;
use signalbox_tape::export::jsonl;

/// Formats an entry as `tape export` writes it to JSON lines.
pub fn entry_json(entry: &Entry) -> Value {
    jsonl::value(entry).unwrap_or(Value::Null)
}
