//! One MCP message per line: bare, or in an object with its direction and time. `mcp-rec` writes such lines, and so do
//! the logs of many proxies.

use super::direction::DirectionHint;
use super::lines::{Beginnings, ParsedLine, messages, moment, text, value};
use super::recording::Talk;
use bytes::Bytes;
use signalbox_wire::{Envelope, json};

/// Names of members that hold the message.
const MESSAGE: [&str; 8] = ["message", "msg", "raw", "payload", "frame", "data", "body", "content"];
/// Names of members that hold the direction.
const DIRECTION: [&str; 7] = ["direction", "dir", "from", "sender", "source", "side", "type"];
/// Names of members that hold the time.
const TIME: [&str; 6] = ["timestamp", "ts", "time", "at", "datetime", "date"];
/// Names of members that hold the session.
const SESSION: [&str; 5] = ["session_id", "sessionId", "session", "connection_id", "connectionId"];
/// Names of members that hold the server.
const SERVER: [&str; 3] = ["server", "server_name", "serverName"];

pub(super) fn said(line: &Bytes, _: &mut Beginnings) -> Result<Option<ParsedLine>, String> {
    if line.first() == Some(&b'[') || Envelope::parse(line.clone()).is_ok() {
        let talk = Talk::default();
        return Ok(Some(ParsedLine {
            told: DirectionHint::Nothing,
            at: None,
            key: String::new(),
            talk,
            messages: messages(line.clone()),
        }));
    }
    let any = |names: &[&str]| names.iter().find_map(|name| text(line, name));
    let Some(message) = MESSAGE.iter().find_map(|name| message(&value(line, name)?)) else {
        return Err(format!(
            "neither an MCP message nor an object that holds one as {}",
            MESSAGE.map(|name| format!("`{name}`")).join(", ")
        ));
    };
    let server = any(&SERVER);
    let session = any(&SESSION);
    let key = format!("{} {}", session.as_deref().unwrap_or_default(), server.as_deref().unwrap_or_default());
    let words = DIRECTION.iter().filter_map(|name| text(line, name));
    let told = words
        .map(|word| DirectionHint::of_word(&word))
        .find(|told| *told != DirectionHint::Nothing)
        .unwrap_or(DirectionHint::Nothing);
    let at = TIME.iter().find_map(|name| moment(&value(line, name)?));
    let talk = Talk { external: session, server, ..Talk::default() };
    Ok(Some(ParsedLine { told, at, key, talk, messages: message }))
}

/// Returns the messages in a member: JSON, the same as a text, or the wrapper that `mcp-rec` writes for a line that is
/// not JSON.
fn message(value: &Bytes) -> Option<Vec<Bytes>> {
    match value.first()? {
        b'{' => {
            let raw = json::member(value, "_raw").filter(|_| json::member(value, "_unparsed").is_some());
            let raw = raw.and_then(|span| json::string(span.of(value)));
            match raw {
                Some(raw) => Some(vec![Bytes::from(raw.into_owned())]),
                None => Envelope::parse(value.clone()).is_ok().then(|| vec![value.clone()]),
            }
        }
        b'[' => Some(messages(value.clone())),
        b'"' => {
            let text = Bytes::from(json::string(value)?.into_owned());
            Envelope::parse(text.clone()).is_ok().then(|| vec![text])
        }
        _ => None,
    }
}
