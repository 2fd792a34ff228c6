//! NDJSON of `mcporter record`: each line is a message with an additional member `_meta` that holds direction, server
//! and time. Lines about the transport (`$transport/start`) begin and end conversations.

use super::direction::DirectionHint;
use super::lines::{Beginnings, ParsedLine, moment, text, value};
use super::recording::{Side, Talk};
use bytes::Bytes;
use signalbox_wire::json;

pub(super) fn said(line: &Bytes, beginnings: &mut Beginnings) -> Result<Option<ParsedLine>, String> {
    let about = value(line, "_meta").ok_or("`_meta` is missing")?;
    let server = text(&about, "server").ok_or("`_meta.server` is missing")?;
    let side = match text(&about, "dir").as_deref() {
        Some("send") => Side::Client,
        Some("recv") => Side::Server,
        Some("lifecycle") => {
            if text(line, "method").as_deref() == Some("$transport/start") {
                *beginnings.entry(server).or_default() += 1;
            }
            return Ok(None);
        }
        _ => return Err("`_meta.dir` is none of send, recv and lifecycle".to_owned()),
    };
    let at = value(&about, "ts").and_then(|ts| moment(&ts));
    let key = format!("{} {server}", beginnings.get(&server).copied().unwrap_or_default());
    let talk = Talk { server: Some(server), ..Talk::default() };
    Ok(Some(ParsedLine { told: DirectionHint::From(side), at, key, talk, messages: vec![without_meta(line)] }))
}

/// Returns the message as it was sent.
fn without_meta(line: &Bytes) -> Bytes {
    let mut message = vec![b'{'];
    for member in json::members(line).filter(|member| !json::key_eq(member.key.of(line), "_meta")) {
        if message.len() > 1 {
            message.push(b',');
        }
        message.extend_from_slice(member.whole.of(line));
    }
    message.push(b'}');
    message.into()
}
