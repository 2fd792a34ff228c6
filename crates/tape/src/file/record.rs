//! Conversion of entries to records and back.

use super::around;
use super::frame::VERSION;
use super::proto::{self, entry::Content as RecorderInput};
use bytes::Bytes;
use signalbox_engine::fact::Point;
use signalbox_engine::fact::{HttpHead, TransportData};
use signalbox_engine::record::{
    Body, Content, DecisionEntry, Entry, FinishedEntry, Gap, LostEntry, MessageEntry, MessageKind, SessionInfo,
    TapeInfo, TapeKind,
};
use std::borrow::Cow;
use std::num::NonZeroU64;
use std::sync::Arc;

/// Description of an invalid value in a record.
pub(crate) type Nonsense = &'static str;

/// Returns the record of an entry, and the bytes of the body that follow it.
pub(crate) fn of_entry(entry: &Entry) -> (proto::Entry, Bytes) {
    let mut body = Bytes::new();
    let content = match &entry.content {
        Content::Session(info) => RecorderInput::SessionInfo(around::of_session(info)),
        Content::SessionEnded => RecorderInput::SessionEnded(proto::SessionEnded {}),
        Content::Message(message) => {
            let (record, bytes) = of_message(message);
            body = bytes;
            RecorderInput::Message(record)
        }
        Content::Decisions(list) => RecorderInput::Decisions(proto::Decisions {
            list: list.iter().map(|decision| of_decision(decision)).collect(),
        }),
        Content::Finished(finished) => RecorderInput::Finished(of_finished(finished)),
        Content::Gap(gap) => RecorderInput::Gap(proto::Gap { facts: gap.facts, reason: gap.reason.clone() }),
        Content::Client(client) => RecorderInput::Client(around::of_client(client)),
        Content::Backend(seen) => RecorderInput::Backend(around::of_backend(seen)),
        Content::Rules(rules) => RecorderInput::Rules(around::of_rules(rules)),
        Content::Lost(lost) => RecorderInput::Lost(proto::Lost {
            number: lost.number,
            point: of_point(lost.point).into(),
            reason: lost.reason.to_string(),
        }),
        Content::Refused(refused) => RecorderInput::Refused(around::of_refused(refused)),
    };
    let record = proto::Entry {
        seq: entry.seq,
        at: entry.at,
        session: entry.session,
        exchange: entry.exchange,
        principal: entry.principal.to_string(),
        content: Some(content),
        seal: entry.seal.as_deref().map(<[u8]>::to_vec),
    };
    (record, body)
}

/// Returns the number of bytes that follow a record.
pub(crate) fn body_bytes(record: &proto::Entry) -> u64 {
    match &record.content {
        Some(RecorderInput::Message(message)) => message.body_bytes,
        _ => 0,
    }
}

/// Restores the entry from its record and the bytes that follow it.
pub(crate) fn to_entry(record: proto::Entry, body: Bytes) -> Result<Entry, Nonsense> {
    let content = match record.content.ok_or("an entry of an unknown kind")? {
        RecorderInput::SessionInfo(info) => Content::Session(around::to_session(info)),
        RecorderInput::SessionEnded(_) => Content::SessionEnded,
        RecorderInput::Message(message) => Content::Message(to_message(message, body)?),
        RecorderInput::Decision(decision) => Content::Decisions(vec![Arc::new(to_decision(decision))]),
        RecorderInput::Decisions(decisions) => {
            Content::Decisions(decisions.list.into_iter().map(|one| Arc::new(to_decision(one))).collect())
        }
        RecorderInput::Finished(finished) => Content::Finished(to_finished(finished)),
        RecorderInput::Gap(gap) => Content::Gap(Gap { facts: gap.facts, reason: gap.reason }),
        RecorderInput::Client(client) => Content::Client(around::to_client(client)),
        RecorderInput::Backend(seen) => Content::Backend(Box::new(around::to_backend(seen))),
        RecorderInput::Rules(rules) => Content::Rules(around::to_rules(rules)),
        RecorderInput::Lost(lost) => Content::Lost(LostEntry {
            number: lost.number,
            point: to_point(lost.point()).ok_or("a message was lost at an unknown point")?,
            reason: lost.reason.into(),
        }),
        RecorderInput::Refused(refused) => Content::Refused(around::to_refused(refused)),
    };
    let (session, exchange, seal) = (record.session, record.exchange, record.seal.map(Into::into));
    Ok(Entry { session, exchange, seal, ..Entry::new(record.seq, record.at, record.principal.into(), content) })
}

pub(crate) fn of_head(info: &TapeInfo, sessions: &[(u64, SessionInfo)]) -> proto::Head {
    let session =
        |(number, info): &(u64, SessionInfo)| proto::Session { number: *number, info: Some(around::of_session(info)) };
    proto::Head {
        id: info.id.clone(),
        kind: info.kind.word().to_owned(),
        target: info.target.clone(),
        started: info.started,
        ended: info.ended,
        program: info.program.clone(),
        redaction: info.redaction.clone(),
        sampling: info.sampling.clone(),
        sessions: sessions.iter().map(session).collect(),
        parent: info.parent.clone(),
        seal: info.seal.as_deref().map(<[u8]>::to_vec),
        version: VERSION,
    }
}

pub(crate) fn to_head(head: proto::Head) -> Result<(TapeInfo, Vec<(u64, SessionInfo)>), Nonsense> {
    let session = |session: proto::Session| (session.number, around::to_session(session.info.unwrap_or_default()));
    let info = TapeInfo {
        id: head.id,
        kind: TapeKind::of_word(&head.kind).ok_or("a tape of an unknown kind")?,
        target: head.target,
        started: head.started,
        ended: head.ended,
        program: head.program,
        redaction: head.redaction,
        sampling: head.sampling,
        parent: head.parent,
        seal: head.seal.map(Into::into),
    };
    Ok((info, head.sessions.into_iter().map(session).collect()))
}

fn of_finished(finished: &FinishedEntry) -> proto::Finished {
    proto::Finished {
        method: finished.method.to_string(),
        subject: finished.subject.as_deref().map(str::to_owned),
        backend: finished.backend.as_deref().map(str::to_owned),
        outcome: finished.outcome.to_string(),
        took: finished.took,
        bytes_in: finished.bytes_in,
        bytes_out: finished.bytes_out,
        operation: finished.operation,
        // Zero is not stored, so the usual first round takes no space.
        round: if finished.round == 1 { 0 } else { finished.round },
        client: finished.client,
        redacted: finished.redacted,
    }
}

fn to_finished(finished: proto::Finished) -> FinishedEntry {
    FinishedEntry {
        method: finished.method.into(),
        subject: finished.subject.map(Arc::from),
        backend: finished.backend.map(Arc::from),
        outcome: finished.outcome.into(),
        took: finished.took,
        bytes_in: finished.bytes_in,
        bytes_out: finished.bytes_out,
        operation: finished.operation,
        round: finished.round.max(1),
        client: finished.client,
        redacted: finished.redacted,
    }
}

fn of_message(message: &MessageEntry) -> (proto::Message, Bytes) {
    let (kept, body, like) = match &message.body {
        Body::Left => (proto::Kept::Left, Bytes::new(), (0, 0, 0)),
        Body::Whole(bytes) => (proto::Kept::Whole, bytes.clone(), (0, 0, 0)),
        Body::Like { seq, prefix, suffix, middle } => (proto::Kept::Like, middle.clone(), (*seq, *prefix, *suffix)),
    };
    let carried = message.carried.as_deref();
    let record = proto::Message {
        point: of_point(message.point).into(),
        kind: message.kind.word().to_owned(),
        method: message.method.as_deref().map(str::to_owned),
        subject: message.subject.as_deref().map(str::to_owned),
        backend: message.backend.as_deref().map(str::to_owned),
        error_code: message.error_code,
        length: message.length,
        kept: kept.into(),
        body_bytes: body.len() as u64,
        like: like.0,
        prefix: like.1,
        suffix: like.2,
        number: message.number,
        own: message.own,
        again: message.again.map_or(0, NonZeroU64::get),
        lost: message.lost.as_deref().map(str::to_owned),
        redacted: message.redacted,
        event_id: carried.and_then(|carried| carried.event_id.as_deref()).map(str::to_owned),
        http: carried.and_then(|carried| carried.http.as_ref()).map(of_http),
    };
    (record, body)
}

fn to_message(message: proto::Message, body: Bytes) -> Result<MessageEntry, Nonsense> {
    let kept = proto::Kept::try_from(message.kept).map_err(|_| "a body of an unknown kind")?;
    Ok(MessageEntry {
        point: to_point(message.point()).ok_or("a message at an unknown point")?,
        kind: MessageKind::of_word(&message.kind).ok_or("a message of an unknown kind")?,
        method: message.method.map(Arc::from),
        subject: message.subject.map(Arc::from),
        backend: message.backend.map(Arc::from),
        error_code: message.error_code,
        length: message.length,
        number: message.number,
        own: message.own,
        again: NonZeroU64::new(message.again),
        lost: message.lost.map(Cow::Owned),
        redacted: message.redacted,
        carried: to_carried(message.event_id, message.http),
        body: match kept {
            proto::Kept::Left => Body::Left,
            proto::Kept::Whole => Body::Whole(body),
            proto::Kept::Like => {
                Body::Like { seq: message.like, prefix: message.prefix, suffix: message.suffix, middle: body }
            }
        },
    })
}

fn of_http(http: &HttpHead) -> proto::Http {
    proto::Http {
        method: http.method.clone(),
        url: http.url.clone(),
        status: http.status.map(u32::from),
        headers: around::of_pairs(&http.headers),
        redacted: http.redacted,
    }
}

fn to_carried(event_id: Option<String>, http: Option<proto::Http>) -> Option<Arc<TransportData>> {
    if event_id.is_none() && http.is_none() {
        return None;
    }
    let head = |http: proto::Http| HttpHead {
        method: http.method,
        url: http.url,
        status: http.status.and_then(|status| u16::try_from(status).ok()),
        headers: around::to_pairs(http.headers),
        redacted: http.redacted,
    };
    Some(Arc::new(TransportData { event_id: event_id.map(Into::into), http: http.map(head) }))
}

fn of_decision(decision: &DecisionEntry) -> proto::Decision {
    let condition = |(text, held): &(Arc<str>, bool)| proto::Condition { text: text.to_string(), held: *held };
    let input =
        |(name, value): &(Cow<'static, str>, String)| proto::Input { name: name.to_string(), value: value.clone() };
    proto::Decision {
        by: decision.by.to_string(),
        rule: decision.rule.as_deref().map(str::to_owned),
        phase: decision.phase.to_string(),
        verdict: decision.verdict.to_string(),
        detail: decision.detail.clone(),
        conditions: decision.conditions.iter().map(condition).collect(),
        inputs: decision.inputs.iter().map(input).collect(),
        redacted: decision.redacted,
    }
}

fn to_decision(decision: proto::Decision) -> DecisionEntry {
    DecisionEntry {
        by: decision.by.into(),
        rule: decision.rule.map(Arc::from),
        phase: decision.phase.into(),
        verdict: decision.verdict.into(),
        detail: decision.detail,
        conditions: decision.conditions.into_iter().map(|condition| (condition.text.into(), condition.held)).collect(),
        inputs: decision.inputs.into_iter().map(|input| (input.name.into(), input.value)).collect(),
        redacted: decision.redacted,
    }
}

fn of_point(point: Point) -> proto::Point {
    match point {
        Point::ClientIn => proto::Point::ClientIn,
        Point::BackendOut => proto::Point::BackendOut,
        Point::BackendIn => proto::Point::BackendIn,
        Point::ClientOut => proto::Point::ClientOut,
    }
}

fn to_point(point: proto::Point) -> Option<Point> {
    match point {
        proto::Point::Unspecified => None,
        proto::Point::ClientIn => Some(Point::ClientIn),
        proto::Point::BackendOut => Some(Point::BackendOut),
        proto::Point::BackendIn => Some(Point::BackendIn),
        proto::Point::ClientOut => Some(Point::ClientOut),
    }
}
