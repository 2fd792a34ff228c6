//! Messages of the client and the backend of the bench.

use crate::case::{CallCase, Framing};
use bytes::{BufMut as _, Bytes, BytesMut};
use signalbox_wire::Era;

/// First request of a client of the old era.
pub const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
/// Notification that completes the handshake of the old era.
pub const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// Answer of an old-era backend to `initialize`, the first request on its connection.
pub const WELCOME: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"backend","version":"1"}}}"#;
/// Answer of a new-era backend to `server/discover`, the first request on its connection.
pub const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"backend","version":"1"}}}}"#;
/// Definition of the tool that is called.
pub const TOOL: &str = r#"{"name":"echo","description":"Says the same text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}"#;
/// Request id of every call.
pub const CALL_ID: &str = "100000000007";

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}},"#;

/// Returns the client's request.
pub fn request(case: CallCase) -> Bytes {
    let meta = if case.client == Era::Modern { META } else { "" };
    let head = format!(
        r#"{{"jsonrpc":"2.0","id":{CALL_ID},"method":"tools/call","params":{{{meta}"name":"echo","arguments":{{"text":""#
    );
    Bytes::from(format!("{head}{}\"}}}}}}", text(case)))
}

/// Returns the text that the tool echoes.
fn text(case: CallCase) -> String {
    "x".repeat(case.size.saturating_sub(128).max(64))
}

/// Answers of the backend, which differ only in their id.
pub struct Answers {
    framing: Framing,
    rest: String,
}

impl Answers {
    /// Creates answers for calls of this kind.
    pub fn new(case: CallCase) -> Self {
        let ending = if case.backend == Era::Modern { r#","resultType":"complete""# } else { "" };
        let rest = format!(r#","result":{{"content":[{{"type":"text","text":"{}"}}]{ending}}}}}"#, text(case));
        Self { framing: case.framing, rest }
    }

    /// Returns the answer to the request of this id, as its connection delivers it.
    pub fn to(&self, id: u64) -> Bytes {
        let (before, after) = match self.framing {
            Framing::Json => ("", ""),
            Framing::Sse => ("event: message\ndata: ", "\n\n"),
        };
        let mut digits = [b'0'; 20];
        let mut left = id;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + (left % 10) as u8;
            left /= 10;
        }
        let first = digits.iter().position(|digit| *digit != b'0').unwrap_or(0);
        let head = r#"{"jsonrpc":"2.0","id":"#;
        let mut out = BytesMut::with_capacity(before.len() + head.len() + 20 + self.rest.len() + after.len());
        out.put_slice(before.as_bytes());
        out.put_slice(head.as_bytes());
        out.put_slice(digits.get(first..).unwrap_or(&digits));
        out.put_slice(self.rest.as_bytes());
        out.put_slice(after.as_bytes());
        out.freeze()
    }

    /// Returns the minimum number of bytes of the answer that the client must get.
    pub fn least(&self) -> usize {
        self.rest.len()
    }
}
