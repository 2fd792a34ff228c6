//! JSON-RPC message, parsed just far enough to route it.

use std::borrow::Cow;

use bytes::Bytes;

use crate::id::{self, RawId};
use crate::json;
use crate::limits::Limits;
use crate::meta;
use crate::method;
use crate::outline::{Outline, OutlineBuilder, Owner};
use crate::parts::{EnvelopeMember, Parts};
use crate::scan::ScanError;
use crate::scanner;
use crate::span::Span;

pub use crate::outline::{InnerMember, InnerMembers};
pub use crate::rejected_message::{EnvelopeError, RejectedMessage};

/// Kind of a message, derived from its members.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Kind {
    /// Message with a method and an id.
    Request,
    /// Message with a method and no id.
    Notification,
    /// Message with an id and a result.
    Response,
    /// Message with an error, and with an id unless the request's could not be read.
    Error,
}

/// Message with the positions of its parts. The bytes are neither copied nor changed. Params and results are skipped by
/// structure, and only the strict scan validates them.
#[derive(Clone, Debug)]
pub struct Envelope {
    bytes: Bytes,
    kind: Kind,
    /// Boxed, because messages are passed on more often than they are parsed.
    inside: Box<EnvelopeIndex>,
}

#[derive(Clone, Default, Debug)]
struct EnvelopeIndex {
    parts: Parts,
    outline: Outline,
    /// Method, if any revision has it or it was written with escapes.
    method: Option<Cow<'static, str>>,
}

/// Reason why a message was rejected.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// Violation of the strict rules.
    #[error("{0}")]
    Scan(#[from] ScanError),
    /// Valid JSON, but not a JSON-RPC message.
    #[error("{0}")]
    Message(#[from] RejectedMessage),
}

impl Envelope {
    /// Parses a message in one pass.
    ///
    /// # Errors
    /// If the bytes are not one JSON object, or the object is not a JSON-RPC 2.0 message.
    pub fn parse(bytes: Bytes) -> Result<Self, RejectedMessage> {
        let parts = Parts::find(&bytes)?;
        Self::of(bytes, Box::new(EnvelopeIndex { parts, ..EnvelopeIndex::default() }))
    }

    /// Parses a message and checks it by the rules of the strict [`scan`](crate::scan()), in the same pass. Errors of
    /// the scan take precedence over those of [`Envelope::parse`].
    ///
    /// # Errors
    /// If the message violates the strict rules or is not valid JSON-RPC.
    pub fn read(bytes: Bytes, limits: &Limits) -> Result<Self, Refusal> {
        let mut inside = Box::<EnvelopeIndex>::default();
        scanner::run(&bytes, limits, &mut OutlineBuilder::new(&mut inside.parts, &mut inside.outline))?;
        if bytes.get(json::skip_whitespace(&bytes, 0)) != Some(&b'{') {
            return Ok(Self::parse(bytes)?);
        }
        inside.outline.checked = Some(*limits);
        Ok(Self::of(bytes, inside)?)
    }

    /// Parses a message like [`Envelope::read`] if it conforms to the strict rules, and otherwise like
    /// [`Envelope::parse`]. [`Envelope::holds`] tells which of them applied.
    ///
    /// # Errors
    /// The errors of [`Envelope::parse`].
    pub fn look(bytes: Bytes, limits: &Limits) -> Result<Self, RejectedMessage> {
        match Self::read(bytes.clone(), limits) {
            Ok(message) => Ok(message),
            Err(Refusal::Message(rejected)) => Err(rejected),
            Err(Refusal::Scan(_)) => Self::parse(bytes),
        }
    }

    fn of(bytes: Bytes, mut inside: Box<EnvelopeIndex>) -> Result<Self, RejectedMessage> {
        let reject = |error| RejectedMessage { error, id: inside.parts.answerable_id(&bytes) };
        let kind = inside.parts.kind(&bytes).map_err(reject)?;
        if let Some(span) = inside.parts.get(EnvelopeMember::Method) {
            inside.method = match method::intern_token(span.of(&bytes)) {
                Some(known) => Some(Cow::Borrowed(known)),
                None => match json::string(span.of(&bytes)) {
                    None => return Err(reject(EnvelopeError::InvalidMethod)),
                    Some(Cow::Owned(name)) => Some(method::intern(&name).map_or(Cow::Owned(name), Cow::Borrowed)),
                    Some(Cow::Borrowed(_)) => None,
                },
            };
        }
        Ok(Self { bytes, kind, inside })
    }

    /// Returns `true` if the message was checked against these limits when it was parsed.
    #[must_use]
    pub fn holds(&self, limits: &Limits) -> bool {
        self.inside.outline.checked.as_ref() == Some(limits)
    }

    /// Iterates over the members of the params object. Empty if the params are not an object.
    #[must_use]
    pub fn params_members(&self) -> InnerMembers<'_> {
        self.inside.outline.members(Owner::Params, &self.bytes, self.params_span())
    }

    /// Iterates over the members of the result object. Empty if the result is not an object.
    #[must_use]
    pub fn result_members(&self) -> InnerMembers<'_> {
        self.inside.outline.members(Owner::Result, &self.bytes, self.result_span())
    }

    /// Iterates over the members of `_meta` in the params.
    #[must_use]
    pub fn params_meta(&self) -> InnerMembers<'_> {
        let object = || self.param(meta::META);
        self.inside.outline.members(Owner::ParamsMeta, &self.bytes, self.unless_noted(object))
    }

    /// Iterates over the members of `_meta` in the result.
    #[must_use]
    pub fn result_meta(&self) -> InnerMembers<'_> {
        let object = || self.result_member(meta::META);
        self.inside.outline.members(Owner::ResultMeta, &self.bytes, self.unless_noted(object))
    }

    /// Returns the span of a param's value.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Span> {
        self.inside.outline.find(Owner::Params, &self.bytes, self.params_span(), name)
    }

    /// Returns the span of the value of a result member.
    #[must_use]
    pub fn result_member(&self, name: &str) -> Option<Span> {
        self.inside.outline.find(Owner::Result, &self.bytes, self.result_span(), name)
    }

    /// Returns the span of the value of a `_meta` member in the params.
    #[must_use]
    pub fn param_meta(&self, name: &str) -> Option<Span> {
        let object = || self.param(meta::META);
        self.inside.outline.find(Owner::ParamsMeta, &self.bytes, self.unless_noted(object), name)
    }

    fn unless_noted(&self, find: impl FnOnce() -> Option<Span>) -> Option<Span> {
        if self.inside.outline.is_whole() { None } else { find() }
    }

    /// Returns the message as received.
    #[must_use]
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// Returns the message as received, consuming the envelope.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// Returns the kind of the message.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the id, sharing the message's buffer. An error response may have the id `null`, or none.
    #[must_use]
    pub fn id(&self) -> Option<RawId> {
        self.inside.parts.get(EnvelopeMember::Id).map(|span| RawId::from_token(self.bytes.slice(span.range())))
    }

    /// Returns the span of the id.
    #[must_use]
    pub fn id_span(&self) -> Option<Span> {
        self.inside.parts.get(EnvelopeMember::Id)
    }

    /// Returns the method of a request or notification.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        if let Some(method) = &self.inside.method {
            return Some(method);
        }
        let [b'"', name @ .., b'"'] = self.inside.parts.get(EnvelopeMember::Method)?.of(&self.bytes) else {
            return None;
        };
        std::str::from_utf8(name).ok()
    }

    /// Returns the method as a static string, if any revision has it.
    #[must_use]
    pub fn known_method(&self) -> Option<&'static str> {
        match self.inside.method {
            Some(Cow::Borrowed(known)) => Some(known),
            _ => None,
        }
    }

    /// Returns the raw token of the id.
    #[must_use]
    pub fn id_token(&self) -> Option<&[u8]> {
        self.inside.parts.get(EnvelopeMember::Id).map(|span| span.of(&self.bytes))
    }

    /// Returns the id if it is a plain unsigned integer.
    #[must_use]
    pub fn id_number(&self) -> Option<u64> {
        self.id_token().and_then(id::plain_number)
    }

    /// Returns the span of the method, including quotes.
    #[must_use]
    pub fn method_span(&self) -> Option<Span> {
        self.inside.parts.get(EnvelopeMember::Method)
    }

    /// Returns the raw params.
    #[must_use]
    pub fn params(&self) -> Option<&[u8]> {
        self.inside.parts.get(EnvelopeMember::Params).map(|span| span.of(&self.bytes))
    }

    /// Returns the span of the params.
    #[must_use]
    pub fn params_span(&self) -> Option<Span> {
        self.inside.parts.get(EnvelopeMember::Params)
    }

    /// Returns the raw result.
    #[must_use]
    pub fn result(&self) -> Option<&[u8]> {
        self.inside.parts.get(EnvelopeMember::Result).map(|span| span.of(&self.bytes))
    }

    /// Returns the span of the result.
    #[must_use]
    pub fn result_span(&self) -> Option<Span> {
        self.inside.parts.get(EnvelopeMember::Result)
    }

    /// Returns the raw error object.
    #[must_use]
    pub fn error(&self) -> Option<&[u8]> {
        self.inside.parts.get(EnvelopeMember::Error).map(|span| span.of(&self.bytes))
    }

    /// Returns the span of the error object.
    #[must_use]
    pub fn error_span(&self) -> Option<Span> {
        self.inside.parts.get(EnvelopeMember::Error)
    }

    /// Returns the span of the whole object, without surrounding whitespace.
    #[must_use]
    pub fn object_span(&self) -> Span {
        let start = json::skip_whitespace(&self.bytes, 0);
        let end = self.bytes.iter().rposition(|&byte| byte == b'}').map_or(start, |last| last + 1);
        Span::new(start, end)
    }

    /// Returns the message with another id, keeping every other byte. A message without an id gets one as its first
    /// member.
    #[must_use]
    pub fn with_id(&self, token: &[u8]) -> Bytes {
        if let Some(id) = self.inside.parts.get(EnvelopeMember::Id) {
            return join3(&self.bytes[..id.start as usize], &[token], &self.bytes[id.end as usize..]);
        }
        let inside = json::skip_whitespace(&self.bytes, 0) + 1;
        join3(&self.bytes[..inside], &[b"\"id\":", token, b","], &self.bytes[inside..])
    }
}

/// Joins head, middle and tail in one allocation of the exact size.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Envelope, RejectedMessage> {
        Envelope::parse(Bytes::copy_from_slice(text.as_bytes()))
    }

    fn refused(text: &str) -> (EnvelopeError, Option<String>) {
        let rejected = parse(text).unwrap_err();
        (rejected.error, rejected.id.map(|id| id.to_string()))
    }

    /// Proves S-3.
    #[test]
    fn tells_the_four_kinds() {
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

    /// Proves S-5, S-52 and N-28.
    #[test]
    fn keeps_the_bytes_and_borrows_from_them() {
        let text = "{\"jsonrpc\":\"2.0\",\n \"id\": 1, \"x\":[], \"method\":\"m\"}";
        let bytes = Bytes::from(text);
        let envelope = Envelope::parse(bytes.clone()).unwrap();
        assert_eq!(envelope.bytes().as_ptr(), bytes.as_ptr());
        assert_eq!(envelope.id_span().unwrap().of(&bytes), b"1");
        assert_eq!(envelope.method_span().unwrap().of(&bytes), b"\"m\"");
        assert_eq!(envelope.object_span(), Span::new(0, text.len()));
        assert_eq!(envelope.into_bytes(), text);
    }

    /// Proves N-36.
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

    /// Proves S-2 and S-6.
    #[test]
    fn refuses_what_is_not_json_rpc() {
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

    /// Proves S-66 and N-23.
    #[test]
    fn refuses_what_is_not_json_without_an_id() {
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

    fn read(text: &str) -> Result<Envelope, Refusal> {
        Envelope::read(Bytes::copy_from_slice(text.as_bytes()), &Limits::default())
    }

    #[test]
    fn one_pass_finds_the_members_inside() {
        let text = r#" {"params" : {"_meta":{"a":1,"\u0062":[2]},"x":[{"_meta":{"no":1}}],"name":"n"},"id":1,
            "jsonrpc":"2.0","other":{"name":1},"method":"tools\u002fcall"} "#;
        let message = read(text).unwrap();
        let text = |span: Option<Span>| span.map(|span| &text[span.range()]);
        assert_eq!((message.kind(), message.method()), (Kind::Request, Some("tools/call")));
        assert_eq!(text(message.param("name")), Some("\"n\""));
        assert_eq!(text(message.param_meta("a")), Some("1"));
        assert_eq!(text(message.param_meta("b")), Some("[2]"));
        assert_eq!((message.param_meta("no"), message.param("other")), (None, None));
        assert_eq!(message.params_members().count(), 3);
        let answer =
            read(r#"{"jsonrpc":"2.0","id":1,"params":[{"_meta":{}}],"result":{"isError":true,"_meta":{"t":0}}}"#);
        let answer = answer.unwrap();
        assert!(answer.result_member("isError").is_some() && answer.result_meta().count() == 1);
        assert_eq!((answer.params_members().count(), answer.params_meta().count()), (0, 0));
    }

    #[test]
    fn a_message_with_more_members_than_are_noted_is_walked() {
        let many: String = (0..40).map(|n| format!("\"k{n}\":{n},")).collect();
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{{many}"_meta":{{"last":7}}}}}}"#);
        let message = read(&text).unwrap();
        assert_eq!(message.params_members().count(), 41);
        assert_eq!(message.param_meta("last").map(|span| &text[span.range()]), Some("7"));
        assert!(message.holds(&Limits::default()));
    }

    #[test]
    fn one_pass_refuses_in_the_words_of_the_scan_first() {
        let code = |text: &str| match read(text).unwrap_err() {
            Refusal::Scan(error) => error.to_string(),
            Refusal::Message(rejected) => rejected.to_string(),
        };
        assert_eq!(code(r#"{"id":1,"id":2}"#), "duplicate key at byte 8");
        assert_eq!(code("{\"id\":\"\u{1}\"}"), "control character in a string at byte 7");
        assert_eq!(code(r#"{"id":1}"#), "member \"jsonrpc\" is missing");
        assert_eq!(code("[1]"), "a batch is not accepted here");
        assert_eq!(code("7"), "a message must be an object");
    }
}
