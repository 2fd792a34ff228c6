//! Requests of the load client as bytes: built once, patched with a new id for each call.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;

use crate::answer::{LEGACY, MODERN};
use crate::args::usage;

/// Number of digits of a call's id. It is constant, so the length of the body is too.
pub const ID_DIGITS: usize = 12;
/// Minimum length of the text in a call: the fixed members of a modern call alone are longer than 256 bytes.
const TEXT_MIN: usize = 8;

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"}}"#;

/// Protocol era of the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LoadEra {
    /// A session of revision 2025-11-25 per connection.
    Old,
    /// Stateless requests of revision 2026-07-28.
    New,
}

impl FromStr for LoadEra {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "old" => Ok(Self::Old),
            "new" => Ok(Self::New),
            _ => Err("expected old or new"),
        }
    }
}

impl fmt::Display for LoadEra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Old => "old",
            Self::New => "new",
        })
    }
}

/// Transport by which requests travel.
#[derive(Clone, Debug)]
pub enum Channel {
    /// POST requests to this address and path.
    Http {
        /// Address of the server.
        address: SocketAddr,
        /// Path of its MCP endpoint.
        path: String,
    },
    /// Lines on a pipe.
    Pipe,
}

/// Target of requests, with its era.
#[derive(Clone, Debug)]
pub struct LoadTarget {
    /// Transport to the server.
    pub way: Channel,
    pub era: LoadEra,
    /// Bearer token of each request, if any.
    pub bearer: Option<String>,
}

impl LoadTarget {
    /// Parses a URL of the form `http://IP:PORT/path`.
    pub fn parse(url: &str, era: LoadEra) -> io::Result<Self> {
        let bad = || usage(format!("--url {url}: expected http://IP:PORT/path"));
        let rest = url.strip_prefix("http://").ok_or_else(bad)?;
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let address = authority.parse().map_err(|_| bad())?;
        Ok(Self { way: Channel::Http { address, path: format!("/{path}") }, era, bearer: None })
    }

    /// Creates the target for a stdio server.
    pub fn pipe(era: LoadEra) -> Self {
        Self { way: Channel::Pipe, era, bearer: None }
    }

    /// Builds the `initialize` request that opens a session.
    pub fn initialize(&self) -> Vec<u8> {
        let params = format!(
            r#""protocolVersion":"{LEGACY}","capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}"#
        );
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{{params}}}}}"#);
        self.framed("", &body)
    }

    /// Builds the notification that completes the handshake.
    pub fn initialized(&self, session: Option<&str>) -> Vec<u8> {
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        self.framed(&self.headers(session, "notifications/initialized", None), body)
    }

    /// Builds a request for the list of tools.
    pub fn list(&self, session: Option<&str>) -> Vec<u8> {
        let params = match self.era {
            LoadEra::Old => "",
            LoadEra::New => META,
        };
        let body = format!(r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{params}}}}}"#);
        self.framed(&self.headers(session, "tools/list", None), &body)
    }

    /// Builds a call of `tool` whose body is `size` bytes long, or as short as possible.
    pub fn call(&self, session: Option<&str>, tool: &str, size: usize) -> PreparedCall {
        let meta = match self.era {
            LoadEra::Old => String::new(),
            LoadEra::New => format!("{META},"),
        };
        let before_id = r#"{"jsonrpc":"2.0","id":"#;
        let zeros = "0".repeat(ID_DIGITS);
        let before_text = format!(r#","method":"tools/call","params":{{{meta}"name":"{tool}","arguments":{{"text":""#);
        let after_text = r#""}}}"#;
        let fixed = before_id.len() + ID_DIGITS + before_text.len() + after_text.len();
        let text = "x".repeat(size.saturating_sub(fixed).max(TEXT_MIN));
        let body = [before_id, &zeros, &before_text, &text, after_text].concat();
        let bytes = self.framed(&self.headers(session, "tools/call", Some(tool)), &body);
        let line_end = usize::from(matches!(self.way, Channel::Pipe));
        let body_at = bytes.len() - line_end - body.len();
        let id_at = body_at + before_id.len();
        let text_at = id_at + ID_DIGITS + before_text.len();
        PreparedCall { id_at, text_at, body_bytes: body.len(), text_bytes: text.len(), bytes }
    }

    /// Builds a call of `tool` with this number as its argument `n`. The id is derived from it.
    pub fn numbered(&self, session: Option<&str>, tool: &str, number: u64) -> Vec<u8> {
        let params = format!(r#""name":"{tool}","arguments":{{"n":{number}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{{{params}}}}}"#, number + 100);
        self.framed(&self.headers(session, "tools/call", Some(tool)), &body)
    }

    fn headers(&self, session: Option<&str>, method: &str, name: Option<&str>) -> String {
        match self.era {
            LoadEra::Old => {
                let session = session.map(|id| format!("Mcp-Session-Id: {id}\r\n"));
                format!("MCP-Protocol-Version: {LEGACY}\r\n{}", session.unwrap_or_default())
            }
            LoadEra::New => {
                let name = name.map(|name| format!("Mcp-Name: {name}\r\n"));
                format!("MCP-Protocol-Version: {MODERN}\r\nMcp-Method: {method}\r\n{}", name.unwrap_or_default())
            }
        }
    }

    /// Builds the old era's subscription to a resource.
    pub fn subscribe(&self, session: Option<&str>, uri: &str) -> Vec<u8> {
        let body = format!(r#"{{"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#);
        self.framed(&self.headers(session, "resources/subscribe", None), &body)
    }

    /// Builds the new era's subscription to lists and this resource.
    pub fn listen(&self, uri: Option<&str>) -> Vec<u8> {
        let followed = uri.map(|uri| format!(r#","resourceSubscriptions":["{uri}"]"#)).unwrap_or_default();
        let wanted = format!(r#""notifications":{{"toolsListChanged":true{followed}}}"#);
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":4,"method":"subscriptions/listen","params":{{{META},{wanted}}}}}"#);
        self.framed(&self.headers(None, "subscriptions/listen", None), &body)
    }

    /// Builds the GET request for the event stream of a session.
    pub fn get(&self, session: Option<&str>) -> Vec<u8> {
        let Channel::Http { address, path } = &self.way else { return Vec::new() };
        let headers = self.headers(session, "", None);
        format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n{headers}\r\n").into_bytes()
    }

    /// Frames a message for its transport. A pipe has no headers.
    fn framed(&self, headers: &str, body: &str) -> Vec<u8> {
        let Channel::Http { address, path } = &self.way else { return format!("{body}\n").into_bytes() };
        let bearer = self.bearer.as_ref().map(|bearer| format!("Authorization: Bearer {bearer}\r\n"));
        let bearer = bearer.unwrap_or_default();
        format!(
            "POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n{bearer}{headers}Content-Length: {}\r\n\r\n{body}",
            body.len(),
        )
        .into_bytes()
    }
}

/// Prebuilt `tools/call` request, with offsets for patching.
#[derive(Clone, Debug)]
pub struct PreparedCall {
    bytes: Vec<u8>,
    id_at: usize,
    text_at: usize,
    /// Length of the body.
    pub body_bytes: usize,
    /// Length of the text in it, which is the minimum length of the response.
    pub text_bytes: usize,
}

impl PreparedCall {
    /// Returns the request with this id, of at most `ID_DIGITS` digits.
    pub fn with_id(&mut self, id: u64) -> &[u8] {
        let mut rest = id;
        for digit in self.bytes[self.id_at..][..ID_DIGITS].iter_mut().rev() {
            *digit = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        &self.bytes
    }

    /// Returns the text, to be replaced by characters that need no escape.
    pub fn text_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.text_at..][..self.text_bytes]
    }

    /// Returns the id that was set last.
    pub fn id(&self) -> &[u8] {
        &self.bytes[self.id_at..][..ID_DIGITS]
    }
}

#[cfg(test)]
mod tests {
    use super::{LoadEra, LoadTarget};
    use crate::scan::scan;

    fn call(era: LoadEra, size: usize) -> (String, String) {
        let target = LoadTarget::parse("http://127.0.0.1:9/mcp", era).unwrap();
        let mut call = target.call(Some("s1"), "echo", size);
        let request = String::from_utf8(call.with_id(100_000_000_007).to_vec()).unwrap();
        assert_eq!(call.id(), b"100000000007");
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert_eq!(call.body_bytes, body.len());
        (head.to_owned(), body.to_owned())
    }

    #[test]
    fn an_old_call_carries_its_session() {
        let (head, body) = call(LoadEra::Old, 256);
        assert_eq!(body.len(), 256);
        assert!(head.contains("MCP-Protocol-Version: 2025-11-25\r\nMcp-Session-Id: s1\r\n"));
        assert!(head.ends_with("Content-Length: 256"));
        assert_eq!(scan(body.as_bytes()).id, Some(&b"100000000007"[..]));
    }

    #[test]
    fn a_new_call_carries_meta_and_headers() {
        let (head, body) = call(LoadEra::New, 65536);
        assert_eq!(body.len(), 65536);
        assert!(head.contains("Mcp-Method: tools/call\r\nMcp-Name: echo\r\n"));
        assert!(!head.contains("Session"));
        let found = scan(body.as_bytes());
        assert_eq!(found.revision, Some(&b"2026-07-28"[..]));
        assert_eq!(found.name, Some(&b"echo"[..]));
    }
}
