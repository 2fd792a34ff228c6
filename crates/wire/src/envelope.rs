//! One JSON-RPC message, read just far enough to route it.

use bytes::Bytes;

use crate::id::RawId;
use crate::json::{self, Member};
use crate::number;
use crate::span::Span;

pub use crate::rejected::{EnvelopeError, Rejected};

/// What a message is, told from its members.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// A method and an id.
    Request,
    /// A method and no id.
    Notification,
    /// An id and a result.
    Response,
    /// An error, with an id unless the request's could not be read.
    Error,
}

/// A message and where its parts are. The bytes are neither copied nor changed; params and results are skipped by
/// structure, and whether they are valid JSON is for the strict scan to say.
#[derive(Clone, Debug)]
pub struct Envelope {
    bytes: Bytes,
    kind: Kind,
    parts: Parts,
    /// The method, decoded, when it was written with escapes.
    decoded: Option<Box<str>>,
}

#[derive(Copy, Clone, Default, Debug)]
struct Parts {
    version: Option<Span>,
    id: Option<Span>,
    method: Option<Span>,
    params: Option<Span>,
    result: Option<Span>,
    error: Option<Span>,
}

impl Envelope {
    /// Reads one message in one pass.
    ///
    /// # Errors
    /// When the bytes are not one JSON object, or the object is not a JSON-RPC 2.0 message.
    pub fn parse(bytes: Bytes) -> Result<Self, Rejected> {
        let parts = Parts::find(&bytes)?;
        let reject = |error| Rejected { error, id: parts.answerable_id(&bytes) };
        let kind = parts.kind(&bytes).map_err(reject)?;
        let decoded = match parts.method {
            None => None,
            Some(span) => match json::string(span.of(&bytes)) {
                None => return Err(reject(EnvelopeError::InvalidMethod)),
                Some(std::borrow::Cow::Borrowed(_)) => None,
                Some(std::borrow::Cow::Owned(method)) => Some(method.into_boxed_str()),
            },
        };
        Ok(Self { bytes, kind, parts, decoded })
    }

    /// The whole message as it came.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// The whole message as it came.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// What the message is.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The id, sharing the message's buffer. An error response may carry the id `null`, or none.
    #[must_use]
    pub fn id(&self) -> Option<RawId> {
        self.parts.id.map(|span| RawId::from_token(self.bytes.slice(span.range())))
    }

    /// Where the id is.
    #[must_use]
    pub fn id_span(&self) -> Option<Span> {
        self.parts.id
    }

    /// The method of a request or notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        if let Some(decoded) = &self.decoded {
            return Some(decoded);
        }
        let [b'"', name @ .., b'"'] = self.parts.method?.of(&self.bytes) else {
            return None;
        };
        std::str::from_utf8(name).ok()
    }

    /// Where the method is, with its quotes.
    #[must_use]
    pub fn method_span(&self) -> Option<Span> {
        self.parts.method
    }

    /// The raw params.
    #[must_use]
    pub fn params(&self) -> Option<&[u8]> {
        self.parts.params.map(|span| span.of(&self.bytes))
    }

    /// Where the params are.
    #[must_use]
    pub fn params_span(&self) -> Option<Span> {
        self.parts.params
    }

    /// The raw result.
    #[must_use]
    pub fn result(&self) -> Option<&[u8]> {
        self.parts.result.map(|span| span.of(&self.bytes))
    }

    /// Where the result is.
    #[must_use]
    pub fn result_span(&self) -> Option<Span> {
        self.parts.result
    }

    /// The raw error object.
    #[must_use]
    pub fn error(&self) -> Option<&[u8]> {
        self.parts.error.map(|span| span.of(&self.bytes))
    }

    /// Where the error object is.
    #[must_use]
    pub fn error_span(&self) -> Option<Span> {
        self.parts.error
    }

    /// Where the whole object is, without whitespace around it.
    #[must_use]
    pub fn object_span(&self) -> Span {
        let start = json::skip_whitespace(&self.bytes, 0);
        let end = self.bytes.iter().rposition(|&byte| byte == b'}').map_or(start, |last| last + 1);
        Span::new(start, end)
    }

    /// The message with another id; every other byte is kept. A message without an id gets one as its first member.
    #[must_use]
    pub fn with_id(&self, token: &[u8]) -> Bytes {
        if let Some(id) = self.parts.id {
            return join3(&self.bytes[..id.start as usize], &[token], &self.bytes[id.end as usize..]);
        }
        let inside = json::skip_whitespace(&self.bytes, 0) + 1;
        join3(&self.bytes[..inside], &[b"\"id\":", token, b","], &self.bytes[inside..])
    }
}

/// Head, middle and tail in one allocation of the exact size.
fn join3(head: &[u8], middle: &[&[u8]], tail: &[u8]) -> Bytes {
    let length = head.len() + middle.iter().map(|part| part.len()).sum::<usize>() + tail.len();
    let mut out = Vec::with_capacity(length);
    out.extend_from_slice(head);
    for part in middle {
        out.extend_from_slice(part);
    }
    out.extend_from_slice(tail);
    Bytes::from(out)
}

impl Parts {
    /// Finds the members of the envelope. Checks the JSON structure of the top level, not what the members hold.
    fn find(bytes: &Bytes) -> Result<Self, Rejected> {
        if u32::try_from(bytes.len()).is_err() {
            return Err(EnvelopeError::TooLarge.into());
        }
        let start = json::skip_whitespace(bytes, 0);
        if bytes.get(start) != Some(&b'{') {
            return Err(not_an_object(bytes, start).into());
        }
        let mut parts = Self::default();
        let mut duplicate = None;
        let mut members = json::members(bytes);
        while let Some(member) = members.step().map_err(EnvelopeError::from)? {
            if let Err(name) = parts.note(bytes, member) {
                duplicate.get_or_insert(name);
            }
        }
        let end = json::skip_whitespace(bytes, members.end().unwrap_or(bytes.len()));
        if end != bytes.len() {
            return Err(EnvelopeError::NotJson { at: end, expected: "nothing after the message" }.into());
        }
        match duplicate {
            // Of two ids neither can be trusted to be the one the sender waits for.
            Some("id") => Err(EnvelopeError::DuplicateMember("id").into()),
            Some(name) => Err(Rejected { error: EnvelopeError::DuplicateMember(name), id: parts.answerable_id(bytes) }),
            None => Ok(parts),
        }
    }

    /// Remembers a member of the envelope; others are skipped. Gives the name of one that was there before.
    #[inline]
    fn note(&mut self, bytes: &[u8], member: Member) -> Result<(), &'static str> {
        let token = member.key.of(bytes);
        let [b'"', name @ .., b'"'] = token else {
            return Ok(());
        };
        let decoded;
        let name = if memchr::memchr(b'\\', name).is_none() {
            name
        } else {
            decoded = json::string(token).unwrap_or_default();
            decoded.as_bytes()
        };
        let (slot, name) = match name {
            b"jsonrpc" => (&mut self.version, "jsonrpc"),
            b"id" => (&mut self.id, "id"),
            b"method" => (&mut self.method, "method"),
            b"params" => (&mut self.params, "params"),
            b"result" => (&mut self.result, "result"),
            b"error" => (&mut self.error, "error"),
            _ => return Ok(()),
        };
        match slot.replace(member.value) {
            None => Ok(()),
            Some(_) => Err(name),
        }
    }

    fn kind(&self, bytes: &[u8]) -> Result<Kind, EnvelopeError> {
        let version = self.version.ok_or(EnvelopeError::MissingVersion)?;
        if !json::key_eq(version.of(bytes), "2.0") {
            return Err(EnvelopeError::WrongVersion);
        }
        let id = self.id.map(|span| IdShape::of(span.of(bytes)));
        if id == Some(IdShape::Invalid) {
            return Err(EnvelopeError::InvalidId);
        }
        if self.params.is_some_and(|span| !matches!(span.of(bytes).first(), Some(b'{' | b'['))) {
            return Err(EnvelopeError::InvalidParams);
        }
        match (self.method, self.result, self.error) {
            (Some(_), None, None) => match id {
                None => Ok(Kind::Notification),
                Some(IdShape::Usable) => Ok(Kind::Request),
                // JSON-RPC tolerates null here, MCP forbids it.
                Some(_) => Err(EnvelopeError::InvalidId),
            },
            (None, Some(_), None) if id == Some(IdShape::Usable) => Ok(Kind::Response),
            (None, Some(_), None) => Err(EnvelopeError::InvalidId),
            (None, None, Some(error)) if error.of(bytes).first() == Some(&b'{') => Ok(Kind::Error),
            (None, None, Some(_)) => Err(EnvelopeError::InvalidError),
            (None, None, None) => Err(EnvelopeError::Empty),
            _ => Err(EnvelopeError::Ambiguous),
        }
    }

    /// The id, if an answer can be addressed to it.
    fn answerable_id(&self, bytes: &Bytes) -> Option<RawId> {
        let span = self.id?;
        (IdShape::of(span.of(bytes)) == IdShape::Usable).then(|| RawId::from_token(bytes.slice(span.range())))
    }
}

#[derive(Copy, Clone, PartialEq, Eq)]
enum IdShape {
    Usable,
    Null,
    Invalid,
}

impl IdShape {
    fn of(token: &[u8]) -> Self {
        match token.first() {
            Some(b'"') => Self::Usable,
            _ if token == b"null" => Self::Null,
            _ if number::length(token) == Some(token.len()) => Self::Usable,
            _ => Self::Invalid,
        }
    }
}

/// What to say about bytes that do not begin with an opening curly bracket.
fn not_an_object(bytes: &[u8], start: usize) -> EnvelopeError {
    let Some(end) = json::skip_value(bytes, start) else {
        return EnvelopeError::NotJson { at: start, expected: "an object" };
    };
    let rest = json::skip_whitespace(bytes, end);
    if rest != bytes.len() {
        return EnvelopeError::NotJson { at: rest, expected: "nothing after the message" };
    }
    match bytes.get(start..end) {
        Some([b'[', ..]) => EnvelopeError::Batch,
        Some(b"true" | b"false" | b"null" | [b'"', ..]) => EnvelopeError::NotObject,
        Some(token) if number::length(token) == Some(token.len()) => EnvelopeError::NotObject,
        _ => EnvelopeError::NotJson { at: start, expected: "an object" },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Envelope, Rejected> {
        Envelope::parse(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn refused(text: &str) -> (EnvelopeError, Option<String>) {
        let rejected = parse(text).unwrap_err();
        (rejected.error, rejected.id.map(|id| id.to_string()))
    }

    #[test]
    fn s_3_tells_the_four_kinds() {
        let request = parse(r#" {"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"a":[1]}} "#).unwrap();
        assert_eq!(request.kind(), Kind::Request);
        assert_eq!(request.id(), Some(RawId::string("x")));
        assert_eq!(request.method(), Some("tools/call"));
        assert_eq!(request.params(), Some(&br#"{"a":[1]}"#[..]));
        assert_eq!((request.result(), request.error()), (None, None));

        let notification = parse(r#"{"method":"n","jsonrpc":"2.0"}"#).unwrap();
        assert_eq!((notification.kind(), notification.id()), (Kind::Notification, None));

        let response = parse(r#"{"jsonrpc":"2.0","result":null,"id":-1.5}"#).unwrap();
        assert_eq!((response.kind(), response.result()), (Kind::Response, Some(&b"null"[..])));
        assert_eq!(response.id().unwrap().token(), b"-1.5");

        let error = parse(r#"{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":""}}"#).unwrap();
        assert_eq!(error.kind(), Kind::Error);
        assert!(error.id().unwrap().is_null());
        assert_eq!(parse(r#"{"jsonrpc":"2.0","error":{}}"#).unwrap().id(), None);
    }

    #[test]
    fn s_5_keeps_the_bytes_and_borrows_from_them() {
        let text = "{\"jsonrpc\":\"2.0\",\n \"id\": 1, \"x\":[], \"method\":\"m\"}";
        let bytes = Bytes::from(text);
        let envelope = Envelope::parse(bytes.clone()).unwrap();
        assert_eq!(envelope.bytes().as_ptr(), bytes.as_ptr());
        assert_eq!(envelope.id_span().unwrap().of(&bytes), b"1");
        assert_eq!(envelope.method_span().unwrap().of(&bytes), b"\"m\"");
        assert_eq!(envelope.object_span(), Span::new(0, text.len()));
        assert_eq!(envelope.into_bytes(), text);
    }

    #[test]
    fn names_may_be_written_with_escapes() {
        let envelope = parse(r#"{"jsonrpc":"2\u002e0","\u0069d":1,"method":"tools\/call"}"#).unwrap();
        assert_eq!(envelope.method(), Some("tools/call"));
        assert_eq!(envelope.id().unwrap().as_u64(), Some(1));
        assert_eq!(
            refused(r#"{"jsonrpc":"2.0","id":1,"\u0069d":2,"method":"a"}"#).0,
            EnvelopeError::DuplicateMember("id")
        );
    }

    #[test]
    fn s_2_s_6_refuses_what_is_not_json_rpc() {
        use EnvelopeError as E;
        let check = |members: &str, error| {
            assert_eq!(refused(&format!("{{{members}}}")).0, error, "{members}");
        };
        check(r#""id":1,"method":"a""#, E::MissingVersion);
        check(r#""jsonrpc":"1.0","id":1,"method":"a""#, E::WrongVersion);
        check(r#""jsonrpc":2.0,"id":1,"method":"a""#, E::WrongVersion);
        for id in ["null", "true", "{}", "[]", "01", "1x", "-"] {
            check(&format!(r#""jsonrpc":"2.0","id":{id},"method":"a""#), E::InvalidId);
        }
        check(r#""jsonrpc":"2.0","result":1"#, E::InvalidId);
        check(r#""jsonrpc":"2.0","id":null,"result":1"#, E::InvalidId);
        check(r#""jsonrpc":"2.0","id":1,"method":7"#, E::InvalidMethod);
        check(r#""jsonrpc":"2.0","id":1,"method":"\ud800""#, E::InvalidMethod);
        check(r#""jsonrpc":"2.0","id":1,"method":"a","params":7"#, E::InvalidParams);
        check(r#""jsonrpc":"2.0","id":1,"method":"a","params":null"#, E::InvalidParams);
        check(r#""jsonrpc":"2.0","id":1,"error":"x""#, E::InvalidError);
        check(r#""jsonrpc":"2.0","id":1,"method":"a","result":1"#, E::Ambiguous);
        check(r#""jsonrpc":"2.0","id":1,"error":{},"result":1"#, E::Ambiguous);
        check(r#""jsonrpc":"2.0","id":1"#, E::Empty);
        check("", E::MissingVersion);
        check(r#""jsonrpc":"2.0","method":"a","method":"b""#, E::DuplicateMember("method"));
    }

    #[test]
    fn n_23_s_66_refuses_what_is_not_json_without_an_id() {
        for text in [
            "",
            " ",
            "{",
            "}",
            "{]",
            "nul",
            "{\"id\":1",
            "{\"id\":1]",
            "{\"id\":1,}",
            "{\"id\" 1}",
            "{id:1}",
            "{\"id\":1}x",
            "{\"id\":1}{}",
            "{\"a\":[}]}",
            "[1",
            "1 2",
            "\u{feff}{}",
            "{\"id\":\"",
            "{\"id\":}",
            "{\"id\":1 \"a\":2}",
        ] {
            let (error, id) = refused(text);
            assert_eq!((error.code(), id), (-32700, None), "{text}");
        }
        assert_eq!(refused("[{}]").0, EnvelopeError::Batch);
        for text in ["1", "null", "\"{}\"", " true "] {
            assert_eq!(refused(text).0, EnvelopeError::NotObject, "{text}");
        }
    }

    #[test]
    fn a_refusal_can_be_addressed_when_the_id_is_known() {
        assert_eq!(refused(r#"{"jsonrpc":"1.0","id":"x","method":"a"}"#).1.as_deref(), Some("\"x\""));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":5,"method":1}"#).1.as_deref(), Some("5"));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":5,"method":"a","method":"b"}"#).1.as_deref(), Some("5"));
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":5,"id":6,"method":"a"}"#).1, None);
        assert_eq!(refused(r#"{"jsonrpc":"2.0","id":null,"method":"a"}"#).1, None);
    }

    #[test]
    fn another_id_keeps_every_other_byte() {
        let envelope = parse("{ \"jsonrpc\":\"2.0\" ,\"id\": 1 ,\"method\":\"a\" }").unwrap();
        assert_eq!(envelope.with_id(b"\"long\""), "{ \"jsonrpc\":\"2.0\" ,\"id\": \"long\" ,\"method\":\"a\" }");
        let without = parse(" {\"jsonrpc\":\"2.0\",\"method\":\"a\"}").unwrap();
        assert_eq!(without.with_id(b"7"), " {\"id\":7,\"jsonrpc\":\"2.0\",\"method\":\"a\"}");
    }

    #[test]
    fn what_params_hold_is_not_judged_but_must_be_closed() {
        let lax = r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"a":tru,,"b" 01}}"#;
        assert_eq!(parse(lax).unwrap().params(), Some(&br#"{"a":tru,,"b" 01}"#[..]));
        let deep = format!(r#"{{"jsonrpc":"2.0","method":"a","params":{}{}}}"#, "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse(&deep).is_ok());
    }
}
