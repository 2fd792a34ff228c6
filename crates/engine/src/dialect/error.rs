//! Errors in the form of the dialect (G-9).

use super::DialectRequest;
use crate::fault::{Fault, FaultCategory};
use bytes::Bytes;
use signalbox_wire::{RawId, builder, json, timestamp};
use std::borrow::Cow;

/// Error on its way to a client of the dialect.
#[derive(Clone, Debug)]
pub struct DialectError<'a> {
    /// Error code of the JSON-RPC response.
    pub code: i64,
    /// The `message`: the operation that failed.
    pub message: &'static str,
    /// Category of the error.
    pub category: FaultCategory,
    /// Error code for programs.
    pub word: Cow<'a, str>,
    /// Sentence about the error for people.
    pub text: Cow<'a, str>,
    /// Members of `details`, as (name, raw JSON).
    pub details: Vec<(&'a str, Bytes)>,
    /// Kind of security violation, if it is one.
    pub violation: Option<&'static str>,
}

/// Audit id and time, which every error and every result carries.
#[derive(Copy, Clone, Debug)]
pub struct Stamp<'a> {
    /// Id of the request in the audit log; `None` if the message was not a request.
    pub audit_id: Option<&'a str>,
    /// Time of the answer, in milliseconds since 1970.
    pub unix_ms: u64,
}

impl<'a> DialectError<'a> {
    /// Converts a fault to the dialect's form.
    #[must_use]
    pub fn of(fault: &'a Fault, asked: &DialectRequest) -> Self {
        let (reason, suggestion) = fault.kind.advice();
        let mut details = vec![("reason", quoted(reason)), ("suggestion", quoted(suggestion))];
        details.extend(fault.data.iter().map(|(name, value)| (*name, value.clone())));
        Self {
            code: fault.dialect_code(),
            message: asked.failed(),
            category: fault.kind.category(),
            word: fault.dialect_word().into(),
            text: fault.message.as_str().into(),
            details,
            violation: fault.kind.violation(),
        }
    }

    /// Builds the error reply.
    #[must_use]
    pub fn reply(&self, id: Option<&RawId>, stamp: Stamp<'_>) -> Bytes {
        let mut data = Vec::with_capacity(512);
        data.extend_from_slice(br#"{"error_type":"#);
        json::write_quoted(&mut data, self.category.word());
        data.extend_from_slice(br#","error_code":"#);
        json::write_quoted(&mut data, &self.word);
        data.extend_from_slice(br#","error_message":"#);
        json::write_quoted(&mut data, &self.text);
        data.extend_from_slice(br#","details":{"#);
        for (at, (name, value)) in self.details.iter().enumerate() {
            if at > 0 {
                data.push(b',');
            }
            json::write_quoted(&mut data, name);
            data.push(b':');
            data.extend_from_slice(value);
        }
        data.extend_from_slice(br#"},"security_context":{"violation_type":"#);
        write_optional(&mut data, self.violation);
        data.extend_from_slice(br#","audit_id":"#);
        write_optional(&mut data, stamp.audit_id);
        data.extend_from_slice(br#"},"timestamp":"#);
        let seconds = i64::try_from(stamp.unix_ms / 1_000).unwrap_or(i64::MAX);
        json::write_quoted(&mut data, &timestamp::rfc3339(seconds));
        data.push(b'}');
        builder::error(id, self.code, self.message, Some(&data))
    }
}

/// Encodes a text as raw JSON.
pub(super) fn quoted(text: &str) -> Bytes {
    Bytes::from(json::quote(text))
}

pub(super) fn write_optional(out: &mut Vec<u8>, text: Option<&str>) {
    match text {
        Some(text) => json::write_quoted(out, text),
        None => out.extend_from_slice(b"null"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::FaultKind;
    use serde_json::{Value, json};

    /// Proves G-9.
    #[test]
    fn a_fault_has_every_member_of_the_specified_error() {
        let fault = Fault::new(FaultKind::RateLimited, "too \"often\"").with_raw("retryAfter", "3");
        let asked = DialectRequest::Invoke { tool_id: "t".into(), version: None };
        let stamp = Stamp { audit_id: Some("audit-1"), unix_ms: 1_704_110_400_500 };
        let reply = DialectError::of(&fault, &asked).reply(Some(&RawId::string("2")), stamp);
        let expected = json!({"jsonrpc": "2.0", "id": "2", "error": {
            "code": -32601,
            "message": "Tool execution failed",
            "data": {
                "error_type": "security_error",
                "error_code": "rate_limit_exceeded",
                "error_message": "too \"often\"",
                "details": {
                    "reason": "A limit of requests is used up",
                    "suggestion": "Wait as long as `retryAfter` says, in seconds",
                    "retryAfter": 3,
                },
                "security_context": {"violation_type": "rate_limit_exceeded", "audit_id": "audit-1"},
                "timestamp": "2024-01-01T12:00:00Z",
            },
        }});
        assert_eq!(serde_json::from_slice::<Value>(&reply).unwrap(), expected);
        let parse = Fault::new(FaultKind::Parse, "Parse error");
        let reply = DialectError::of(&parse, &DialectRequest::Other).reply(None, Stamp { audit_id: None, unix_ms: 0 });
        let error: Value = serde_json::from_slice(&reply).unwrap();
        assert_eq!((&error["id"], &error["error"]["code"]), (&Value::Null, &json!(-32700)));
        assert_eq!(error["error"]["data"]["security_context"], json!({"violation_type": null, "audit_id": null}));
    }
}
