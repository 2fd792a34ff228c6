//! Conversion between a page's answers and results of MCP tool calls.

use crate::json_text::JsonText;
use crate::tool_request::{ToolAnswer, WorkerError};
use bytes::Bytes;
use serde_json::{Value, json};
use signalbox_wire::{Edits, Span, json};
use std::borrow::Cow;

/// `_meta` member that records the original form of a result, so that legacy routes can restore it.
pub const FORM: &str = "io.signalbox/relay";

/// Converts a page's answer to the result of `tools/call`, as JSON. With `form`, it records the original form.
#[must_use]
pub fn of_answer(answer: &ToolAnswer, form: bool) -> String {
    match answer {
        ToolAnswer::Error(error) => of_error(error),
        ToolAnswer::Result(result) => of_result(result, form),
    }
}

/// Returns the result for a failed call.
#[must_use]
pub fn of_error(error: &WorkerError) -> String {
    let details: Value =
        error.details.as_ref().and_then(|raw| serde_json::from_str(raw.get()).ok()).unwrap_or_default();
    let mut about = json!({"type": error.kind});
    if !details.is_null() {
        about["details"] = details;
    }
    let text = Value::from(&*error.message);
    format!(
        r#"{{"content":[{{"type":"text","text":{text}}}],"isError":true,"_meta":{{"io.signalbox/error":{about}}}}}"#
    )
}

fn of_result(result: &JsonText, form: bool) -> String {
    // Scan the text: a parsed tree of a large result takes several times its memory.
    let raw = result.get().trim();
    let is_ready =
        raw.starts_with('{') && json::member(raw.as_bytes(), "content").is_some_and(|span| is_array(span, raw));
    if is_ready && !form {
        return minified(raw);
    }
    if is_ready {
        return with_form(raw);
    }
    let (text, word) = match raw.starts_with('"') {
        true => (minified(raw), "text"),
        false => (Value::from(minified(raw)).to_string(), "json"),
    };
    let meta = if form { format!(r#","_meta":{{"{FORM}":{{"form":"{word}"}}}}"#) } else { String::new() };
    format!(r#"{{"content":[{{"type":"text","text":{text}}}]{meta}}}"#)
}

fn is_array(span: Span, json: &str) -> bool {
    span.of(json.as_bytes()).first() == Some(&b'[')
}

/// Records in an MCP result that the page sent it in this form.
fn with_form(raw: &str) -> String {
    let bytes = Bytes::from(minified(raw));
    let whole = Span { start: 0, end: u32::try_from(bytes.len()).unwrap_or(u32::MAX) };
    let mut edits = Edits::new();
    match json::member(&bytes, "_meta") {
        Some(meta) if meta.of(&bytes).first() == Some(&b'{') => {
            edits.set_member(&bytes, meta, FORM, br#"{"form":"content"}"#);
        }
        Some(_) => {}
        None => {
            let meta = format!(r#"{{"{FORM}":{{"form":"content"}}}}"#);
            edits.set_member(&bytes, whole, "_meta", meta.as_bytes());
        }
    }
    String::from_utf8_lossy(&edits.apply(&bytes)).into_owned()
}

/// Reason why a legacy call has no result. The messages are shown to the client.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallFailure {
    /// The page or the gateway gave this reason.
    #[error("{0}")]
    Told(String),
    /// The page reports a failure without a reason.
    #[error("the tool failed")]
    Failed,
    /// The response is not JSON.
    #[error("the answer cannot be read")]
    Unreadable,
    /// The call cannot be made into a valid message.
    #[error("the request cannot be read: {0}")]
    BadRequest(String),
    /// The call ended without a response.
    #[error("the call ended without an answer")]
    NoAnswer,
    /// The gateway is shutting down.
    #[error("the gateway is shutting down")]
    ShuttingDown,
}

/// Converts the response to a `tools/call` for the legacy routes.
///
/// # Errors
/// The reason why there is no result.
pub fn to_legacy(answer: &[u8]) -> Result<String, CallFailure> {
    let string = |json: &[u8], path: &[&str]| {
        let token = json::path(json, path)?.of(json);
        json::string(token).map(Cow::into_owned)
    };
    if let Some(message) = string(answer, &["error", "message"]) {
        return Err(CallFailure::Told(message));
    }
    let result = json::member(answer, "result").ok_or(CallFailure::Unreadable)?.of(answer);
    let content = json::member(result, "content").map(|span| span.of(result)).unwrap_or_default();
    let text = json::elements(content).next().and_then(|first| string(first.of(content), &["text"]));
    if json::member(result, "isError").is_some_and(|span| span.of(result) == b"true") {
        return Err(text.map_or(CallFailure::Failed, CallFailure::Told));
    }
    match (string(result, &["_meta", FORM, "form"]).as_deref(), text) {
        (Some("json"), Some(text)) => Ok(text),
        (Some("text"), Some(text)) => Ok(Value::from(text).to_string()),
        _ => Ok(without_notes(result)),
    }
}

/// Removes the members that the gateway added to a result.
fn without_notes(result: &[u8]) -> String {
    let mut out = String::from("{");
    for member in json::members(result) {
        let key = json::string(member.key.of(result)).unwrap_or_default();
        if !matches!(&*key, "_meta" | "resultType") {
            if out.len() > 1 {
                out.push(',');
            }
            out.push_str(&minified(&String::from_utf8_lossy(member.whole.of(result))));
        }
    }
    out.push('}');
    out
}

/// Removes whitespace between JSON tokens, as `JSON.stringify` writes it.
#[must_use]
pub fn minified(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let (mut quoted, mut escaped) = (false, false);
    for letter in json.chars() {
        if quoted || !letter.is_ascii_whitespace() {
            out.push(letter);
        }
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ => {}
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(text: &str) -> ToolAnswer {
        ToolAnswer::Result(serde_json::value::RawValue::from_string(text.to_owned()).unwrap().into())
    }

    /// Proves C-14.
    #[test]
    fn a_string_goes_as_it_is_and_all_else_as_json() {
        let told = |text: &str| of_answer(&result(text), false);
        assert_eq!(
            told(r#""Successfully created data context 'StudentData'""#),
            r#"{"content":[{"type":"text","text":"Successfully created data context 'StudentData'"}]}"#
        );
        assert_eq!(
            told(r#"{"success": true, "id": "a b"}"#),
            r#"{"content":[{"type":"text","text":"{\"success\":true,\"id\":\"a b\"}"}]}"#
        );
        for falsy in ["null", "false", "0"] {
            assert_eq!(told(falsy), format!(r#"{{"content":[{{"type":"text","text":"{falsy}"}}]}}"#));
        }
        assert_eq!(told(r#""""#), r#"{"content":[{"type":"text","text":""}]}"#);
        let ready = r#"{"content":[{"type":"image","data":"","mimeType":"image/png"}]}"#;
        assert_eq!(told(ready), ready);
        assert_eq!(minified(r#"{ "a\" b" : [ 1 , "\\" ] }"#), r#"{"a\" b":[1,"\\"]}"#);
    }

    #[test]
    fn the_legacy_routes_tell_what_the_page_said() {
        for raw in [
            r#""text""#,
            r#""5""#,
            "5",
            "null",
            "false",
            r#"{"a":1.50}"#,
            r#"{"content":[{"type":"text","text":"x"}]}"#,
        ] {
            let answer = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{}}}"#, of_answer(&result(raw), true));
            assert_eq!(to_legacy(answer.as_bytes()), Ok(raw.to_owned()));
        }
        let error = WorkerError { kind: "codap_error".into(), message: "no such".into(), details: None };
        let answer = format!(r#"{{"result":{}}}"#, of_answer(&ToolAnswer::Error(error), true));
        assert_eq!(to_legacy(answer.as_bytes()), Err(CallFailure::Told("no such".to_owned())));
        assert_eq!(
            to_legacy(br#"{"error":{"code":1,"message":"denied"}}"#),
            Err(CallFailure::Told("denied".to_owned()))
        );
    }
}
