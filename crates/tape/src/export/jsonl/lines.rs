//! JSON form of an entry.

use super::around::{BackendLine, ClientLine, HttpLine, RefusedLine, RulesLine, SessionLine, carried};
use super::jsonl_error::JsonlError;
use crate::strict_json;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, DecisionEntry, Entry, FinishedEntry, Gap, LostEntry, MessageEntry, MessageKind,
};
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

#[derive(Serialize, Deserialize)]
pub(super) struct Line {
    seq: u64,
    at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exchange: Option<u64>,
    principal: String,
    /// Hash or signature over the entry, in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
    #[serde(flatten)]
    what: What,
}

/// Names of the members that tell what an entry is, as [`What`] has them.
const KINDS: [&str; 12] = [
    "session_began",
    "session_ended",
    "message",
    "decision",
    "decisions",
    "finished",
    "gap",
    "client",
    "backend",
    "rules",
    "lost",
    "refused",
];

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    SessionBegan(SessionLine),
    SessionEnded(bool),
    Message(MessageLine),
    /// A single decision, as older files have it.
    Decision(DecisionLine),
    Decisions(Vec<DecisionLine>),
    Finished(FinishedLine),
    Gap {
        facts: u64,
        reason: String,
    },
    Client(ClientLine),
    Backend(BackendLine),
    Rules(RulesLine),
    Lost {
        number: u64,
        point: String,
        reason: String,
    },
    Refused(RefusedLine),
}

#[derive(Serialize, Deserialize)]
struct MessageLine {
    point: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    method: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error_code: Option<i64>,
    length: u64,
    /// The message, or the middle part that differs from the body it refers to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The same in base64, if it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    like: Option<LikeLine>,
    #[serde(default, skip_serializing_if = "is_default")]
    number: u64,
    #[serde(default, skip_serializing_if = "is_default")]
    own: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    again: Option<NonZeroU64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    lost: Option<String>,
    #[serde(default, skip_serializing_if = "is_default")]
    redacted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event_id: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    http: Option<HttpLine>,
}

#[derive(Serialize, Deserialize)]
struct LikeLine {
    seq: u64,
    prefix: u64,
    suffix: u64,
}

#[derive(Serialize, Deserialize)]
struct DecisionLine {
    by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    phase: String,
    verdict: String,
    detail: String,
    conditions: Vec<(String, bool)>,
    inputs: Vec<(String, String)>,
    #[serde(default, skip_serializing_if = "is_default")]
    redacted: bool,
}

#[derive(Serialize, Deserialize)]
struct FinishedLine {
    method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    subject: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    backend: Option<String>,
    outcome: String,
    took: u64,
    bytes_in: u64,
    bytes_out: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    operation: Option<u64>,
    /// Omitted for the first round.
    #[serde(default = "first", skip_serializing_if = "is_first")]
    round: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<u64>,
    #[serde(default, skip_serializing_if = "is_default")]
    redacted: bool,
}

fn first() -> u32 {
    1
}

fn is_first(round: &u32) -> bool {
    *round == 1
}

impl DecisionLine {
    fn new(decision: &DecisionEntry) -> Self {
        Self {
            by: decision.by.to_string(),
            rule: decision.rule.as_deref().map(str::to_owned),
            phase: decision.phase.to_string(),
            verdict: decision.verdict.to_string(),
            detail: decision.detail.clone(),
            conditions: decision.conditions.iter().map(|(text, held)| (text.to_string(), *held)).collect(),
            inputs: decision.inputs.iter().map(|(name, text)| (name.to_string(), text.clone())).collect(),
            redacted: decision.redacted,
        }
    }

    fn decision(self) -> DecisionEntry {
        DecisionEntry {
            by: self.by.into(),
            rule: self.rule.map(Arc::from),
            phase: self.phase.into(),
            verdict: self.verdict.into(),
            detail: self.detail,
            conditions: self.conditions.into_iter().map(|(text, held)| (text.into(), held)).collect(),
            inputs: self.inputs.into_iter().map(|(name, text)| (name.into(), text)).collect(),
            redacted: self.redacted,
        }
    }
}

impl FinishedLine {
    fn new(finished: &FinishedEntry) -> Self {
        Self {
            method: finished.method.to_string(),
            subject: finished.subject.as_deref().map(str::to_owned),
            backend: finished.backend.as_deref().map(str::to_owned),
            outcome: finished.outcome.to_string(),
            took: finished.took,
            bytes_in: finished.bytes_in,
            bytes_out: finished.bytes_out,
            operation: finished.operation,
            round: finished.round,
            client: finished.client,
            redacted: finished.redacted,
        }
    }

    fn finished(self) -> FinishedEntry {
        FinishedEntry {
            method: self.method.into(),
            subject: self.subject.map(Arc::from),
            backend: self.backend.map(Arc::from),
            outcome: self.outcome.into(),
            took: self.took,
            bytes_in: self.bytes_in,
            bytes_out: self.bytes_out,
            operation: self.operation,
            round: self.round,
            client: self.client,
            redacted: self.redacted,
        }
    }
}

impl Line {
    /// Reads a line. Refuses doubled members and entries of two kinds: other readers could show the part that is left
    /// out here.
    pub(super) fn read(text: &[u8]) -> Result<Self, JsonlError> {
        let names = strict_json::check(text)?;
        one_kind(|kind| names.contains(kind))?;
        Ok(serde_json::from_slice(text)?)
    }

    /// Reads a line from a JSON object without doubled members.
    pub(super) fn of_value(value: serde_json::Value) -> Result<Self, JsonlError> {
        one_kind(|kind| value.get(kind).is_some())?;
        Ok(serde_json::from_value(value)?)
    }

    pub(super) fn new(entry: &Entry) -> Self {
        let what = match &entry.content {
            Content::Session(info) => What::SessionBegan(SessionLine::new(info)),
            Content::SessionEnded => What::SessionEnded(true),
            Content::Message(message) => What::Message(MessageLine::new(message)),
            Content::Decisions(list) => {
                What::Decisions(list.iter().map(|decision| DecisionLine::new(decision)).collect())
            }
            Content::Finished(finished) => What::Finished(FinishedLine::new(finished)),
            Content::Gap(gap) => What::Gap { facts: gap.facts, reason: gap.reason.clone() },
            Content::Client(client) => What::Client(ClientLine::new(client)),
            Content::Backend(seen) => What::Backend(BackendLine::new(seen)),
            Content::Rules(rules) => What::Rules(RulesLine::new(rules)),
            Content::Lost(lost) => What::Lost {
                number: lost.number,
                point: lost.point.words().to_owned(),
                reason: lost.reason.to_string(),
            },
            Content::Refused(refused) => What::Refused(RefusedLine::new(refused)),
        };
        Self {
            seq: entry.seq,
            at: entry.at,
            session: entry.session,
            exchange: entry.exchange,
            principal: entry.principal.to_string(),
            seal: sealed(entry.seal.as_deref()),
            what,
        }
    }

    pub(super) fn entry(self) -> Result<Entry, JsonlError> {
        let content = match self.what {
            What::SessionBegan(line) => Content::Session(line.info()),
            What::SessionEnded(_) => Content::SessionEnded,
            What::Message(line) => Content::Message(line.message()?),
            What::Decision(line) => Content::Decisions(vec![Arc::new(line.decision())]),
            What::Decisions(lines) => {
                Content::Decisions(lines.into_iter().map(|line| Arc::new(line.decision())).collect())
            }
            What::Finished(line) => Content::Finished(line.finished()),
            What::Gap { facts, reason } => Content::Gap(Gap { facts, reason }),
            What::Client(line) => Content::Client(line.client()),
            What::Backend(line) => Content::Backend(Box::new(line.backend()?)),
            What::Rules(line) => Content::Rules(line.rules()),
            What::Lost { number, point, reason } => {
                Content::Lost(LostEntry { number, point: point_of(&point)?, reason: reason.into() })
            }
            What::Refused(line) => Content::Refused(line.refused()),
        };
        let (session, exchange, seal) = (self.session, self.exchange, unsealed(self.seal)?);
        Ok(Entry { session, exchange, seal, ..Entry::new(self.seq, self.at, self.principal.into(), content) })
    }
}

impl MessageLine {
    fn new(message: &MessageEntry) -> Self {
        let (bytes, like) = match &message.body {
            Body::Left => (None, None),
            Body::Whole(bytes) => (Some(bytes), None),
            Body::Like { seq, prefix, suffix, middle } => {
                (Some(middle), Some(LikeLine { seq: *seq, prefix: *prefix, suffix: *suffix }))
            }
        };
        let text = bytes.map(|bytes| std::str::from_utf8(bytes).map_err(|_| STANDARD.encode(bytes)));
        let (text, base64) = match text {
            None => (None, None),
            Some(Ok(text)) => (Some(text.to_owned()), None),
            Some(Err(base64)) => (None, Some(base64)),
        };
        let carried = message.carried.as_deref();
        Self {
            point: message.point.words().to_owned(),
            kind: message.kind.word().to_owned(),
            method: message.method.as_deref().map(str::to_owned),
            subject: message.subject.as_deref().map(str::to_owned),
            backend: message.backend.as_deref().map(str::to_owned),
            error_code: message.error_code,
            length: message.length,
            text,
            base64,
            like,
            number: message.number,
            own: message.own,
            again: message.again,
            lost: message.lost.as_deref().map(str::to_owned),
            redacted: message.redacted,
            event_id: carried.and_then(|carried| carried.event_id.as_deref()).map(str::to_owned),
            http: carried.and_then(|carried| carried.http.as_ref()).map(HttpLine::new),
        }
    }

    fn message(self) -> Result<MessageEntry, JsonlError> {
        let bytes = match (self.text, self.base64) {
            (Some(text), _) => Some(Bytes::from(text)),
            (None, Some(base64)) => {
                Some(Bytes::from(STANDARD.decode(base64).map_err(|_| JsonlError::Base64("base64"))?))
            }
            (None, None) => None,
        };
        let body = match (bytes, self.like) {
            (None, _) => Body::Left,
            (Some(bytes), None) => Body::Whole(bytes),
            (Some(middle), Some(LikeLine { seq, prefix, suffix })) => Body::Like { seq, prefix, suffix, middle },
        };
        Ok(MessageEntry {
            point: point_of(&self.point)?,
            kind: MessageKind::of_word(&self.kind).ok_or(JsonlError::Word("kind"))?,
            method: self.method.map(Arc::from),
            subject: self.subject.map(Arc::from),
            backend: self.backend.map(Arc::from),
            error_code: self.error_code,
            length: self.length,
            body,
            number: self.number,
            own: self.own,
            again: self.again,
            lost: self.lost.map(Cow::Owned),
            redacted: self.redacted,
            carried: carried(self.event_id, self.http),
        })
    }
}

/// Checks that an entry with these members is of one kind.
fn one_kind(has: impl Fn(&str) -> bool) -> Result<(), JsonlError> {
    let mut kinds = KINDS.iter().copied().filter(|kind| has(kind));
    match (kinds.next(), kinds.next()) {
        (Some(first), Some(second)) => Err(JsonlError::TwoKinds { first, second }),
        _ => Ok(()),
    }
}

fn point_of(words: &str) -> Result<Point, JsonlError> {
    Point::parse(words).ok_or(JsonlError::Word("point"))
}

/// Returns true if a member is omitted because it has its default value.
pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

pub(super) fn sealed(seal: Option<&[u8]>) -> Option<String> {
    seal.map(|seal| STANDARD.encode(seal))
}

pub(super) fn unsealed(seal: Option<String>) -> Result<Option<Box<[u8]>>, JsonlError> {
    let seal = seal.map(|seal| STANDARD.decode(seal).map_err(|_| JsonlError::Base64("seal"))).transpose()?;
    Ok(seal.map(Vec::into_boxed_slice))
}
