//! Responses of the echo server, in either era.

use std::fmt;
use std::str::FromStr;

use crate::scan::{FoundTokens, scan};

/// Revision of the modern era.
pub const MODERN: &str = "2026-07-28";
/// Last revision of the old era.
pub const LEGACY: &str = "2025-11-25";

const DESCRIPTION: &str = r#""description":"Says the same text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}"#;
const SERVER: &str = r#"{"name":"signalbox-bench-backend","version":"1"}"#;

/// Eras that the server speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Eras {
    /// Both, distinguished by request.
    Both,
    /// Only revisions with sessions.
    Old,
    /// Only the stateless revision.
    New,
}

impl FromStr for Eras {
    type Err = UnknownEra;

    fn from_str(text: &str) -> Result<Self, UnknownEra> {
        match text {
            "both" => Ok(Self::Both),
            "old" => Ok(Self::Old),
            "new" => Ok(Self::New),
            _ => Err(UnknownEra),
        }
    }
}

/// Error for an unknown era.
#[derive(Debug, PartialEq)]
pub struct UnknownEra;

impl fmt::Display for UnknownEra {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("expected both, old or new")
    }
}

/// Response to one message.
#[derive(Debug, Default, PartialEq)]
pub struct EchoAnswer {
    /// HTTP status of the response.
    pub status: u16,
    /// JSON-RPC response; empty for a notification.
    pub body: Vec<u8>,
    /// True if it opens a session.
    pub opens_session: bool,
}

/// Echo server, independent of the transport.
#[derive(Debug)]
pub struct Echo {
    eras: Eras,
    /// The member `tools` of its list.
    tools: String,
}

impl Echo {
    /// Creates a server with this many tools. The first is `echo` unless `mute` is set; the others only fill the list.
    pub fn new(eras: Eras, tools: usize, mute: bool) -> Self {
        let name = |index| if index == 0 && !mute { "echo".to_owned() } else { format!("tool_{index}") };
        let tools: Vec<String> =
            (0..tools).map(|index| format!(r#"{{"name":"{}",{DESCRIPTION}}}"#, name(index))).collect();
        Self { eras, tools: format!(r#""tools":[{}]"#, tools.join(",")) }
    }

    /// Answers one message. `header` is the value of `MCP-Protocol-Version`, if the transport has one.
    pub fn answer(&self, message: &[u8], header: Option<&[u8]>) -> EchoAnswer {
        answer(self, message, header)
    }
}

fn answer(server: &Echo, message: &[u8], header: Option<&[u8]>) -> EchoAnswer {
    let (eras, tools) = (server.eras, &server.tools);
    let found = scan(message);
    let Some(id) = found.id else {
        return EchoAnswer { status: 202, ..EchoAnswer::default() };
    };
    let method = found.method.unwrap_or_default();
    let modern = method != b"initialize"
        && (found.revision.or(header) == Some(MODERN.as_bytes()) || method == b"server/discover");
    if modern && eras == Eras::Old {
        return error(400, id, -32000, "no session");
    }
    match method {
        b"tools/call" => call(id, &found, modern),
        b"tools/list" if modern => {
            result(id, &format!(r#"{tools},"resultType":"complete","ttlMs":3600000,"cacheScope":"public""#))
        }
        b"tools/list" => result(id, tools),
        b"server/discover" => result(
            id,
            &format!(
                r#""resultType":"complete","supportedVersions":["{MODERN}"],"capabilities":{{"tools":{{}}}},"ttlMs":3600000,"cacheScope":"public","_meta":{{"io.modelcontextprotocol/serverInfo":{SERVER}}}"#
            ),
        ),
        b"initialize" if eras != Eras::New => EchoAnswer {
            opens_session: true,
            ..result(
                id,
                &format!(r#""protocolVersion":"{LEGACY}","capabilities":{{"tools":{{}}}},"serverInfo":{SERVER}"#),
            )
        },
        b"ping" if !modern => result(id, ""),
        _ => {
            let status = if modern || eras == Eras::New { 404 } else { 200 };
            error(status, id, -32601, "no such method")
        }
    }
}

fn call(id: &[u8], found: &FoundTokens<'_>, modern: bool) -> EchoAnswer {
    if found.name != Some(b"echo") {
        return error(200, id, -32602, "no such tool");
    }
    let text = found.text.unwrap_or_default();
    let ending: &[u8] = if modern { br#""}],"resultType":"complete"}}"# } else { br#""}]}}"# };
    let parts = [br#"{"jsonrpc":"2.0","id":"#, id, br#","result":{"content":[{"type":"text","text":""#, text, ending];
    EchoAnswer { status: 200, body: parts.concat(), opens_session: false }
}

fn result(id: &[u8], members: &str) -> EchoAnswer {
    let parts = [br#"{"jsonrpc":"2.0","id":"#, id, br#","result":{"#, members.as_bytes(), b"}}"];
    EchoAnswer { status: 200, body: parts.concat(), opens_session: false }
}

fn error(status: u16, id: &[u8], code: i32, message: &str) -> EchoAnswer {
    let fault = format!(r#","error":{{"code":{code},"message":"{message}"}}}}"#);
    let parts = [br#"{"jsonrpc":"2.0","id":"#, id, fault.as_bytes()];
    EchoAnswer { status, body: parts.concat(), opens_session: false }
}

#[cfg(test)]
mod tests {
    use super::{Echo, EchoAnswer, Eras, MODERN};

    const CALL: &[u8] =
        br#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#;

    fn echo(eras: Eras) -> Echo {
        Echo::new(eras, 1, false)
    }

    fn text(answer: &EchoAnswer) -> &str {
        std::str::from_utf8(&answer.body).unwrap()
    }

    #[test]
    fn a_call_comes_back_with_its_id_and_text() {
        let old = echo(Eras::Both).answer(CALL, None);
        assert_eq!(text(&old), r#"{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"hi"}]}}"#);
        let new = echo(Eras::Both).answer(CALL, Some(MODERN.as_bytes()));
        assert_eq!(
            text(&new),
            r#"{"jsonrpc":"2.0","id":"a","result":{"content":[{"type":"text","text":"hi"}],"resultType":"complete"}}"#
        );
    }

    #[test]
    fn a_notification_gets_no_body() {
        let message = br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let expected = EchoAnswer { status: 202, ..EchoAnswer::default() };
        assert_eq!(echo(Eras::Both).answer(message, None), expected);
    }

    #[test]
    fn eras_can_be_switched_off() {
        let discover = br#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;
        let initialize = br#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#;
        assert_eq!(echo(Eras::Both).answer(discover, None).status, 200);
        assert_eq!(echo(Eras::Old).answer(discover, None).status, 400);
        assert!(echo(Eras::Both).answer(initialize, None).opens_session);
        assert_eq!(echo(Eras::New).answer(initialize, None).status, 404);
    }
}
