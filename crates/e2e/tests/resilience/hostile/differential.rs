//! What the strict scan accepts means the same to another parser.

use super::asked_for;
use super::mutate::{LEGACY, MODERN, Mutator};
use bytes::Bytes;
use serde_json::Value;
use signalbox_wire::{Envelope, Limits, json, scan};

/// How many messages are compared, unless `MCP_TEST_MUTATIONS` says otherwise.
const MESSAGES: usize = 20_000;

#[test]
fn what_the_scan_accepts_serde_json_reads_the_same_way() {
    let count = asked_for().unwrap_or(MESSAGES);
    let seeds = [LEGACY, MODERN].concat();
    // serde_json gives up at a depth of 128, which is ours less one.
    let limits = Limits { depth: 127, ..Limits::default() };
    let (mut random, mut accepted, mut messages) = (Mutator::new(27), 0, 0);
    for round in 0..count {
        let bytes = random.next(&seeds);
        if scan(&bytes, &limits).is_err() {
            continue;
        }
        accepted += 1;
        let shown = || format!("{round}: {}", String::from_utf8_lossy(&bytes[..bytes.len().min(400)]));
        let value: Value = serde_json::from_slice(&bytes).unwrap_or_else(|error| panic!("{error}: {}", shown()));
        let Ok(envelope) = Envelope::parse(Bytes::copy_from_slice(&bytes)) else { continue };
        messages += 1;
        assert_eq!(envelope.method(), value["method"].as_str(), "{}", shown());
        let id = envelope.id().map_or(Value::Null, |id| serde_json::from_slice(id.token()).unwrap());
        assert_eq!(id, value["id"], "{}", shown());
        let params = envelope.params().unwrap_or(b"{}");
        for key in ["name", "uri", "cursor", "taskId", "level"] {
            let ours = json::member(params, key).and_then(|span| json::string(span.of(params)));
            assert_eq!(ours.as_deref(), value["params"][key].as_str(), "{key}, {}", shown());
        }
        let own = "io.modelcontextprotocol/protocolVersion";
        let version = json::path(params, &["_meta", own]).and_then(|span| json::string(span.of(params)));
        assert_eq!(version.as_deref(), value["params"]["_meta"][own].as_str(), "{}", shown());
    }
    println!("{count} messages, {accepted} accepted by the scan, {messages} of them JSON-RPC");
    assert!(accepted > count / 10 && messages > count / 20, "{accepted} {messages}");
}
