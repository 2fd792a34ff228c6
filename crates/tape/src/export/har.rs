//! HAR 1.2: one entry per exchange, for the many viewers of that format.

use super::{ExportError, Source};
use crate::gather::{Gather, Piece};
use crate::story::{self, Story};
use crate::times::rfc3339;
use serde_json::{Value, json};
use signalbox_engine::fact::HttpHead;
use signalbox_engine::record::{DecisionEntry, MessageEntry};
use std::io::Write;

/// Writes the tape. Entries outside any exchange have no place in a HAR file and are left out.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, mut to: impl Write) -> Result<(), ExportError> {
    let creator = json!({"name": "signalbox", "version": source.info.program});
    let comment = format!("tape {}: {} {}", source.info.id, source.info.kind.word(), source.info.target);
    write!(to, "{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},\"comment\":{},\"entries\":[", json!(comment))?;
    let mut first = true;
    for piece in Gather::new(source.entries) {
        let Piece::Exchange(entries) = piece? else { continue };
        let Some(story) = Story::new(&entries) else { continue };
        to.write_all(if first { b"\n" } else { b",\n" })?;
        first = false;
        serde_json::to_writer(&mut to, &entry(&story))?;
    }
    to.write_all(b"\n]}}\n")?;
    Ok(to.flush()?)
}

fn entry(story: &Story<'_>) -> Value {
    let took = story.took as f64 / 1e6;
    let images: Vec<Value> = story.messages().map(|(at, message)| image(story, at, message)).collect();
    let decision = |(at, decision): (u64, &DecisionEntry)| {
        let conditions: Vec<(&str, bool)> = decision.conditions.iter().map(|(text, held)| (&**text, *held)).collect();
        json!({
            "at": rfc3339(at), "by": decision.by, "rule": decision.rule.as_deref(), "phase": decision.phase,
            "verdict": decision.verdict, "detail": decision.detail,
            "conditions": conditions, "inputs": decision.inputs, "redacted": decision.redacted,
        })
    };
    let decisions: Vec<Value> = story.decisions().map(decision).collect();
    let end = story.finished;
    json!({
        "startedDateTime": rfc3339(story.began),
        "time": took,
        "request": request(story),
        "response": response(story),
        "cache": {},
        "timings": {"send": 0, "wait": took, "receive": 0},
        "comment": story.outcome,
        "_exchange": story.number,
        "_session": story.session,
        "_principal": story.principal,
        "_backend": story.backend,
        "_operation": end.and_then(|end| end.operation),
        "_round": end.map(|end| end.round),
        "_client": end.and_then(|end| end.client),
        "_images": images,
        "_decisions": decisions,
    })
}

fn request(story: &Story<'_>) -> Value {
    let message = story.request();
    let http = message.and_then(head);
    let mut request = json!({
        "method": http.and_then(|http| http.method.as_deref()).unwrap_or("POST"),
        "url": url(story),
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": headers(http),
        "queryString": [],
        "headersSize": -1,
        "bodySize": size(message),
    });
    if let Some(text) = message.and_then(story::text) {
        request["postData"] = json!({"mimeType": "application/json", "text": text});
    }
    request
}

fn response(story: &Story<'_>) -> Value {
    let message = story.answer();
    let mut content = json!({"size": size(message).max(0), "mimeType": "application/json"});
    if let Some(text) = message.and_then(story::text) {
        content["text"] = json!(text);
    }
    let http = message.and_then(head);
    json!({
        "status": http.and_then(|http| http.status).unwrap_or_else(|| status(story)),
        "statusText": story.outcome,
        "httpVersion": "HTTP/1.1",
        "cookies": [],
        "headers": headers(http),
        "content": content,
        "redirectURL": "",
        "headersSize": -1,
        "bodySize": size(message),
    })
}

/// Returns the HTTP head that a message came with.
fn head(message: &MessageEntry) -> Option<&HttpHead> {
    message.carried.as_ref()?.http.as_ref()
}

fn headers(http: Option<&HttpHead>) -> Vec<Value> {
    let headers = http.map(|http| &http.headers[..]).unwrap_or_default();
    headers.iter().map(|(name, value)| json!({"name": name, "value": value})).collect()
}

/// Returns the HTTP status nearest to the outcome, because viewers sort and colour by it.
fn status(story: &Story<'_>) -> u16 {
    match story.outcome {
        "success" | "tool_error" => 200,
        "open" => 0,
        "cancelled" => 499,
        _ => 500,
    }
}

fn size(message: Option<&MessageEntry>) -> i64 {
    message.map_or(-1, |message| i64::try_from(message.length).unwrap_or(i64::MAX))
}

/// Returns a URL that no browser can open and that shows backend, method and subject in lists of URLs.
fn url(story: &Story<'_>) -> String {
    let mut url = format!("http://{}.invalid/", host(story.backend.unwrap_or("signalbox")));
    encode(&mut url, story.method, true);
    if let Some(subject) = story.subject {
        url.push('/');
        encode(&mut url, subject, false);
    }
    url
}

fn host(name: &str) -> String {
    let safe = |letter: char| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' };
    let host: String = name.chars().take(60).map(safe).collect();
    let host = host.trim_matches('-');
    if host.is_empty() { "backend".to_owned() } else { host.to_owned() }
}

fn encode(url: &mut String, text: &str, slashes: bool) {
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(byte)),
            b'/' if slashes => url.push('/'),
            _ => url.push_str(&format!("%{byte:02X}")),
        }
    }
}

fn image(story: &Story<'_>, at: u64, message: &MessageEntry) -> Value {
    let mut image = json!({
        "point": message.point.words(),
        "after": at.saturating_sub(story.began) as f64 / 1e6,
        "kind": message.kind.word(),
        "length": message.length,
    });
    if let Some(text) = story::text(message) {
        image["text"] = json!(text);
    }
    for (name, there) in [("own", message.own), ("redacted", message.redacted)] {
        if there {
            image[name] = json!(true);
        }
    }
    if message.number > 0 {
        image["number"] = json!(message.number);
    }
    if let Some(again) = message.again {
        image["again"] = json!(again);
    }
    if let Some(lost) = &message.lost {
        image["lost"] = json!(lost);
    }
    if let Some(event) = message.carried.as_ref().and_then(|carried| carried.event_id.as_deref()) {
        image["event_id"] = json!(event);
    }
    image
}
