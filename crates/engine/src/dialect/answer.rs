//! Translation of MCP answers to answers of the dialect (G-7, G-9).

use super::DialectRequest;
use super::error::{DialectError, Stamp, quoted};
use super::listing::{self, ListFilter};
use crate::fault::{Fault, FaultCategory, FaultKind};
use crate::tool_label::ToolLabel;
use bytes::Bytes;
use signalbox_wire::{Envelope, Limits, RawId, builder, codes, json, scan};
use std::borrow::Cow;

/// Member of `_meta` with which a tool describes its failure: `error_type`, `error_code`, `error_message`, `details`.
pub const TOOL_ERROR: &str = "signalbox/error";
/// Maximum number of characters of a tool's text in an error.
pub const MAX_ERROR_TEXT: usize = 4_096;
/// Maximum number of characters of a tool's error code.
const MAX_WORD: usize = 64;

/// Context of the request that is answered.
#[derive(Copy, Clone)]
pub struct About<'a> {
    /// The dialect request, which determines the form of the answer.
    pub asked: &'a DialectRequest,
    /// Id as the client wrote it.
    pub id: &'a RawId,
    /// Id of this execution.
    pub execution_id: &'a str,
    /// Id of the request in the audit log.
    pub audit_id: &'a str,
    /// Permissions that the call needed.
    pub used: &'a [Box<str>],
    /// Returns the label of a tool by its listed name.
    pub label: &'a dyn Fn(&str) -> ToolLabel,
    /// Id of the session, if there is one.
    pub session: Option<&'a str>,
    /// Time of the answer, in milliseconds since 1970.
    pub unix_ms: u64,
}

/// Translates an answer of MCP for a client of the dialect.
#[must_use]
pub fn translate(message: &Bytes, about: &About<'_>) -> Bytes {
    let Ok(envelope) = Envelope::parse(message.clone()) else {
        return fault(&Fault::new(FaultKind::Internal, "the answer is not a valid message"), about);
    };
    if let Some(error) = envelope.error() {
        return error_reply(&rpc_error(error, about.asked), about);
    }
    let result = envelope.result().unwrap_or(b"{}");
    match about.asked {
        DialectRequest::List { category, trust } => {
            let wanted = ListFilter { category: category.as_deref(), trust: *trust };
            let list = listing::translate(result, wanted, about.label, about.session);
            builder::response(about.id, &list)
        }
        DialectRequest::Invoke { tool_id, .. } => invoke_reply(result, tool_id, about),
        DialectRequest::Validate | DialectRequest::Register | DialectRequest::Other => message.clone(),
    }
}

/// Builds the answer for a fault.
fn fault(fault: &Fault, about: &About<'_>) -> Bytes {
    error_reply(&DialectError::of(fault, about.asked), about)
}

fn error_reply(error: &DialectError<'_>, about: &About<'_>) -> Bytes {
    error.reply(Some(about.id), Stamp { audit_id: Some(about.audit_id), unix_ms: about.unix_ms })
}

fn invoke_reply(result: &[u8], tool_id: &str, about: &About<'_>) -> Bytes {
    let member = |name: &str| json::member(result, name).map(|span| span.of(result));
    let kind = member("resultType").and_then(json::string);
    if let Some(kind) = kind.filter(|kind| kind != "complete") {
        // A question or a task. The dialect can express neither.
        let text = format!("the tool wants to go on in a way that the governed dialect does not have: {kind}");
        return fault(&Fault::new(FaultKind::NotBridged, text), about);
    }
    if member("isError") == Some(b"true") {
        return error_reply(&tool_error(result, about.asked), about);
    }
    let mut out = br#"{"tool_id":"#.to_vec();
    json::write_quoted(&mut out, tool_id);
    out.extend_from_slice(br#","execution_id":"#);
    json::write_quoted(&mut out, about.execution_id);
    out.extend_from_slice(br#","status":"success","data":"#);
    out.extend_from_slice(&data(result));
    out.extend_from_slice(br#","security_context":{"access_granted":true,"permissions_used":"#);
    out.extend_from_slice(&listing::texts(about.used));
    out.extend_from_slice(br#","audit_id":"#);
    json::write_quoted(&mut out, about.audit_id);
    out.extend_from_slice(b"}}");
    builder::response(about.id, &out)
}

/// Returns the data of a tool result: its structured content, else its single text as JSON or as a string, else all of
/// its content.
fn data(result: &[u8]) -> Cow<'_, [u8]> {
    let member = |name: &str| json::member(result, name).map(|span| span.of(result));
    if let Some(structured) = member("structuredContent") {
        return structured.into();
    }
    let Some(content) = member("content") else { return b"null".as_slice().into() };
    let mut blocks = json::elements(content);
    match (blocks.next().map(|block| block.of(content)), blocks.next()) {
        (Some(block), None) => match text_of(block) {
            Some(text) if scan(text.as_bytes(), &Limits::default()).is_ok() => {
                text.trim().to_owned().into_bytes().into()
            }
            Some(text) => json::quote(&text).into_bytes().into(),
            None => content.into(),
        },
        _ => content.into(),
    }
}

/// Returns the text of a content block, if it is a text block.
fn text_of(block: &[u8]) -> Option<Cow<'_, str>> {
    let member = |name: &str| json::member(block, name).and_then(|span| json::string(span.of(block)));
    member("type").filter(|kind| kind == "text").and_then(|_| member("text"))
}

/// Reads a failure that the tool reports itself. The tool is trusted only about its own failure.
fn tool_error<'a>(result: &'a [u8], asked: &DialectRequest) -> DialectError<'a> {
    let said =
        json::path(result, &["_meta", TOOL_ERROR]).map(|span| span.of(result)).filter(|said| said.starts_with(b"{"));
    let member = |name: &str| said.and_then(|said| json::member(said, name).map(|span| span.of(said)));
    let word = |name: &str| member(name).and_then(json::string);
    let category = word("error_type").and_then(|word| FaultCategory::of(&word)).unwrap_or(FaultCategory::Tool);
    let code = word("error_code").filter(|word| is_word(word)).unwrap_or("execution_failed".into());
    let text = match word("error_message") {
        Some(text) => short(text),
        None => texts_of(result),
    };
    let mut details: Vec<(&str, Bytes)> = Vec::new();
    let given = member("details").filter(|details| details.starts_with(b"{")).unwrap_or(b"{}");
    for name in ["requested_path", "reason", "suggestion"] {
        if let Some(value) = json::member(given, name) {
            details.push((name, Bytes::copy_from_slice(value.of(given))));
        }
    }
    if details.is_empty() {
        details.push(("reason", quoted("The tool reported an error")));
        details.push(("suggestion", quoted("Change the parameters as the error says, and call again")));
    }
    if let Some(structured) = json::member(result, "structuredContent") {
        details.push(("data", Bytes::copy_from_slice(structured.of(result))));
    }
    DialectError {
        code: codes::METHOD_NOT_FOUND,
        message: asked.failed(),
        category,
        word: code,
        text,
        details,
        violation: (category == FaultCategory::Security).then_some("unauthorized_access"),
    }
}

/// Returns the texts of a result's content, joined.
fn texts_of(result: &[u8]) -> Cow<'_, str> {
    let content = json::member(result, "content").map_or(&b"[]"[..], |span| span.of(result));
    let texts: Vec<Cow<'_, str>> = json::elements(content).filter_map(|block| text_of(block.of(content))).collect();
    if texts.is_empty() { "The tool reported an error".into() } else { short(texts.join("\n").into()) }
}

/// Translates a JSON-RPC error of the backend or of a rule.
fn rpc_error<'a>(error: &'a [u8], asked: &DialectRequest) -> DialectError<'a> {
    let member = |name: &str| json::member(error, name).map(|span| span.of(error));
    let code: Option<i64> = member("code").and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
    let (category, word) = match code {
        Some(codes::INVALID_PARAMS) => (FaultCategory::Validation, "invalid_parameters"),
        _ => (FaultCategory::Tool, "execution_failed"),
    };
    let mut details = vec![
        ("reason", quoted("The tool answered with an error")),
        ("suggestion", quoted("Change the parameters as the error says, and call again")),
    ];
    for name in ["code", "data"] {
        details.extend(member(name).map(|value| (name, Bytes::copy_from_slice(value))));
    }
    DialectError {
        code: codes::METHOD_NOT_FOUND,
        message: asked.failed(),
        category,
        word: word.into(),
        text: member("message").and_then(json::string).map_or("".into(), short),
        details,
        violation: None,
    }
}

fn is_word(word: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "_-.".contains(letter);
    !word.is_empty() && word.len() <= MAX_WORD && word.chars().all(is_plain)
}

/// Truncates a text to [`MAX_ERROR_TEXT`].
fn short(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.char_indices().nth(MAX_ERROR_TEXT) {
        Some((end, _)) => text[..end].to_owned().into(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn answered(body: &str) -> Value {
        let asked = DialectRequest::Invoke { tool_id: "directory_list".into(), version: None };
        let used = ["read:filesystem".into()];
        let about = About {
            asked: &asked,
            id: &RawId::string("2"),
            execution_id: "exec-789",
            audit_id: "audit-abc123",
            used: &used,
            label: &|_| ToolLabel::default(),
            session: None,
            unix_ms: 1_704_110_400_000,
        };
        let message = format!(r#"{{"jsonrpc":"2.0","id":"2",{body}}}"#);
        serde_json::from_slice(&translate(&message.into(), &about)).unwrap()
    }

    /// Proves G-7.
    #[test]
    fn a_result_has_the_specified_shape() {
        let answer = answered(
            r#""result":{"content":[{"type":"text","text":"x"}],"structuredContent":{"path":"./src"},"isError":false}"#,
        );
        let expected = json!({"jsonrpc": "2.0", "id": "2", "result": {
            "tool_id": "directory_list",
            "execution_id": "exec-789",
            "status": "success",
            "data": {"path": "./src"},
            "security_context": {
                "access_granted": true,
                "permissions_used": ["read:filesystem"],
                "audit_id": "audit-abc123",
            },
        }});
        assert_eq!(answer, expected);
    }

    /// Proves G-7.
    #[test]
    fn data_is_what_the_tool_gave() {
        for (content, data) in [
            (r#"[{"type":"text","text":"plain"}]"#, json!("plain")),
            (r#"[{"type":"text","text":" {\"a\":1} "}]"#, json!({"a": 1})),
            (r#"[{"type":"text","text":"{\"a\":1"}]"#, json!("{\"a\":1")),
            (r#"[{"type":"image","data":""}]"#, json!([{"type": "image", "data": ""}])),
            ("[]", json!([])),
            (
                r#"[{"type":"text","text":"1"},{"type":"text","text":"2"}]"#,
                json!([{"type": "text", "text": "1"}, {"type": "text", "text": "2"}]),
            ),
        ] {
            assert_eq!(answered(&format!(r#""result":{{"content":{content}}}"#))["result"]["data"], data, "{content}");
        }
        assert_eq!(answered(r#""result":{}"#)["result"]["data"], Value::Null);
    }

    /// Proves G-9.
    #[test]
    fn a_failure_of_the_tool_has_the_specified_shape() {
        let said = r#"{"error_type":"security_error","error_code":"path_not_allowed","error_message":"Access to the specified path is not permitted","details":{"requested_path":"/etc/passwd","reason":"Path not in allowed list","suggestion":"Request access to an allowed directory"}}"#;
        let answer = answered(&format!(
            r#""result":{{"content":[{{"type":"text","text":"no"}}],"isError":true,"_meta":{{"signalbox/error":{said}}}}}"#
        ));
        let expected = json!({"jsonrpc": "2.0", "id": "2", "error": {
            "code": -32601,
            "message": "Tool execution failed",
            "data": {
                "error_type": "security_error",
                "error_code": "path_not_allowed",
                "error_message": "Access to the specified path is not permitted",
                "details": {
                    "requested_path": "/etc/passwd",
                    "reason": "Path not in allowed list",
                    "suggestion": "Request access to an allowed directory",
                },
                "security_context": {"violation_type": "unauthorized_access", "audit_id": "audit-abc123"},
                "timestamp": "2024-01-01T12:00:00Z",
            },
        }});
        assert_eq!(answer, expected);
    }

    /// Proves G-9.
    #[test]
    fn the_text_of_a_tools_error_has_an_end() {
        let long = "é".repeat(MAX_ERROR_TEXT + 1);
        let body = format!(r#""result":{{"isError":true,"content":[{{"type":"text","text":"{long}"}}]}}"#);
        let told = answered(&body)["error"]["data"]["error_message"].as_str().unwrap().chars().count();
        assert_eq!(told, MAX_ERROR_TEXT);
    }

    /// Proves G-9.
    #[test]
    fn other_failures_are_told_as_far_as_they_tell_anything() {
        for (body, kind, word, text) in [
            (
                r#""result":{"isError":true,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
                "tool_error",
                "execution_failed",
                "a\nb",
            ),
            (
                r#""result":{"isError":true,"_meta":{"signalbox/error":{"error_type":"all is well","error_code":"a b"}}}"#,
                "tool_error",
                "execution_failed",
                "The tool reported an error",
            ),
            (r#""error":{"code":-32602,"message":"bad","data":[1]}"#, "validation_error", "invalid_parameters", "bad"),
            (r#""error":{"code":-1,"message":"odd"}"#, "tool_error", "execution_failed", "odd"),
            (
                r#""result":{"resultType":"input_required"}"#,
                "protocol_error",
                "not_bridged",
                "the tool wants to go on in a way that the governed dialect does not have: input_required",
            ),
        ] {
            let error = answered(body)["error"].take();
            assert_eq!((&error["code"], &error["message"]), (&json!(-32601), &json!("Tool execution failed")));
            let data = &error["data"];
            assert_eq!((&data["error_type"], &data["error_code"]), (&json!(kind), &json!(word)), "{body}");
            assert_eq!(data["error_message"], text);
            assert!(data["details"]["reason"].is_string() && data["details"]["suggestion"].is_string());
        }
    }
}
