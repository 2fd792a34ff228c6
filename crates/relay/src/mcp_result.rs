//! What a page says, as the result of an MCP tool call and back (C-14).

use crate::tool_request::{ToolAnswer, WorkerError};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Where the form of a result is noted for the legacy routes, which tell it as the page said it.
pub const FORM: &str = "io.signalbox/relay";

/// The result of `tools/call`, as JSON. With `form` it says how it was made.
#[must_use]
pub fn of_answer(answer: &ToolAnswer, form: bool) -> String {
    match answer {
        ToolAnswer::Error(error) => of_error(error),
        ToolAnswer::Result(result) => of_result(result, form),
    }
}

/// A result that says that there is none.
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

fn of_result(result: &RawValue, form: bool) -> String {
    let raw = result.get().trim();
    if raw.starts_with('{')
        && let Ok(Value::Object(mut object)) = serde_json::from_str::<Value>(raw)
        && object.get("content").is_some_and(Value::is_array)
    {
        if !form {
            return minified(raw);
        }
        let meta = object.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert(FORM.to_owned(), json!({"form": "content"}));
        }
        return Value::Object(object).to_string();
    }
    let (text, word) = match raw.starts_with('"') {
        true => (minified(raw), "text"),
        false => (Value::from(minified(raw)).to_string(), "json"),
    };
    let meta = if form { format!(r#","_meta":{{"{FORM}":{{"form":"{word}"}}}}"#) } else { String::new() };
    format!(r#"{{"content":[{{"type":"text","text":{text}}}]{meta}}}"#)
}

/// Why a call by the legacy routes has no result. Its words are what the client is told.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CallFailure {
    /// The page or the gateway says why.
    #[error("{0}")]
    Told(String),
    /// The page says that its tool failed, and nothing more.
    #[error("the tool failed")]
    Failed,
    /// What came back is no JSON.
    #[error("the answer cannot be read")]
    Unreadable,
    /// The call makes no message that may be sent.
    #[error("the request cannot be read: {0}")]
    BadRequest(String),
    /// Nothing came back.
    #[error("the call ended without an answer")]
    NoAnswer,
    /// The process is ending.
    #[error("the gateway is shutting down")]
    ShuttingDown,
}

/// What the legacy routes tell of the answer to a `tools/call`: the page's result, or an error.
///
/// # Errors
/// Why there is no result.
pub fn to_legacy(answer: &[u8]) -> Result<String, CallFailure> {
    let answer: Value = serde_json::from_slice(answer).map_err(|_| CallFailure::Unreadable)?;
    if let Some(message) = answer["error"]["message"].as_str() {
        return Err(CallFailure::Told(message.to_owned()));
    }
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str();
    if result["isError"] == Value::Bool(true) {
        return Err(text.map_or(CallFailure::Failed, |text| CallFailure::Told(text.to_owned())));
    }
    match (result["_meta"][FORM]["form"].as_str(), text) {
        (Some("json"), Some(text)) => Ok(text.to_owned()),
        (Some("text"), Some(text)) => Ok(Value::from(text).to_string()),
        _ => {
            let members = result.as_object().into_iter().flatten();
            let kept = members.filter(|(key, _)| !matches!(key.as_str(), "_meta" | "resultType"));
            Ok(Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>()).to_string())
        }
    }
}

/// JSON without the blanks between its parts, as `JSON.stringify` writes it.
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
        ToolAnswer::Result(RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn c_14_a_string_goes_as_it_is_and_all_else_as_json() {
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
