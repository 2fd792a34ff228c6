//! Locates the members of a JSON-RPC message and classifies it.

use bytes::Bytes;

use crate::envelope::Kind;
use crate::id::RawId;
use crate::json::{self, JsonMember};
use crate::number;
use crate::outline;
use crate::rejected_message::{EnvelopeError, RejectedMessage};
use crate::span::Span;

#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum EnvelopeMember {
    Version,
    Id,
    Method,
    Params,
    Result,
    Error,
}

impl EnvelopeMember {
    /// Returns the member with this name.
    #[inline]
    pub fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"jsonrpc" => Self::Version,
            b"id" => Self::Id,
            b"method" => Self::Method,
            b"params" => Self::Params,
            b"result" => Self::Result,
            b"error" => Self::Error,
            _ => return None,
        })
    }

    fn name(self) -> &'static str {
        match self {
            Self::Version => "jsonrpc",
            Self::Id => "id",
            Self::Method => "method",
            Self::Params => "params",
            Self::Result => "result",
            Self::Error => "error",
        }
    }
}

/// Spans of the envelope members.
#[derive(Copy, Clone, Default, Debug)]
pub(crate) struct Parts([Option<Span>; 6]);

impl Parts {
    /// Locates the envelope members. Checks the JSON structure of the top level, but not the values.
    pub fn find(bytes: &Bytes) -> Result<Self, RejectedMessage> {
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
            if let Err(part) = parts.note(bytes, member) {
                duplicate.get_or_insert(part);
            }
        }
        let end = json::skip_whitespace(bytes, members.end().unwrap_or(bytes.len()));
        if end != bytes.len() {
            return Err(EnvelopeError::NotJson { at: end, expected: "nothing after the message" }.into());
        }
        match duplicate {
            // With two ids, neither is certain to be the one that the sender waits for.
            Some(EnvelopeMember::Id) => Err(EnvelopeError::DuplicateMember("id").into()),
            Some(part) => Err(RejectedMessage {
                error: EnvelopeError::DuplicateMember(part.name()),
                id: parts.answerable_id(bytes),
            }),
            None => Ok(parts),
        }
    }

    /// Returns the span of a member's value.
    #[inline]
    pub fn get(&self, part: EnvelopeMember) -> Option<Span> {
        self.0[part as usize]
    }

    /// Sets the span of a member's value.
    #[inline]
    pub fn set(&mut self, part: EnvelopeMember, value: Span) {
        self.0[part as usize] = Some(value);
    }

    /// Sets the end of a member's value.
    #[inline]
    pub fn end(&mut self, part: EnvelopeMember, at: usize) {
        if let Some(value) = &mut self.0[part as usize] {
            value.end = at as u32;
        }
    }

    /// Records an envelope member and ignores others. Fails with the member if it is a duplicate.
    #[inline]
    fn note(&mut self, bytes: &[u8], member: JsonMember) -> Result<(), EnvelopeMember> {
        let token = member.key.of(bytes);
        let escaped = memchr::memchr(b'\\', token).is_some();
        let Some(part) = outline::name(token, escaped).as_deref().and_then(EnvelopeMember::named) else {
            return Ok(());
        };
        match self.0[part as usize].replace(member.value) {
            None => Ok(()),
            Some(_) => Err(part),
        }
    }

    /// Derives the kind of message from its members.
    pub fn kind(&self, bytes: &[u8]) -> Result<Kind, EnvelopeError> {
        let version = self.get(EnvelopeMember::Version).ok_or(EnvelopeError::MissingVersion)?;
        if version.of(bytes) != b"\"2.0\"" && !json::key_eq(version.of(bytes), "2.0") {
            return Err(EnvelopeError::WrongVersion);
        }
        let id = self.get(EnvelopeMember::Id).map(|span| IdShape::of(span.of(bytes)));
        if id == Some(IdShape::Invalid) {
            return Err(EnvelopeError::InvalidId);
        }
        let first = |span: Span| bytes.get(span.start as usize);
        if self.get(EnvelopeMember::Params).is_some_and(|span| !matches!(first(span), Some(b'{' | b'['))) {
            return Err(EnvelopeError::InvalidParams);
        }
        match (self.get(EnvelopeMember::Method), self.get(EnvelopeMember::Result), self.get(EnvelopeMember::Error)) {
            (Some(_), None, None) => match id {
                None => Ok(Kind::Notification),
                Some(IdShape::Usable) => Ok(Kind::Request),
                // JSON-RPC tolerates null here, MCP forbids it.
                Some(_) => Err(EnvelopeError::InvalidId),
            },
            (None, Some(_), None) if id == Some(IdShape::Usable) => Ok(Kind::Response),
            (None, Some(_), None) => Err(EnvelopeError::InvalidId),
            (None, None, Some(error)) if first(error) == Some(&b'{') => Ok(Kind::Error),
            (None, None, Some(_)) => Err(EnvelopeError::InvalidError),
            (None, None, None) => Err(EnvelopeError::Empty),
            _ => Err(EnvelopeError::Ambiguous),
        }
    }

    /// Returns the id if an answer can be addressed to it.
    pub fn answerable_id(&self, bytes: &Bytes) -> Option<RawId> {
        let span = self.get(EnvelopeMember::Id)?;
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
            _ if number::short_integer(token) == Some(token.len()) => Self::Usable,
            _ if token == b"null" => Self::Null,
            _ if number::length(token) == Some(token.len()) => Self::Usable,
            _ => Self::Invalid,
        }
    }
}

/// Explains why bytes that do not start with `{` are not a message.
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
