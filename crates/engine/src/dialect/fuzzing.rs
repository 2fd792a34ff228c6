//! Body of the fuzz target `dialect` in /fuzz.

use super::answer::{self, About};
use super::request::{self, Inner};
use super::security_context::CallerContext;
use super::{DialectRequest, is_spoken};
use crate::tool_label::ToolLabel;
use bytes::Bytes;
use signalbox_wire::{Envelope, Limits, RawId, scan};

/// Feeds any bytes as a request of the dialect, and as an answer to one. No input may panic, the translation of valid
/// JSON must be valid JSON, and a request must keep its id.
#[expect(clippy::expect_used, reason = "a fuzz target reports by panicking")]
pub fn dialect(data: &[u8]) {
    let limits = Limits::default();
    let bytes = Bytes::copy_from_slice(data);
    let Ok(message) = Envelope::read(bytes.clone(), &limits) else { return };
    let known = CallerContext { user: "ada", session: Some("s"), has: &|name| name.len() < 20 };
    let _ = is_spoken(&message);
    let (asked, inner) = request::read(&message, &known);
    if let Ok(Inner::Mcp(inner)) = inner {
        scan(inner.bytes(), &Limits { message: usize::MAX, ..limits }).expect("a request stays valid JSON");
        assert_eq!(inner.id_token(), message.id_token().or(Some(b"null")), "a request keeps its id");
    }
    let invoked = DialectRequest::Invoke { tool_id: "t".into(), version: None };
    for asked in [asked, invoked, DialectRequest::List { category: None, trust: None }] {
        let about = About {
            asked: &asked,
            id: &RawId::string("1"),
            execution_id: "exec-1",
            audit_id: "audit-1",
            used: &["read:x".into()],
            label: &|_| ToolLabel::default(),
            session: Some("s"),
            unix_ms: 0,
        };
        let told = answer::translate(&bytes, &about);
        let most = Limits { message: usize::MAX, depth: usize::MAX, width: usize::MAX, ..limits };
        scan(&told, &most).expect("an answer stays valid JSON");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signalbox_wire::fuzzing::run_mutated;

    #[test]
    fn the_target_holds_on_seeds_and_mutations() {
        let seeds = [
            &br#"{"jsonrpc":"2.0","id":"1","method":"tools/list","params":{"category":"filesystem","trust_level":"verified"}}"#[..],
            br#"{"jsonrpc":"2.0","id":"2","method":"tools/invoke","params":{"tool_id":"t","tool_version":"1","parameters":{"path":"./src"},"security_context":{"user_id":"ada","session_id":"s","permissions":["read:x"]}}}"#,
            br#"{"jsonrpc":"2.0","id":"4","method":"tools/validate","params":{"tool_id":"t","parameters":{}}}"#,
            br#"{"jsonrpc":"2.0","id":"3","method":"tools/register","params":{"tool_metadata":{"name":"t"},"schema":{"input":{}}}}"#,
            br#"{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"{}"}],"isError":true,"_meta":{"signalbox/error":{"error_code":"x","details":{"reason":"y"}}}}}"#,
            br#"{"jsonrpc":"2.0","id":"1","result":{"tools":[{"name":"a","inputSchema":{}}],"nextCursor":"c"}}"#,
            br#"{"jsonrpc":"2.0","id":"1","error":{"code":-32602,"message":"m","data":null}}"#,
        ];
        let pieces: &[&[u8]] =
            &[b"\"", b"{", b"}", b"[]", b"null", b"\\u0000", b"\"tool_id\":7", b"\"isError\":true", b"1e999", b"\xff"];
        let seeds: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.to_vec()).collect();
        run_mutated(&[("dialect", dialect)], &seeds, pieces, 5_000);
    }
}
