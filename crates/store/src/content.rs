//! How the content of an entry is stored: a code for what it is, a few columns, and the rest packed.

use crate::around;
use crate::body_codec::{BodyCodec, Packed};
use crate::pack::{Torn, Unpack, put_number, put_optional, put_text};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::record::{Body, Content, DecisionEntry, FinishedEntry, Gap, MessageEntry, MessageKind};
use std::sync::Arc;

/// What is known of a session.
pub const SESSION: u8 = 1;
const SESSION_ENDED: u8 = 2;
const DECISION: u8 = 3;
/// The end of an exchange.
pub const FINISHED: u8 = 4;
/// Facts that are missing.
pub const GAP: u8 = 5;
/// A list of decisions; a single one, as older stores have it, is a list of one.
const DECISIONS: u8 = 6;
/// A caller without a session.
pub const CLIENT: u8 = 7;
/// What a backend offers.
pub const BACKEND: u8 = 8;
/// The rules that decide.
pub const RULES: u8 = 9;
const LOST: u8 = 10;
const REFUSED: u8 = 11;
/// Messages: this, and eight for each point, and one for each kind.
pub const MESSAGE: u8 = 16;

pub(crate) const POINTS: [Point; 4] = [Point::ClientIn, Point::BackendOut, Point::BackendIn, Point::ClientOut];

/// The columns of a content that can be asked for.
#[derive(Copy, Clone, Default, Debug)]
pub struct ContentNames<'a> {
    /// The method.
    pub method: Option<&'a str>,
    /// The tool, prompt or URI.
    pub subject: Option<&'a str>,
    /// The backend.
    pub backend: Option<&'a str>,
    /// The code of an error.
    pub error_code: Option<i64>,
}

/// The columns that are asked for.
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

/// The code of what it is.
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

/// The code of messages of one kind at one point.
pub fn of_message(point: Point, kind: MessageKind) -> u8 {
    let point = POINTS.iter().position(|known| *known == point).unwrap_or(0);
    let kind = MessageKind::ALL.iter().position(|known| *known == kind).unwrap_or(0);
    MESSAGE + 8 * point as u8 + kind as u8
}

/// The codes of all messages that a client sent or was sent, as a list in SQL.
pub fn client_side_codes() -> String {
    let points = [Point::ClientIn, Point::ClientOut];
    let codes = points.iter().flat_map(|point| MessageKind::ALL.map(|kind| of_message(*point, kind).to_string()));
    codes.collect::<Vec<_>>().join(", ")
}

/// True if this is the code of a message.
pub fn is_message(what: u8) -> bool {
    what >= MESSAGE
}

/// The place of its kind in [`MessageKind::ALL`], where this is the code of a message.
pub fn kind_of(what: u8) -> Option<usize> {
    let kind = usize::from(what.checked_sub(MESSAGE)? % 8);
    (kind < MessageKind::ALL.len()).then_some(kind)
}

/// The length of a message as it passed.
pub fn length(content: &Content) -> Option<u64> {
    match content {
        Content::Message(message) => Some(message.length),
        _ => None,
    }
}

/// The rest of it.
pub fn pack(content: &Content, codec: &mut BodyCodec) -> Packed {
    let mut raw = Vec::new();
    match content {
        Content::Message(message) => return codec.pack(&message.body),
        Content::SessionEnded => return Packed::left(),
        Content::Session(session) => around::pack_session(&mut raw, session),
        Content::Decisions(list) => {
            put_number(&mut raw, list.len() as u64);
            list.iter().for_each(|decision| pack_decision(&mut raw, decision));
            // The places of those that something was taken out of, after all of them: older rows have none.
            for (place, _) in list.iter().enumerate().filter(|(_, decision)| decision.redacted) {
                put_number(&mut raw, place as u64);
            }
            // Calls of one kind are decided in one way, so the same list comes again and again.
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

/// The columns of a row, as they were read.
#[derive(Default, Debug)]
pub struct Columns {
    /// The code of what it is.
    pub what: u8,
    /// The method.
    pub method: Option<Arc<str>>,
    /// The tool, prompt or URI.
    pub subject: Option<Arc<str>>,
    /// The backend.
    pub backend: Option<Arc<str>>,
    /// The code of an error.
    pub error_code: Option<i64>,
    /// The length of a message as it passed.
    pub length: Option<u64>,
}

/// Makes the content of its columns and what was packed, which is unpacked by then.
pub fn unpack(columns: Columns, body: Body) -> Result<Content, Torn> {
    if columns.what >= MESSAGE {
        return unpack_message(columns, body);
    }
    let raw = match body {
        Body::Whole(raw) => raw,
        Body::Left => Bytes::new(),
        Body::Like { .. } => return Err(Torn("an entry that is not a message refers to a message")),
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
        _ => Err(Torn("an entry is of an unknown kind")),
    }
}

fn unpack_message(columns: Columns, body: Body) -> Result<Content, Torn> {
    let code = columns.what - MESSAGE;
    let point = POINTS.get(usize::from(code / 8)).ok_or(Torn("a message is at an unknown point"))?;
    let kind = MessageKind::ALL.get(usize::from(code % 8)).ok_or(Torn("a message is of an unknown kind"))?;
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
    // Older rows end here, and so do most.
    if operation.is_some() || *round != 1 || client.is_some() || *redacted {
        put_number(raw, operation.unwrap_or(0));
        put_number(raw, u64::from(*round));
        put_number(raw, client.unwrap_or(0));
        raw.push(u8::from(*redacted));
    }
}

fn unpack_finished(columns: Columns, raw: &mut Unpack<'_>) -> Result<Content, Torn> {
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
        finished.round = u32::try_from(raw.number()?).map_err(|_| Torn("the number of a round is out of range"))?;
        finished.client = Some(raw.number()?).filter(|number| *number > 0);
        finished.redacted = raw.byte()? != 0;
    }
    Ok(Content::Finished(finished))
}

fn unpack_decisions(raw: &mut Unpack<'_>) -> Result<Content, Torn> {
    let count = raw.count()?;
    let mut list: Vec<DecisionEntry> = (0..count).map(|_| unpack_decision(raw)).collect::<Result<_, _>>()?;
    while !raw.0.is_empty() {
        let place = usize::try_from(raw.number()?).ok();
        let decision = place
            .and_then(|place| list.get_mut(place))
            .ok_or(Torn("a mark refers to a decision that does not exist"))?;
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

fn unpack_decision(raw: &mut Unpack<'_>) -> Result<DecisionEntry, Torn> {
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
