//! JSON formats of webhook requests and responses, described in `docs/rules.md`.

use crate::facts::MessageView;
use crate::limits;
use crate::rule::Rule;
use bytes::Bytes;
use signalbox_engine::chain::{EditError, edited};
use signalbox_wire::{Envelope, Limits, ScanError, json, scan};

/// Version of both formats.
pub const VERSION: u32 = 1;

/// Decision of a webhook.
#[derive(Debug)]
pub(crate) enum WebhookDecision {
    Pass,
    Modify(Envelope),
    Reply(Bytes),
    Error(Bytes),
    Refuse(String),
}

/// Builds the body of a webhook request.
pub(crate) fn body(rule: &Rule, view: &MessageView<'_>) -> Bytes {
    let facts = view.facts;
    let mut out = Vec::with_capacity(512 + view.message.bytes().len());
    out.extend_from_slice(format!("{{\"version\":{VERSION},\"rule\":{{").as_bytes());
    text(&mut out, "id", Some(&rule.id));
    out.push(b',');
    text(&mut out, "name", Some(&rule.name));
    out.extend_from_slice(b"},");
    text(&mut out, "phase", Some(facts.phase.word()));
    out.extend_from_slice(b",\"exchange\":{");
    let known = [
        ("method", view.method()),
        ("subject", view.subject()),
        ("backend", facts.backend),
        ("principal", Some(facts.principal)),
        ("session", facts.session),
        ("revision", facts.revision),
    ];
    for (key, value) in known {
        text(&mut out, key, value);
        out.push(b',');
    }
    let (age, now) = (facts.session_age.as_millis(), facts.unix_ms);
    out.extend_from_slice(format!("\"session_age_ms\":{age},\"unix_ms\":{now}}},").as_bytes());
    if let Some(request) = facts.request {
        message(&mut out, "request", request);
        out.push(b',');
    }
    message(&mut out, "message", view.message);
    out.push(b'}');
    out.into()
}

fn text(out: &mut Vec<u8>, key: &str, value: Option<&str>) {
    json::write_quoted(out, key);
    out.push(b':');
    match value {
        Some(value) => json::write_quoted(out, value),
        None => out.extend_from_slice(b"null"),
    }
}

/// Writes a message, or its length if it is too large to include.
fn message(out: &mut Vec<u8>, key: &str, message: &Envelope) {
    let bytes = message.bytes();
    if bytes.len() <= limits::WEBHOOK_MESSAGE {
        json::write_quoted(out, key);
        out.push(b':');
        out.extend_from_slice(message.object_span().of(bytes));
    } else {
        out.extend_from_slice(format!("\"{key}\":null,\"{key}_bytes\":{}", bytes.len()).as_bytes());
    }
}

/// Reason why a webhook's response is rejected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum HookError {
    #[error("it answered with HTTP status {0}")]
    Status(u16),
    #[error("its answer is larger than {} bytes", limits::WEBHOOK_ANSWER)]
    TooLarge,
    #[error("its answer is not valid: {0}")]
    Invalid(#[from] ScanError),
    #[error("its answer has no `{0}`")]
    Missing(&'static str),
    #[error("its `message` cannot be used: {0}")]
    Message(#[from] EditError),
    #[error("its `{0}` is not of the expected form")]
    Unfit(&'static str),
    #[error("its verdict is {0}; expected pass, modify, reply, error or refuse")]
    Verdict(String),
}

/// Parses a webhook's response. An empty one passes the message.
pub(crate) fn read(status: u16, body: &Bytes, about: &Envelope) -> Result<WebhookDecision, HookError> {
    if !(200..300).contains(&status) {
        return Err(HookError::Status(status));
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(WebhookDecision::Pass);
    }
    if body.len() > limits::WEBHOOK_ANSWER {
        return Err(HookError::TooLarge);
    }
    scan(body, &Limits::default())?;
    let part = |name: &str| json::member(body, name).map(|span| body.slice(span.range()));
    let words = |name: &str| part(name).and_then(|token| json::string(&token).map(std::borrow::Cow::into_owned));
    let need = |name: &'static str| part(name).ok_or(HookError::Missing(name));
    match words("verdict").as_deref() {
        Some("pass") => Ok(WebhookDecision::Pass),
        Some("modify") => Ok(WebhookDecision::Modify(edited(about, need("message")?, &Limits::default())?)),
        Some("reply") => object(need("result")?).map(WebhookDecision::Reply).ok_or(HookError::Unfit("result")),
        Some("error") => error_object(need("error")?).map(WebhookDecision::Error).ok_or(HookError::Unfit("error")),
        Some("refuse") => Ok(WebhookDecision::Refuse(words("reason").unwrap_or_else(|| "no reason given".to_owned()))),
        Some(other) => Err(HookError::Verdict(crate::error::shown(other))),
        None => Err(HookError::Missing("verdict")),
    }
}

fn object(bytes: Bytes) -> Option<Bytes> {
    if bytes.starts_with(b"{") { Some(bytes) } else { None }
}

fn error_object(bytes: Bytes) -> Option<Bytes> {
    let code = json::member(&bytes, "code")?.of(&bytes);
    std::str::from_utf8(code).ok()?.parse::<i64>().ok()?;
    json::string(json::member(&bytes, "message")?.of(&bytes))?;
    Some(bytes)
}
