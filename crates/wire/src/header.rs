//! Routing headers of revision 2026-07-28, which repeat parts of the body and must agree with it.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::envelope::{Envelope, Kind};
use crate::json;
use crate::meta;
use crate::method;
use crate::span::Span;

/// Header with the revision of the request.
pub const PROTOCOL_VERSION: &str = "mcp-protocol-version";
/// Header that repeats the method.
pub const METHOD: &str = "mcp-method";
/// Header that repeats the subject: the name of a tool or prompt, the URI of a resource, or the id of a task.
pub const NAME: &str = "mcp-name";
/// Prefix of headers that repeat a tool's arguments.
pub const PARAM_PREFIX: &str = "mcp-param-";
/// Header with the session id, in revisions that have sessions.
pub const SESSION_ID: &str = "mcp-session-id";

/// Maximum length of a value quoted in an error, in characters.
const MAX_QUOTED: usize = 80;

const ENCODED_START: &str = "=?base64?";
const ENCODED_END: &str = "?=";

/// Values of a request under one header name.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum HeaderValues<'a> {
    /// The header is absent.
    Missing,
    /// Single value as raw bytes.
    One(&'a [u8]),
    /// Several values, of which two readers might pick different ones.
    Many,
}

impl<'a> FromIterator<&'a [u8]> for HeaderValues<'a> {
    fn from_iter<I: IntoIterator<Item = &'a [u8]>>(values: I) -> Self {
        let mut values = values.into_iter();
        match (values.next(), values.next()) {
            (None, _) => Self::Missing,
            (Some(value), None) => Self::One(value),
            (Some(_), Some(_)) => Self::Many,
        }
    }
}

/// Disagreement between a header and the body. To be answered with status 400 and
/// [`HEADER_MISMATCH`](crate::codes::HEADER_MISMATCH).
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("header {header}: {problem}")]
pub struct HeaderError {
    /// Header name in lower case, or `value` if a value was decoded on its own.
    pub header: String,
    /// Problem found with the header.
    pub problem: HeaderProblem,
}

/// Problem with a header. Quoted values are truncated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderProblem {
    /// The header is absent.
    #[error("missing, expected {expected:?}")]
    Missing {
        /// Value in the body.
        expected: String,
    },
    /// The header occurs more than once.
    #[error("given more than once")]
    Repeated,
    /// The header's value differs from the body's.
    #[error("expected {expected:?}, found {found:?}")]
    Mismatch {
        /// Value in the body.
        expected: String,
        /// Value in the header.
        found: String,
    },
    /// The header is present, but the body has no such value.
    #[error("found {found:?}, but the body has no such value")]
    Unexpected {
        /// Value in the header.
        found: String,
    },
    /// The value contains forbidden characters or is badly encoded.
    #[error("malformed value {found:?}")]
    Malformed {
        /// Value in the header.
        found: String,
    },
    /// The body has a value that a header cannot repeat.
    #[error("the body's value cannot be repeated in a header")]
    NotRepeatable,
}

impl HeaderError {
    pub(crate) fn new(header: impl Into<String>, problem: HeaderProblem) -> Self {
        Self { header: header.into(), problem }
    }
}

/// Encodes `text` as a value of `Mcp-Name` or `Mcp-Param-*`: unchanged if a header can hold it, otherwise in base64.
#[must_use]
pub fn encode_value(text: &str) -> Cow<'_, str> {
    if is_plain(text.as_bytes()) && encoded_part(text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(encode_base64(text))
}

/// Encodes `text` as a value of `Mcp-Name` or `Mcp-Param-*`, always in base64.
#[must_use]
pub fn encode_base64(text: &str) -> String {
    format!("{ENCODED_START}{}{ENCODED_END}", STANDARD.encode(text))
}

/// Decodes a raw value of `Mcp-Name` or `Mcp-Param-*`.
///
/// # Errors
/// If it contains forbidden characters or is badly encoded.
pub fn decode_value(raw: &[u8]) -> Result<Cow<'_, str>, HeaderError> {
    decode(raw).map_err(|problem| HeaderError::new("value", problem))
}

pub(crate) fn decode(raw: &[u8]) -> Result<Cow<'_, str>, HeaderProblem> {
    let malformed = || HeaderProblem::Malformed { found: quoted(&String::from_utf8_lossy(raw)) };
    if let Some(encoded) = encoded_part(raw) {
        let bytes = STANDARD.decode(encoded).map_err(|_| malformed())?;
        return String::from_utf8(bytes).map(Cow::Owned).map_err(|_| malformed());
    }
    if !is_plain(raw) {
        return Err(malformed());
    }
    std::str::from_utf8(raw).map(Cow::Borrowed).map_err(|_| malformed())
}

/// Returns `true` for visible ASCII, spaces and tabs, without blanks at either end.
fn is_plain(value: &[u8]) -> bool {
    let blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    !blank(value.first()) && !blank(value.last()) && value.iter().all(|byte| matches!(byte, b'\t' | b' '..=b'~'))
}

fn encoded_part(value: &[u8]) -> Option<&[u8]> {
    value.strip_prefix(ENCODED_START.as_bytes())?.strip_suffix(ENCODED_END.as_bytes())
}

pub(crate) fn quoted(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED) {
        None => text.to_owned(),
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
    }
}

/// Returns the decoded value that a request needs in `Mcp-Name`. Returns `None` if the method needs none or the params
/// lack it.
#[must_use]
pub fn required_name<'a>(method: &str, params: &'a [u8]) -> Option<Cow<'a, str>> {
    let key = name_member(method)?;
    json::string(json::member(params, key)?.of(params))
}

/// Returns the member of the params that `Mcp-Name` repeats for this method.
#[must_use]
pub fn name_member(method: &str) -> Option<&'static str> {
    match method {
        method::TOOLS_CALL | method::PROMPTS_GET => Some("name"),
        method::RESOURCES_READ => Some("uri"),
        method::TASKS_GET | method::TASKS_UPDATE | method::TASKS_CANCEL => Some("taskId"),
        _ => None,
    }
}

/// Checks that the headers of a POST agree with its body. `lookup` gets header names in lower case.
///
/// A request needs every header that applies to it. A notification may omit headers, but not contradict the body.
///
/// # Errors
/// The first header that is missing, repeated, malformed or disagrees with the body.
pub fn check<'a>(lookup: impl Fn(&str) -> HeaderValues<'a>, envelope: &Envelope) -> Result<(), HeaderError> {
    let required = envelope.kind() == Kind::Request;
    let text = |span: Option<Span>| span.and_then(|span| json::string(span.of(envelope.bytes())));
    let version = text(envelope.param_meta(meta::PROTOCOL_VERSION));
    check_one(&lookup, PROTOCOL_VERSION, version.as_deref(), Need::version(required, version.is_some()))?;
    let need = if required { Need::Required } else { Need::IfPresent };
    check_one(&lookup, METHOD, envelope.method(), need)?;
    let method = envelope.method().unwrap_or_default();
    if let Some(member) = name_member(method) {
        // Params without the name are rejected later as an error in the body. There is nothing to compare here.
        let name = text(envelope.param(member));
        check_one(&lookup, NAME, name.as_deref(), need)?;
    }
    Ok(())
}

/// Handling of a header that is absent or has no counterpart in the body.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Need {
    /// Must be present if the body has the value, and absent otherwise.
    Required,
    /// Must agree with the body if both are present.
    IfPresent,
}

impl Need {
    fn version(required: bool, in_body: bool) -> Self {
        if required || in_body { Self::Required } else { Self::IfPresent }
    }
}

fn check_one<'a>(
    lookup: &impl Fn(&str) -> HeaderValues<'a>,
    header: &str,
    expected: Option<&str>,
    need: Need,
) -> Result<(), HeaderError> {
    let fail = |problem| Err(HeaderError::new(header, problem));
    match (lookup(header), expected) {
        (HeaderValues::Many, _) => fail(HeaderProblem::Repeated),
        (HeaderValues::Missing, Some(expected)) if need == Need::Required => {
            fail(HeaderProblem::Missing { expected: quoted(expected) })
        }
        (HeaderValues::Missing, _) => Ok(()),
        (HeaderValues::One(raw), None) if need == Need::Required => {
            fail(HeaderProblem::Unexpected { found: quoted(&String::from_utf8_lossy(raw)) })
        }
        (HeaderValues::One(_), None) => Ok(()),
        (HeaderValues::One(raw), Some(expected)) => {
            if header != NAME && raw == expected.as_bytes() {
                return Ok(());
            }
            let found = decode(raw).map_err(|problem| HeaderError::new(header, problem))?;
            if header == NAME && found == expected {
                return Ok(());
            }
            fail(HeaderProblem::Mismatch { expected: quoted(expected), found: quoted(&found) })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn values_are_encoded_only_when_needed() {
        for plain in ["", "get_weather", "a b\tc", "=?base64?", "=?base64?=", "=?BASE64?YQ==?="] {
            assert_eq!(encode_value(plain), plain);
            assert_eq!(decode_value(plain.as_bytes()).unwrap(), plain);
        }
        assert_eq!(encode_value("Hello, 世界"), "=?base64?SGVsbG8sIOS4lueVjA==?=");
        for text in [" a", "a\t", "é", "a\nb", "\0", "=?base64?YQ==?=", "=?base64??="] {
            let encoded = encode_value(text);
            assert!(encoded.starts_with("=?base64?"), "{text}");
            assert_eq!(decode_value(encoded.as_bytes()).unwrap(), text);
        }
    }

    #[test]
    fn malformed_values_are_refused() {
        for raw in [&b" a"[..], b"a ", b"\xc3\xa9", b"a\rb", b"=?base64?!?=", b"=?base64?YQ?=", b"=?base64?/w==?="] {
            let error = decode_value(raw).unwrap_err();
            assert!(matches!(error.problem, HeaderProblem::Malformed { .. }), "{error}");
        }
        assert_eq!(decode_value(b"=?base64??=").unwrap(), "");
    }

    const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"été","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;

    fn check_with(body: &'static str, headers: &[(&str, &'static str)]) -> Result<(), HeaderError> {
        let envelope = Envelope::parse(Bytes::from_static(body.as_bytes())).unwrap();
        let lookup = |name: &str| {
            headers.iter().filter(|(header, _)| *header == name).map(|(_, value)| value.as_bytes()).collect()
        };
        check(lookup, &envelope)
    }

    const VERSION: (&str, &str) = (PROTOCOL_VERSION, "2026-07-28");
    const TOOLS_CALL: (&str, &str) = (METHOD, "tools/call");
    const TOOL: (&str, &str) = (NAME, "=?base64?w6l0w6k=?=");

    #[test]
    fn headers_that_agree_pass() {
        assert_eq!(check_with(CALL, &[VERSION, TOOLS_CALL, TOOL]), Ok(()));
        assert_eq!(check_with(CALL, &[VERSION, TOOLS_CALL, TOOL, ("mcp-param-x", "y")]), Ok(()));
    }

    #[test]
    fn headers_that_disagree_are_named() {
        let check =
            |headers: &[_], expected: &str| assert_eq!(check_with(CALL, headers).unwrap_err().to_string(), expected);
        check(&[TOOLS_CALL, TOOL], "header mcp-protocol-version: missing, expected \"2026-07-28\"");
        check(
            &[(PROTOCOL_VERSION, "2025-11-25"), TOOLS_CALL, TOOL],
            "header mcp-protocol-version: expected \"2026-07-28\", found \"2025-11-25\"",
        );
        check(&[VERSION, TOOL], "header mcp-method: missing, expected \"tools/call\"");
        check(
            &[VERSION, (METHOD, "Tools/call"), TOOL],
            "header mcp-method: expected \"tools/call\", found \"Tools/call\"",
        );
        check(&[VERSION, TOOLS_CALL, TOOLS_CALL, TOOL], "header mcp-method: given more than once");
        check(&[VERSION, TOOLS_CALL], "header mcp-name: missing, expected \"été\"");
        check(&[VERSION, TOOLS_CALL, (NAME, "été")], "header mcp-name: malformed value \"été\"");
        let long: &'static str = "x".repeat(200).leak();
        let error = check_with(CALL, &[VERSION, TOOLS_CALL, (NAME, long)]).unwrap_err().to_string();
        assert!(error.len() < 200, "{error}");
    }

    #[test]
    fn what_the_body_lacks_must_not_be_in_a_header() {
        let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#;
        assert_eq!(
            check_with(body, &[VERSION, TOOLS_CALL]).unwrap_err().to_string(),
            "header mcp-protocol-version: found \"2026-07-28\", but the body has no such value"
        );
        assert!(check_with(body, &[TOOLS_CALL, TOOL]).unwrap_err().to_string().starts_with("header mcp-name: found"));
    }

    #[test]
    fn notifications_may_leave_headers_out() {
        let body = r#"{"jsonrpc":"2.0","method":"notifications/x"}"#;
        assert_eq!(check_with(body, &[]), Ok(()));
        assert_eq!(check_with(body, &[VERSION, (METHOD, "notifications/x")]), Ok(()));
        assert!(check_with(body, &[(METHOD, "other")]).is_err());
    }

    #[test]
    fn names_by_method() {
        assert_eq!(required_name("tools/call", br#"{"name":"a\u0062"}"#).unwrap(), "ab");
        assert_eq!(required_name("resources/read", br#"{"uri":"u:1"}"#).unwrap(), "u:1");
        assert_eq!(required_name("tasks/get", br#"{"taskId":"t"}"#).unwrap(), "t");
        assert_eq!(required_name("tools/call", br#"{"name":1}"#), None);
        assert_eq!(required_name("tools/list", br#"{"name":"a"}"#), None);
    }
}
