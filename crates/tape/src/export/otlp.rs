//! OTLP as a JSON file of traces: each exchange is a span, each decision an event of the span.

use super::{ExportError, Source};
use crate::gather::{Gather, Piece};
use crate::story::Story;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use signalbox_engine::record::{DecisionEntry, MessageEntry, TapeInfo};
use signalbox_wire::hex::hex;
use std::io::Write;
use std::sync::Arc;

/// OTLP's number for `SPAN_KIND_SERVER`.
const SERVER: u8 = 2;
/// OTLP's numbers for `STATUS_CODE_ERROR` and `STATUS_CODE_OK`.
const STATUS: [u8; 2] = [2, 1];

/// Writes the tape without bodies: a trace holds times and names, not contents.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, mut to: impl Write) -> Result<(), ExportError> {
    let info = source.info;
    let resource = json!({"attributes": [
        text("service.name", "signalbox"),
        text("service.version", &info.program),
        text("signalbox.tape", &info.id),
        text("signalbox.target", &info.target),
    ]});
    let scope = json!({"name": "signalbox", "version": info.program});
    write!(to, "{{\"resourceSpans\":[{{\"resource\":{resource},\"scopeSpans\":[{{\"scope\":{scope},\"spans\":[")?;
    let mut first = true;
    for piece in Gather::new(source.entries) {
        let Piece::Exchange(entries) = piece? else { continue };
        let Some(story) = Story::new(&entries) else { continue };
        to.write_all(if first { b"\n" } else { b",\n" })?;
        first = false;
        serde_json::to_writer(&mut to, &span(info, &story))?;
    }
    to.write_all(b"\n]}]}]}\n")?;
    Ok(to.flush()?)
}

fn span(info: &TapeInfo, story: &Story<'_>) -> Value {
    let id = Sha256::new_with_prefix(info.id.as_bytes()).chain_update(story.number.to_be_bytes()).finalize();
    let name = match story.subject {
        Some(subject) if story.method.starts_with("tools/") || story.method.starts_with("prompts/") => {
            format!("{} {subject}", story.method)
        }
        _ => story.method.to_owned(),
    };
    let mut attributes = vec![
        text("mcp.method.name", story.method),
        text("enduser.id", story.principal),
        text("signalbox.outcome", story.outcome),
        number("signalbox.exchange", story.number),
    ];
    attributes.extend(story.subject.map(|subject| text("signalbox.subject", subject)));
    attributes.extend(story.backend.map(|backend| text("signalbox.backend", backend)));
    attributes.extend(story.session.map(|session| number("signalbox.session", session)));
    if let Some(finished) = story.finished {
        attributes.push(number("signalbox.bytes_in", finished.bytes_in));
        attributes.push(number("signalbox.bytes_out", finished.bytes_out));
        attributes.push(number("signalbox.round", u64::from(finished.round)));
        attributes.extend(finished.operation.map(|first| number("signalbox.operation", first)));
        attributes.extend(finished.client.map(|client| number("signalbox.client", client)));
    }
    let mut events: Vec<(u64, Value)> = story.messages().map(|(at, message)| (at, image(at, message))).collect();
    events.extend(story.decisions().map(|(at, decision)| (at, decided(at, decision))));
    events.sort_by_key(|(at, _)| *at);
    json!({
        "traceId": hex(id.get(..16).unwrap_or_default()),
        "spanId": hex(id.get(16..24).unwrap_or_default()),
        "name": name,
        "kind": SERVER,
        "startTimeUnixNano": story.began.to_string(),
        "endTimeUnixNano": story.began.saturating_add(story.took).to_string(),
        "attributes": attributes,
        "events": events.into_iter().map(|(_, event)| event).collect::<Vec<_>>(),
        "status": {"code": STATUS[usize::from(story.is_good())], "message": if story.is_good() { "" } else { story.outcome }},
    })
}

fn image(at: u64, message: &MessageEntry) -> Value {
    let mut attributes = vec![text("signalbox.kind", message.kind.word()), number("signalbox.length", message.length)];
    attributes.extend(message.backend.as_ref().map(|backend| text("signalbox.backend", backend)));
    attributes.extend(
        message
            .error_code
            .map(|code| json!({"key": "rpc.jsonrpc.error_code", "value": {"intValue": code.to_string()}})),
    );
    for (name, there) in [("signalbox.own", message.own), ("signalbox.redacted", message.redacted)] {
        if there {
            attributes.push(json!({"key": name, "value": {"boolValue": true}}));
        }
    }
    attributes.extend((message.number > 0).then(|| number("signalbox.message", message.number)));
    attributes.extend(message.again.map(|again| number("signalbox.again", again.get())));
    attributes.extend(message.lost.as_deref().map(|lost| text("signalbox.lost", lost)));
    if let Some(carried) = &message.carried {
        attributes.extend(carried.event_id.as_deref().map(|id| text("signalbox.event_id", id)));
        let http = carried.http.as_ref();
        attributes.extend(http.and_then(|http| http.method.as_deref()).map(|name| text("http.request.method", name)));
        attributes.extend(http.and_then(|http| http.url.as_deref()).map(|url| text("url.path", url)));
        let status = http.and_then(|http| http.status);
        attributes.extend(status.map(|status| number("http.response.status_code", u64::from(status))));
    }
    json!({"timeUnixNano": at.to_string(), "name": message.point.words(), "attributes": attributes})
}

fn decided(at: u64, decision: &DecisionEntry) -> Value {
    let mut attributes = vec![
        text("signalbox.by", &decision.by),
        text("signalbox.phase", &decision.phase),
        text("signalbox.verdict", &decision.verdict),
        text("signalbox.detail", &decision.detail),
    ];
    attributes.extend(decision.rule.as_ref().map(|rule| text("signalbox.rule", rule)));
    let held = |(condition, held): &(Arc<str>, bool)| json!({"stringValue": format!("{condition}: {held}")});
    let conditions: Vec<Value> = decision.conditions.iter().map(held).collect();
    attributes.push(json!({"key": "signalbox.conditions", "value": {"arrayValue": {"values": conditions}}}));
    attributes.extend(decision.inputs.iter().map(|(name, value)| text(&format!("signalbox.input.{name}"), value)));
    json!({"timeUnixNano": at.to_string(), "name": "decision", "attributes": attributes})
}

fn text(key: &str, value: &str) -> Value {
    json!({"key": key, "value": {"stringValue": value}})
}

/// Returns an attribute with a number. OTLP writes 64-bit numbers as text.
fn number(key: &str, value: u64) -> Value {
    json!({"key": key, "value": {"intValue": i64::try_from(value).unwrap_or(i64::MAX).to_string()}})
}
