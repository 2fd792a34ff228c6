//! Session logs of `mcpsnoop`: each line is an object with the message as `raw`, `direction` `c2s` or `s2c`, `ts`,
//! `session_id` and `server_label`. Lines about the server's standard error and about the session itself are left out.

use super::direction::DirectionHint;
use super::lines::{Beginnings, ParsedLine, messages, moment, text, value};
use super::recording::{Side, Talk};
use bytes::Bytes;

pub(super) fn said(line: &Bytes, _: &mut Beginnings) -> Result<Option<ParsedLine>, String> {
    let side = match text(line, "direction").as_deref() {
        Some("c2s") => Side::Client,
        Some("s2c") => Side::Server,
        Some(_) => return Ok(None),
        None => return Err("`direction` is missing".to_owned()),
    };
    let message = match (value(line, "raw"), text(line, "text")) {
        (Some(raw), _) if raw != "null" => messages(raw),
        (_, Some(text)) => vec![Bytes::from(text)],
        _ => return Ok(None),
    };
    let session = text(line, "session_id").unwrap_or_default();
    let connection = text(line, "conn_id").unwrap_or_default();
    let talk = Talk {
        transport: if text(line, "transport").as_deref() == Some("http") { "http" } else { "stdio" },
        server: text(line, "server_label").filter(|label| !label.is_empty()),
        revision: text(line, "mcp_protocol_version"),
        ..Talk::default()
    };
    let at = value(line, "ts").and_then(|ts| moment(&ts));
    Ok(Some(ParsedLine {
        told: DirectionHint::From(side),
        at,
        key: format!("{session} {connection}"),
        talk,
        messages: message,
    }))
}
