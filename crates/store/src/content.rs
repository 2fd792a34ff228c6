//! Storage of an entry's content: a code for its kind, a few columns, and the rest packed.

use crate::around;
use crate::body_codec::{BodyCodec, EncodedBody};
use crate::pack::{DecodeError, Unpack, put_number, put_optional, put_text};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, FinishedEntry, Gap, MessageEntry, MessageKind};
use std::sync::Arc;

/// Code of the description of a session.
pub const SESSION: u8 = 1;
const SESSION_ENDED: u8 = 2;
const DECISION: u8 = 3;
/// Code of the end of an exchange.
pub const FINISHED: u8 = 4;
/// Code of a gap.
pub const GAP: u8 = 5;
/// Code of a list of decisions. Older stores have single decisions, which are read as lists of one.
const DECISIONS: u8 = 6;
/// Code of a caller without a session.
pub const CLIENT: u8 = 7;
/// Code of the catalog of a backend.
pub const BACKEND: u8 = 8;
/// Code of the rules in force.
pub const RULES: u8 = 9;
const LOST: u8 = 10;
const REFUSED: u8 = 11;
/// First code of messages. A message adds eight for each point, and one for each kind.
pub const MESSAGE: u8 = 16;

pub(crate) const POINTS: [Point; 4] = [Point::ClientIn, Point::BackendOut, Point::BackendIn, Point::ClientOut];

/// Columns of a content that queries can filter by.
#[derive(Copy, Clone, Default, Debug)]
pub struct ContentNames<'a> {
    /// Method of the message or exchange.
    pub method: Option<&'a str>,
    /// Name of a tool or prompt, or a URI.
    pub subject: Option<&'a str>,
    /// Name of the backend.
    pub backend: Option<&'a str>,
    /// Code of a JSON-RPC error.
    pub error_code: Option<i64>,
}

/// Returns the columns that queries can filter by.
pub fn names(content: &Content) -> ContentNames<'_> {
    match content {
        Content::Message(message) => ContentNames {
            method: message.method.as_deref(),
            subject: message.subject.as_deref(),
            backend: message.backend.as_deref(),
            error_code: message.error_code,
        },
        Content::Finished(finished) => ContentNames {
            method: Some(&finished.method),
            subject: finished.subject.as_deref(),
            backend: finished.backend.as_deref(),
            error_code: None,
        },
        Content::Backend(seen) => ContentNames { backend: Some(&seen.backend), ..ContentNames::default() },
        _ => ContentNames::default(),
    }
}

/// Returns the code of a content.
pub fn what(content: &Content) -> u8 {
    match content {
        Content::Session(_) => SESSION,
        Content::SessionEnded => SESSION_ENDED,
        Content::Decisions(_) => DECISIONS,
        Content::Finished(_) => FINISHED,
        Content::Gap(_) => GAP,
        Content::Client(_) => CLIENT,
        Content::Backend(_) => BACKEND,
        Content::Rules(_) => RULES,
        Content::Lost(_) => LOST,
        Content::Refused(_) => REFUSED,
        Content::Message(message) => of_message(message.point, message.kind),
    }
}

/// Returns the code of messages of one kind at one point.
pub fn of_message(point: Point, kind: MessageKind) -> u8 {
    let point = POINTS.iter().position(|known| *known == point).unwrap_or(0);
    let kind = MessageKind::ALL.iter().position(|known| *known == kind).unwrap_or(0);
    MESSAGE + 8 * point as u8 + kind as u8
}

/// Returns the codes of all messages to or from a client, as a list in SQL.
pub fn client_side_codes() -> String {
    let points = [Point::ClientIn, Point::ClientOut];
    let codes = points.iter().flat_map(|point| MessageKind::ALL.map(|kind| of_message(*point, kind).to_string()));
    codes.collect::<Vec<_>>().join(", ")
}

/// Returns true if this is the code of a message.
pub fn is_message(what: u8) -> bool {
    what >= MESSAGE
}

/// Returns the index of the kind in [`MessageKind::ALL`], if this is the code of a message.
pub fn kind_of(what: u8) -> Option<usize> {
    let kind = usize::from(what.checked_sub(MESSAGE)? % 8);
    (kind < MessageKind::ALL.len()).then_some(kind)
}

/// Returns the original length of a message.
pub fn length(content: &Content) -> Option<u64> {
    match content {
        Content::Message(message) => Some(message.length),
        _ => None,
    }
}

/// Packs everything that has no column.
pub fn pack(content: &Content, codec: &mut BodyCodec) -> EncodedBody {
    let mut raw = Vec::new();
    match content {
        Content::Message(message) => return codec.pack(&message.body),
        Content::SessionEnded => return EncodedBody::left(),
        Content::Session(session) => around::pack_session(&mut raw, session),
        Content::Decisions(list) => {
            put_number(&mut raw, list.len() as u64);
            list.iter().for_each(|decision| pack_decision(&mut raw, decision));
            // The indices of redacted decisions come after the list. Older rows have none.
            for (place, _) in list.iter().enumerate().filter(|(_, decision)| decision.redacted) {
                put_number(&mut raw, place as u64);
            }
            // Calls of one kind get the same decisions, so the same list recurs.
            return codec.compress_again(raw);
        }
        Content::Finished(finished) => pack_finished(&mut raw, finished),
        Content::Gap(gap) => {
            put_number(&mut raw, gap.facts);
            put_text(&mut raw, &gap.reason);
        }
        Content::Client(client) => around::pack_client(&mut raw, client),
        Content::Backend(seen) => around::pack_backend(&mut raw, seen),
        Content::Rules(rules) => around::pack_rules(&mut raw, rules),
        Content::Lost(lost) => around::pack_lost(&mut raw, lost),
        Content::Refused(refused) => around::pack_refused(&mut raw, refused),
    }
    codec.compress(&Bytes::from(raw))
}

/// Columns of a row, as read.
#[derive(Default, Debug)]
pub struct Columns {
    /// Code of the content.
    pub what: u8,
    /// Method of the message or exchange.
    pub method: Option<Arc<str>>,
    /// Name of a tool or prompt, or a URI.
    pub subject: Option<Arc<str>>,
    /// Name of the backend.
    pub backend: Option<Arc<str>>,
    /// Code of a JSON-RPC error.
    pub error_code: Option<i64>,
    /// Original length of a message.
    pub length: Option<u64>,
}

/// Creates a content from its columns and its decoded body.
pub fn unpack(columns: Columns, body: Body) -> Result<Content, DecodeError> {
    if columns.what >= MESSAGE {
        return unpack_message(columns, body);
    }
    let raw = match body {
        Body::Whole(raw) => raw,
        Body::Left => Bytes::new(),
        Body::Like { .. } => return Err(DecodeError("an entry that is not a message refers to a message")),
    };
    let mut raw = Unpack(&raw);
    match columns.what {
        SESSION => Ok(Content::Session(around::unpack_session(&mut raw)?)),
        SESSION_ENDED => Ok(Content::SessionEnded),
        DECISION => Ok(Content::Decisions(vec![Arc::new(unpack_decision(&mut raw)?)])),
        DECISIONS => unpack_decisions(&mut raw),
        FINISHED => unpack_finished(columns, &mut raw),
        GAP => Ok(Content::Gap(Gap { facts: raw.number()?, reason: raw.text()? })),
        CLIENT => Ok(Content::Client(around::unpack_client(&mut raw)?)),
        BACKEND => Ok(Content::Backend(Box::new(around::unpack_backend(columns.backend, &mut raw)?))),
        RULES => Ok(Content::Rules(around::unpack_rules(&mut raw)?)),
        LOST => Ok(Content::Lost(around::unpack_lost(&mut raw)?)),
        REFUSED => Ok(Content::Refused(around::unpack_refused(&mut raw)?)),
        _ => Err(DecodeError("an entry is of an unknown kind")),
    }
}

fn unpack_message(columns: Columns, body: Body) -> Result<Content, DecodeError> {
    let code = columns.what - MESSAGE;
    let point = POINTS.get(usize::from(code / 8)).ok_or(DecodeError("a message is at an unknown point"))?;
    let kind = MessageKind::ALL.get(usize::from(code % 8)).ok_or(DecodeError("a message is of an unknown kind"))?;
    Ok(Content::Message(MessageEntry {
        method: columns.method,
        subject: columns.subject,
        backend: columns.backend,
        error_code: columns.error_code,
        ..MessageEntry::new(*point, *kind, columns.length.unwrap_or(0), body)
    }))
}

fn pack_finished(raw: &mut Vec<u8>, finished: &FinishedEntry) {
    put_text(raw, &finished.outcome);
    put_number(raw, finished.took);
    put_number(raw, finished.bytes_in);
    put_number(raw, finished.bytes_out);
    let FinishedEntry { operation, round, client, redacted, .. } = finished;
    // Older rows end here, as most rows do.
    if operation.is_some() || *round != 1 || client.is_some() || *redacted {
        put_number(raw, operation.unwrap_or(0));
        put_number(raw, u64::from(*round));
        put_number(raw, client.unwrap_or(0));
        raw.push(u8::from(*redacted));
    }
}

fn unpack_finished(columns: Columns, raw: &mut Unpack<'_>) -> Result<Content, DecodeError> {
    let mut finished = FinishedEntry {
        method: columns.method.unwrap_or_default(),
        subject: columns.subject,
        backend: columns.backend,
        outcome: raw.text()?.into(),
        took: raw.number()?,
        bytes_in: raw.number()?,
        bytes_out: raw.number()?,
        ..FinishedEntry::default()
    };
    if !raw.0.is_empty() {
        finished.operation = Some(raw.number()?).filter(|number| *number > 0);
        finished.round =
            u32::try_from(raw.number()?).map_err(|_| DecodeError("the number of a round is out of range"))?;
        finished.client = Some(raw.number()?).filter(|number| *number > 0);
        finished.redacted = raw.byte()? != 0;
    }
    Ok(Content::Finished(finished))
}

fn unpack_decisions(raw: &mut Unpack<'_>) -> Result<Content, DecodeError> {
    let count = raw.count()?;
    let mut list: Vec<DecisionEntry> = (0..count).map(|_| unpack_decision(raw)).collect::<Result<_, _>>()?;
    while !raw.0.is_empty() {
        let place = usize::try_from(raw.number()?).ok();
        let decision = place
            .and_then(|place| list.get_mut(place))
            .ok_or(DecodeError("a mark refers to a decision that does not exist"))?;
        decision.redacted = true;
    }
    Ok(Content::Decisions(list.into_iter().map(Arc::new).collect()))
}

fn pack_decision(raw: &mut Vec<u8>, decision: &DecisionEntry) {
    put_text(raw, &decision.by);
    put_optional(raw, decision.rule.as_deref());
    put_text(raw, &decision.phase);
    put_text(raw, &decision.verdict);
    put_text(raw, &decision.detail);
    put_number(raw, decision.conditions.len() as u64);
    for (condition, held) in decision.conditions.iter() {
        put_text(raw, condition);
        raw.push(u8::from(*held));
    }
    put_number(raw, decision.inputs.len() as u64);
    for (name, input) in &decision.inputs {
        put_text(raw, name);
        put_text(raw, input);
    }
}

fn unpack_decision(raw: &mut Unpack<'_>) -> Result<DecisionEntry, DecodeError> {
    let (by, rule) = (raw.text()?, raw.optional()?);
    let (phase, verdict, detail) = (raw.text()?, raw.text()?, raw.text()?);
    let mut conditions = Vec::new();
    for _ in 0..raw.count()? {
        conditions.push((raw.text()?.into(), raw.byte()? != 0));
    }
    let mut inputs = Vec::new();
    for _ in 0..raw.count()? {
        inputs.push((raw.text()?.into(), raw.text()?));
    }
    Ok(DecisionEntry {
        by: by.into(),
        rule: rule.map(Arc::from),
        phase: phase.into(),
        verdict: verdict.into(),
        detail,
        conditions: conditions.into(),
        inputs,
        redacted: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_decision_is_a_list_of_one() {
        let decision = DecisionEntry {
            by: "rules".into(),
            rule: Some("r".into()),
            phase: "request".into(),
            verdict: "refuse".into(),
            detail: "no".into(),
            conditions: [("a".into(), true)].into(),
            inputs: vec![("clock".into(), "1".into())],
            redacted: false,
        };
        let mut raw = Vec::new();
        pack_decision(&mut raw, &decision);
        let columns = Columns { what: DECISION, ..Columns::default() };
        assert_eq!(unpack(columns, Body::Whole(raw.into())), Ok(Content::Decisions(vec![Arc::new(decision)])));
    }

    #[test]
    fn every_code_has_its_point_and_kind_and_others_are_torn() {
        for (place, point) in POINTS.into_iter().enumerate() {
            for (number, kind) in MessageKind::ALL.into_iter().enumerate() {
                let code = MESSAGE + 8 * place as u8 + number as u8;
                let content = unpack(Columns { what: code, ..Columns::default() }, Body::Left).unwrap();
                assert!(matches!(&content, Content::Message(m) if m.point == point && m.kind == kind));
                assert_eq!(what(&content), code);
            }
        }
        for code in [0, 12, 15, MESSAGE + 5, 200, 255] {
            assert!(unpack(Columns { what: code, ..Columns::default() }, Body::Left).is_err(), "{code}");
        }
    }
}
