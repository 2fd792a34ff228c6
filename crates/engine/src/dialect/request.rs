//! Translation of dialect requests to MCP requests.
//!
//! The MCP request names its own revision and client, as in 2026-07-28, so that it needs no session. It has the
//! client's id, and its client declares no capability: a client of the dialect cannot be asked anything.

use super::registration;
use super::security_context::{self, CallerContext};
use super::{DialectRequest, INVOKE, REGISTER, VALIDATE, VERSION};
use crate::fault::{Fault, FaultKind};
use crate::standing::TrustLevel;
use signalbox_wire::{Envelope, RawId, Revision, builder, json, meta, method};

/// Next step for a dialect request.
#[derive(Debug)]
pub enum Inner {
    /// The request continues as this MCP request.
    Mcp(Envelope),
    /// The gateway answers the request itself.
    Here,
}

/// Reads a request. The dialect request is returned as far as it could be read, even if it cannot be served.
pub fn read(message: &Envelope, known: &CallerContext<'_>) -> (DialectRequest, Result<Inner, Fault>) {
    match message.method() {
        Some(INVOKE) => invoke(message, known),
        Some(method::TOOLS_LIST) => list(message, known),
        Some(VALIDATE) => (DialectRequest::Validate, checked_call(message, known).map(|_| Inner::Here)),
        Some(REGISTER) => {
            let checked = context(message, known).and_then(|()| registration::check(message.params().unwrap_or(b"{}")));
            (DialectRequest::Register, checked.map(|()| Inner::Here))
        }
        other => {
            let shown: String = other.unwrap_or_default().chars().take(64).collect();
            let text = format!(
                "the governed dialect has no method `{shown}`; it has tools/list, {INVOKE}, {VALIDATE} and {REGISTER}"
            );
            (DialectRequest::Other, Err(Fault::new(FaultKind::MethodNotFound, text)))
        }
    }
}

fn invoke(message: &Envelope, known: &CallerContext<'_>) -> (DialectRequest, Result<Inner, Fault>) {
    let tool_id = text(message, "tool_id");
    let version = text(message, "tool_version");
    let asked = DialectRequest::Invoke {
        tool_id: tool_id.as_ref().ok().and_then(Option::as_deref).unwrap_or_default().into(),
        version: version.as_ref().ok().and_then(Option::as_deref).map(Into::into),
    };
    let inner = checked_call(message, known).and_then(|call| {
        let request = mcp_request(message, method::TOOLS_CALL).param_str("name", &call.tool_id);
        mcp(&request.param_raw("arguments", call.parameters))
    });
    (asked, inner)
}

/// Call described by `tools/invoke` or `tools/validate`.
pub(crate) struct DescribedCall<'a> {
    /// Listed name of the tool.
    pub tool_id: String,
    /// Version that the tool must have.
    pub version: Option<String>,
    /// Parameters of the call, an object.
    pub parameters: &'a [u8],
}

fn checked_call<'a>(message: &'a Envelope, known: &CallerContext<'_>) -> Result<DescribedCall<'a>, Fault> {
    let call = described_call(message)?;
    context(message, known)?;
    Ok(call)
}

/// Reads the call that a message describes.
///
/// # Errors
/// Returns a fault if a member is missing or of another type.
pub(crate) fn described_call(message: &Envelope) -> Result<DescribedCall<'_>, Fault> {
    let tool_id = text(message, "tool_id")?;
    let tool_id = tool_id.ok_or_else(|| registration::missing_fields(&["tool_id".to_owned()]))?;
    let version = text(message, "tool_version")?;
    let parameters = raw(message, "parameters").unwrap_or(b"{}");
    if !parameters.starts_with(b"{") {
        return Err(invalid("`params.parameters` must be an object"));
    }
    Ok(DescribedCall { tool_id, version, parameters })
}

fn list(message: &Envelope, known: &CallerContext<'_>) -> (DialectRequest, Result<Inner, Fault>) {
    let category = text(message, "category");
    let trust = text(message, "trust_level").and_then(|word| {
        let level = |word: String| TrustLevel::of(&word).ok_or_else(|| invalid(&unknown_level(&word)));
        word.map(level).transpose()
    });
    let asked = DialectRequest::List {
        category: category.as_ref().ok().and_then(Option::as_deref).map(Into::into),
        trust: trust.as_ref().ok().copied().flatten(),
    };
    let inner = || {
        category?;
        trust?;
        context(message, known)?;
        let request = mcp_request(message, method::TOOLS_LIST);
        mcp(&match text(message, "cursor")? {
            Some(cursor) => request.param_str("cursor", &cursor),
            None => request,
        })
    };
    let inner = inner();
    (asked, inner)
}

fn unknown_level(word: &str) -> String {
    let shown: String = word.chars().take(64).collect();
    let words = TrustLevel::ALL.map(TrustLevel::word).join(", ");
    format!("`params.trust_level` is `{shown}`; it must be one of {words}")
}

/// Starts an MCP request with the same id, revision and client info of its own.
fn mcp_request(message: &Envelope, method: &str) -> builder::RequestBuilder {
    builder::RequestBuilder::new(method)
        .id(message.id().unwrap_or_else(RawId::null))
        .meta_str(meta::PROTOCOL_VERSION, Revision::LATEST.as_str())
        .meta_raw(meta::CLIENT_CAPABILITIES, "{}")
        .meta_raw(meta::CLIENT_INFO, format!(r#"{{"name":"governed-dialect","version":"{VERSION}"}}"#))
}

fn mcp(request: &builder::RequestBuilder) -> Result<Inner, Fault> {
    let unreadable = |_| Fault::new(FaultKind::Internal, "the request cannot be put into the words of MCP");
    Envelope::parse(request.build()).map(Inner::Mcp).map_err(unreadable)
}

fn context(message: &Envelope, known: &CallerContext<'_>) -> Result<(), Fault> {
    raw(message, "security_context").map_or(Ok(()), |context| security_context::check(context, known))
}

/// Returns a member of `params`; null counts as absent.
fn raw<'a>(message: &'a Envelope, name: &str) -> Option<&'a [u8]> {
    message.param(name).map(|span| span.of(message.bytes())).filter(|value| *value != b"null")
}

/// Returns a member of `params` that must be a string if present.
fn text(message: &Envelope, name: &str) -> Result<Option<String>, Fault> {
    let wrong = || invalid(&format!("`params.{name}` must be a string"));
    raw(message, name).map(|value| Ok(json::string(value).ok_or_else(wrong)?.into_owned())).transpose()
}

fn invalid(text: &str) -> Fault {
    Fault::new(FaultKind::InvalidParams, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn ask(method: &str, params: &str) -> (DialectRequest, Result<Value, Fault>) {
        let text = format!(r#"{{"jsonrpc":"2.0","id":"2","method":"{method}","params":{params}}}"#);
        let known =
            CallerContext { user: "user123", session: Some("session456"), has: &|name| name == "read:filesystem" };
        let (asked, inner) = read(&Envelope::parse(text.into()).unwrap(), &known);
        let inner = inner.map(|inner| match inner {
            Inner::Mcp(message) => serde_json::from_slice(message.bytes()).unwrap(),
            Inner::Here => Value::Null,
        });
        (asked, inner)
    }

    /// Proves G-5 and G-10.
    #[test]
    fn an_invocation_of_the_dialect_becomes_a_call() {
        let params = r#"{"tool_id":"directory_list","tool_version":"1.0.0","parameters":{"path":"./src","recursive":true,"max_depth":3.0},"security_context":{"user_id":"user123","session_id":"session456","permissions":["read:filesystem"]}}"#;
        let (asked, call) = ask("tools/invoke", params);
        assert_eq!(asked, DialectRequest::Invoke { tool_id: "directory_list".into(), version: Some("1.0.0".into()) });
        let call = call.unwrap();
        assert_eq!((&call["id"], &call["method"]), (&json!("2"), &json!("tools/call")));
        assert_eq!(call["params"]["name"], "directory_list");
        assert_eq!(call["params"]["arguments"], json!({"path": "./src", "recursive": true, "max_depth": 3.0}));
        assert_eq!(call["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert!(call["params"].get("security_context").is_none());
    }

    /// Proves G-4.
    #[test]
    fn a_discovery_of_the_dialect_becomes_a_list() {
        let (asked, list) = ask("tools/list", r#"{"category":"filesystem","trust_level":"verified","cursor":"c"}"#);
        assert_eq!(
            asked,
            DialectRequest::List { category: Some("filesystem".into()), trust: Some(TrustLevel::Verified) }
        );
        assert_eq!(list.unwrap()["params"]["cursor"], "c");
        let (asked, list) = ask("tools/list", "{}");
        assert_eq!((asked, list.is_ok()), (DialectRequest::List { category: None, trust: None }, true));
    }

    /// Proves G-21.
    #[test]
    fn what_is_wrong_is_named() {
        for (method, params, kind, part) in [
            ("tools/invoke", "{}", FaultKind::MissingFields, "tool_id"),
            ("tools/invoke", r#"{"tool_id":7}"#, FaultKind::InvalidParams, "`params.tool_id` must be a string"),
            ("tools/invoke", r#"{"tool_id":"a","parameters":[]}"#, FaultKind::InvalidParams, "must be an object"),
            ("tools/invoke", r#"{"tool_id":"a","tool_version":1}"#, FaultKind::InvalidParams, "tool_version"),
            (
                "tools/invoke",
                r#"{"tool_id":"a","security_context":{"user_id":"eve"}}"#,
                FaultKind::InvalidSecurityContext,
                "user_id",
            ),
            ("tools/validate", "{}", FaultKind::MissingFields, "tool_id"),
            ("tools/validate", r#"{"tool_id":"a","parameters":[]}"#, FaultKind::InvalidParams, "must be an object"),
            (
                "tools/validate",
                r#"{"tool_id":"a","security_context":{"permissions":["write:disk"]}}"#,
                FaultKind::InvalidSecurityContext,
                "write:disk",
            ),
            ("tools/list", r#"{"trust_level":"full"}"#, FaultKind::InvalidParams, "system, verified"),
            ("tools/list", r#"{"category":[]}"#, FaultKind::InvalidParams, "category"),
            ("tools/register", "{}", FaultKind::MissingFields, "tool_metadata.name"),
            ("initialize", "{}", FaultKind::MethodNotFound, "no method `initialize`"),
        ] {
            let fault = ask(method, params).1.unwrap_err();
            assert_eq!(fault.kind, kind, "{method} {params}");
            assert!(fault.message.contains(part), "{}", fault.message);
        }
        assert!(matches!(ask("tools/invoke", r#"{"tool_id":"a","parameters":null}"#).1, Ok(Value::Object(_))));
    }
}
