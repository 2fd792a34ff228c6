//! One JSON object a line: the head first, then the entries. It can be imported again, to the last byte.

use super::{ExportError, Source};
use crate::explain;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use signalbox_engine::fact::Point;
use signalbox_engine::record::{
    Body, Content, DecisionEntry, Entry, FinishedEntry, Gap, MessageEntry, MessageKind, SessionInfo, StoreError,
    TapeInfo, TapeKind,
};
use std::io::{BufRead, Read, Write};
use std::sync::Arc;

/// The form that is written, as the first line says.
const FORMAT: &str = "signalbox-tape-jsonl";
/// Its version.
const VERSION: u32 = 1;
/// Longest line that is read.
const MAX_LINE: u64 = 64 << 20;

/// Writes the tape.
///
/// # Errors
/// What the source or the other side says.
pub fn write(source: Source<'_>, mut to: impl Write) -> Result<(), ExportError> {
    serde_json::to_writer(&mut to, &HeadLine::new(source.info, source.sessions))?;
    to.write_all(b"\n")?;
    for entry in source.entries {
        serde_json::to_writer(&mut to, &Line::new(&entry?))?;
        to.write_all(b"\n")?;
    }
    Ok(to.flush()?)
}

/// One entry as it stands in a line.
///
/// # Errors
/// Never, as far as is known: every entry has such a form.
pub fn value(entry: &Entry) -> serde_json::Result<serde_json::Value> {
    serde_json::to_value(Line::new(entry))
}

/// A tape that is read from lines.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    line: u64,
    info: TapeInfo,
    sessions: Vec<(u64, SessionInfo)>,
    ended: bool,
}

impl<R: BufRead> Reader<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// Where the first line is not one, or is of a later version.
    pub fn open(mut from: R) -> Result<Self, ExportError> {
        let bad = |why: String| ExportError::Line { line: 1, why };
        let text = read_line(&mut from, 1)?.ok_or_else(|| bad("there is no head".to_owned()))?;
        let head: HeadLine = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        if head.format != FORMAT {
            return Err(bad(format!("`format` must be `{FORMAT}`")));
        }
        if head.version > VERSION {
            let place = "the JSONL file".to_owned();
            return Err(StoreError::Future { place, found: head.version, known: VERSION }.into());
        }
        let (info, sessions) = head.tape()?;
        Ok(Self { from, line: 1, info, sessions, ended: false })
    }

    /// The head of the tape.
    #[must_use]
    pub fn info(&self) -> &TapeInfo {
        &self.info
    }

    /// Its sessions.
    #[must_use]
    pub fn sessions(&self) -> &[(u64, SessionInfo)] {
        &self.sessions
    }

    fn step(&mut self) -> Result<Option<Entry>, ExportError> {
        self.line += 1;
        let line = self.line;
        let bad = |why: String| ExportError::Line { line, why };
        let Some(text) = read_line(&mut self.from, line)? else { return Ok(None) };
        let told: Line = serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))?;
        told.entry().map(Some).map_err(|why| bad(why.to_owned()))
    }
}

impl<R: BufRead> Iterator for Reader<R> {
    type Item = Result<Entry, ExportError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let step = self.step().transpose();
        self.ended = !matches!(step, Some(Ok(_)));
        step
    }
}

fn read_line(from: &mut impl BufRead, line: u64) -> Result<Option<Vec<u8>>, ExportError> {
    let mut text = Vec::new();
    from.take(MAX_LINE).read_until(b'\n', &mut text)?;
    if text.len() as u64 == MAX_LINE {
        return Err(ExportError::Line { line, why: "too long".to_owned() });
    }
    Ok((!text.is_empty()).then_some(text))
}

#[derive(Serialize, Deserialize)]
struct HeadLine {
    format: String,
    version: u32,
    id: String,
    kind: String,
    target: String,
    started: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ended: Option<u64>,
    program: String,
    redaction: Vec<String>,
    sampling: String,
    sessions: Vec<SessionLine>,
}

#[derive(Serialize, Deserialize, Default)]
struct SessionLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_version: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<String>,
    transport: String,
}

impl HeadLine {
    fn new(info: &TapeInfo, sessions: &[(u64, SessionInfo)]) -> Self {
        let session =
            |(number, info): &(u64, SessionInfo)| SessionLine { session: Some(*number), ..SessionLine::new(info) };
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            id: info.id.clone(),
            kind: info.kind.word().to_owned(),
            target: info.target.clone(),
            started: info.started,
            ended: info.ended,
            program: info.program.clone(),
            redaction: info.redaction.clone(),
            sampling: info.sampling.clone(),
            sessions: sessions.iter().map(session).collect(),
        }
    }

    fn tape(self) -> Result<(TapeInfo, Vec<(u64, SessionInfo)>), ExportError> {
        let kind = TapeKind::of_word(&self.kind);
        let kind = kind.ok_or_else(|| ExportError::Line { line: 1, why: format!("unknown kind `{}`", self.kind) })?;
        let info = TapeInfo {
            id: self.id,
            kind,
            target: self.target,
            started: self.started,
            ended: self.ended,
            program: self.program,
            redaction: self.redaction,
            sampling: self.sampling,
        };
        let sessions = self.sessions.into_iter().map(|line| (line.session.unwrap_or_default(), line.info()));
        Ok((info, sessions.collect()))
    }
}

impl SessionLine {
    fn new(info: &SessionInfo) -> Self {
        Self {
            session: None,
            external: info.external.clone(),
            client: info.client.clone(),
            client_version: info.client_version.clone(),
            revision: info.revision.clone(),
            transport: info.transport.clone(),
        }
    }

    fn info(self) -> SessionInfo {
        SessionInfo {
            external: self.external,
            client: self.client,
            client_version: self.client_version,
            revision: self.revision,
            transport: self.transport,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Line {
    seq: u64,
    at: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exchange: Option<u64>,
    principal: String,
    #[serde(flatten)]
    what: What,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum What {
    SessionBegan(SessionLine),
    SessionEnded(bool),
    Message(MessageLine),
    /// One decision alone, as older files have it.
    Decision(DecisionLine),
    Decisions(Vec<DecisionLine>),
    Finished(FinishedLine),
    Gap {
        facts: u64,
        reason: String,
    },
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
    /// The message, or what stands between the beginning and the end of what it is like.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// The same, where it is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    like: Option<LikeLine>,
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
        }
    }
}

impl Line {
    fn new(entry: &Entry) -> Self {
        let what = match &entry.content {
            Content::Session(info) => What::SessionBegan(SessionLine::new(info)),
            Content::SessionEnded => What::SessionEnded(true),
            Content::Message(message) => What::Message(MessageLine::new(message)),
            Content::Decisions(list) => {
                What::Decisions(list.iter().map(|decision| DecisionLine::new(decision)).collect())
            }
            Content::Finished(finished) => What::Finished(FinishedLine {
                method: finished.method.to_string(),
                subject: finished.subject.as_deref().map(str::to_owned),
                backend: finished.backend.as_deref().map(str::to_owned),
                outcome: finished.outcome.to_string(),
                took: finished.took,
                bytes_in: finished.bytes_in,
                bytes_out: finished.bytes_out,
            }),
            Content::Gap(gap) => What::Gap { facts: gap.facts, reason: gap.reason.clone() },
        };
        let (session, exchange) = (entry.session, entry.exchange);
        Self { seq: entry.seq, at: entry.at, session, exchange, principal: entry.principal.to_string(), what }
    }

    fn entry(self) -> Result<Entry, &'static str> {
        let content = match self.what {
            What::SessionBegan(line) => Content::Session(line.info()),
            What::SessionEnded(_) => Content::SessionEnded,
            What::Message(line) => Content::Message(line.message()?),
            What::Decision(line) => Content::Decisions(vec![Arc::new(line.decision())]),
            What::Decisions(lines) => {
                Content::Decisions(lines.into_iter().map(|line| Arc::new(line.decision())).collect())
            }
            What::Finished(line) => Content::Finished(FinishedEntry {
                method: line.method.into(),
                subject: line.subject.map(Arc::from),
                backend: line.backend.map(Arc::from),
                outcome: line.outcome.into(),
                took: line.took,
                bytes_in: line.bytes_in,
                bytes_out: line.bytes_out,
            }),
            What::Gap { facts, reason } => Content::Gap(Gap { facts, reason }),
        };
        let (session, exchange, principal) = (self.session, self.exchange, self.principal.into());
        Ok(Entry { seq: self.seq, at: self.at, session, exchange, principal, content })
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
        Self {
            point: explain::words(message.point).to_owned(),
            kind: message.kind.word().to_owned(),
            method: message.method.as_deref().map(str::to_owned),
            subject: message.subject.as_deref().map(str::to_owned),
            backend: message.backend.as_deref().map(str::to_owned),
            error_code: message.error_code,
            length: message.length,
            text,
            base64,
            like,
        }
    }

    fn message(self) -> Result<MessageEntry, &'static str> {
        const POINTS: [Point; 4] = [Point::ClientIn, Point::BackendOut, Point::BackendIn, Point::ClientOut];
        let point = POINTS.into_iter().find(|point| explain::words(*point) == self.point);
        let bytes = match (self.text, self.base64) {
            (Some(text), _) => Some(Bytes::from(text)),
            (None, Some(base64)) => Some(Bytes::from(STANDARD.decode(base64).map_err(|_| "`base64` is no base64")?)),
            (None, None) => None,
        };
        let body = match (bytes, self.like) {
            (None, _) => Body::Left,
            (Some(bytes), None) => Body::Whole(bytes),
            (Some(middle), Some(LikeLine { seq, prefix, suffix })) => Body::Like { seq, prefix, suffix, middle },
        };
        Ok(MessageEntry {
            point: point.ok_or("unknown `point`")?,
            kind: MessageKind::of_word(&self.kind).ok_or("unknown `kind`")?,
            method: self.method.map(Arc::from),
            subject: self.subject.map(Arc::from),
            backend: self.backend.map(Arc::from),
            error_code: self.error_code,
            length: self.length,
            body,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn what_is_exported_is_imported_again() {
        let (info, sessions) = (sample::info(), sample::sessions());
        let mut all = sample::entries();
        let Content::Message(message) = &mut all[1].content else { unreachable!() };
        message.body = Body::Whole(Bytes::from_static(b"\xff\xfe"));
        let mut out = Vec::new();
        let mut entries = all.iter().cloned().map(Ok);
        write(Source { info: &info, sessions: &sessions, entries: &mut entries }, &mut out).unwrap();
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), all.len() + 1);
        let reader = Reader::open(&out[..]).unwrap();
        assert_eq!((reader.info(), reader.sessions()), (&info, &sessions[..]));
        assert_eq!(reader.collect::<Result<Vec<_>, _>>().unwrap(), all);
    }

    #[test]
    fn a_line_of_one_decision_is_a_list_of_one() {
        let head = serde_json::to_string(&HeadLine::new(&sample::info(), &[])).unwrap();
        let decision = r#"{"by":"rules","rule":"r","phase":"request","verdict":"refuse","detail":"","conditions":[["a",true]],"inputs":[]}"#;
        let read =
            |line: String| Reader::open(format!("{head}\n{line}\n").as_bytes()).unwrap().next().unwrap().unwrap();
        let alone = read(format!(r#"{{"seq":1,"at":2,"principal":"p","decision":{decision}}}"#));
        assert!(matches!(&alone.content, Content::Decisions(list) if list.len() == 1 && list[0].verdict == "refuse"));
        assert_eq!(alone, read(format!(r#"{{"seq":1,"at":2,"principal":"p","decisions":[{decision}]}}"#)));
    }

    #[test]
    fn lines_that_make_no_sense_are_named() {
        let open = |text: &str| Reader::open(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
        assert_eq!(open(""), "line 1: there is no head");
        let head = serde_json::to_string(&HeadLine::new(&sample::info(), &[])).unwrap();
        let later = head.replace("\"version\":1", "\"version\":2");
        assert!(open(&later).contains("the JSONL file has format version 2"));
        let text = format!(
            "{head}\n{{\"seq\":1,\"at\":2,\"principal\":\"\",\"message\":{{\"point\":\"x\",\"kind\":\"raw\",\"length\":1}}}}\n"
        );
        let read: Result<Vec<_>, _> = Reader::open(text.as_bytes()).unwrap().collect();
        assert_eq!(read.unwrap_err().to_string(), "line 2: unknown `point`");
    }
}
