//! One JSON object per line: the head first, then the entries. An import restores the tape to the last byte.

mod around;
mod jsonl_error;
mod lines;

use super::{ExportError, Source};
use crate::strict_json;
use around::SessionLine;
pub use jsonl_error::JsonlError;
use lines::Line;
use serde::{Deserialize, Serialize};
use signalbox_engine::record::{Entry, SessionInfo, StoreError, TapeInfo, TapeKind};
use std::io::{BufRead, Read, Write};

/// Name of the format, as the first line states it.
pub(crate) const FORMAT: &str = "signalbox-tape-jsonl";
/// Version of the format.
const VERSION: u32 = 2;
/// Maximum length of a line that is read.
const MAX_LINE: u64 = 64 << 20;

/// Writes the tape.
///
/// # Errors
/// Returns the error of the source or of the writer.
pub fn write(source: Source<'_>, mut to: impl Write) -> Result<(), ExportError> {
    serde_json::to_writer(&mut to, &HeadLine::new(source.info, source.sessions))?;
    to.write_all(b"\n")?;
    for entry in source.entries {
        serde_json::to_writer(&mut to, &Line::new(&entry?))?;
        to.write_all(b"\n")?;
    }
    Ok(to.flush()?)
}

/// Returns the JSON object of one entry.
///
/// # Errors
/// Fails only if the JSON encoder does, which no known entry causes.
pub fn value(entry: &Entry) -> serde_json::Result<serde_json::Value> {
    serde_json::to_value(Line::new(entry))
}

/// Returns the head of a tape as the first line has it, without its sessions.
pub(crate) fn head_value(info: &TapeInfo) -> serde_json::Result<serde_json::Value> {
    serde_json::to_value(HeadLine::new(info, &[]))
}

/// Returns the first line of a tape.
pub(crate) fn head_text(info: &TapeInfo, sessions: &[(u64, SessionInfo)]) -> serde_json::Result<String> {
    serde_json::to_string(&HeadLine::new(info, sessions))
}

/// Reads a head that [`head_value`] wrote.
pub(crate) fn read_head(value: serde_json::Value) -> Result<TapeInfo, ExportError> {
    let head: HeadLine = serde_json::from_value(value)?;
    head.check()?;
    head.tape().map(|(info, _)| info)
}

/// Reads an entry from its JSON object.
pub(crate) fn read_entry(value: serde_json::Value) -> Result<Entry, ExportError> {
    Line::of_value(value).and_then(Line::entry).map_err(|why| ExportError::Line { line: 1, why })
}

/// Reader of a tape in JSON lines.
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
    /// Fails if the first line is not a head, or is of a later version.
    pub fn open(mut from: R) -> Result<Self, ExportError> {
        let bad = |why: JsonlError| ExportError::Line { line: 1, why };
        let text = read_line(&mut from, 1)?.ok_or_else(|| bad(JsonlError::NoHeader))?;
        strict_json::check(&text).map_err(|error| bad(error.into()))?;
        let head: HeadLine = serde_json::from_slice(&text).map_err(|error| bad(error.into()))?;
        head.check()?;
        let (info, sessions) = head.tape()?;
        Ok(Self { from, line: 1, info, sessions, ended: false })
    }

    /// Returns the head of the tape.
    #[must_use]
    pub fn info(&self) -> &TapeInfo {
        &self.info
    }

    /// Returns the sessions listed in the head.
    #[must_use]
    pub fn sessions(&self) -> &[(u64, SessionInfo)] {
        &self.sessions
    }

    fn step(&mut self) -> Result<Option<Entry>, ExportError> {
        self.line += 1;
        let line = self.line;
        let Some(text) = read_line(&mut self.from, line)? else { return Ok(None) };
        let entry = Line::read(&text).and_then(Line::entry);
        entry.map(Some).map_err(|why| ExportError::Line { line, why })
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
        return Err(ExportError::Line { line, why: JsonlError::TooLong });
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent: Option<String>,
    /// Seal of the tape in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seal: Option<String>,
    sessions: Vec<SessionLine>,
}

impl HeadLine {
    fn new(info: &TapeInfo, sessions: &[(u64, SessionInfo)]) -> Self {
        let session = |(number, info): &(u64, SessionInfo)| SessionLine::numbered(*number, info);
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
            parent: info.parent.clone(),
            seal: lines::sealed(info.seal.as_deref()),
            sessions: sessions.iter().map(session).collect(),
        }
    }

    /// Checks that this version of the program reads the format.
    fn check(&self) -> Result<(), ExportError> {
        if self.format != FORMAT {
            return Err(ExportError::Line { line: 1, why: JsonlError::Format });
        }
        if self.version > VERSION {
            let place = "the JSONL file".to_owned();
            return Err(StoreError::Future { place, found: self.version, known: VERSION }.into());
        }
        Ok(())
    }

    fn tape(self) -> Result<(TapeInfo, Vec<(u64, SessionInfo)>), ExportError> {
        let kind = TapeKind::of_word(&self.kind);
        let kind = kind.ok_or(ExportError::Line { line: 1, why: JsonlError::TapeKind(self.kind) })?;
        let info = TapeInfo {
            id: self.id,
            kind,
            target: self.target,
            started: self.started,
            ended: self.ended,
            program: self.program,
            redaction: self.redaction,
            sampling: self.sampling,
            parent: self.parent,
            seal: lines::unsealed(self.seal).map_err(|why| ExportError::Line { line: 1, why })?,
        };
        let sessions = self.sessions.into_iter().map(|line| (line.session.unwrap_or_default(), line.info()));
        Ok((info, sessions.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use bytes::Bytes;
    use signalbox_engine::record::{Body, Content};

    #[test]
    fn what_is_exported_is_imported_again() {
        let (info, sessions) = (sample::sealed_info(), sample::sessions());
        let mut all = sample::all_entries();
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
    fn doubled_members_and_second_kinds_are_refused() {
        let mut out = Vec::new();
        let mut entries = sample::all_entries().into_iter().map(Ok);
        write(Source { info: &sample::sealed_info(), sessions: &[], entries: &mut entries }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let read = |text: &str| Reader::open(text.as_bytes())?.collect::<Result<Vec<_>, _>>();
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        read(&text).unwrap();
        let forged = r#""finished":{"method":"m","outcome":"success","took":1,"bytes_in":1,"bytes_out":1},"#;
        let twice = text.replacen("\"finished\":", &format!("{forged}\"finished\":"), 1);
        assert!(refusal(&twice).contains("the member `finished` is there twice"));
        let second = text.replacen("\"decisions\":", &format!("{forged}\"decisions\":"), 1);
        assert!(refusal(&second).contains("an entry of two kinds, `decisions` and `finished`"));
        let inner = text.replacen("\"outcome\":", "\"outcome\":\"success\",\"outcome\":", 1);
        assert!(refusal(&inner).contains("the member `outcome` is there twice"));
        let head = text.replacen("\"target\":", "\"target\":\"other\",\"target\":", 1);
        assert!(refusal(&head).starts_with("line 1: the member `target` is there twice"));
    }

    #[test]
    fn lines_that_make_no_sense_are_named() {
        let open = |text: &str| Reader::open(text.as_bytes()).map(|_| ()).unwrap_err().to_string();
        assert_eq!(open(""), "line 1: the header is missing");
        let head = serde_json::to_string(&HeadLine::new(&sample::info(), &[])).unwrap();
        let later = head.replace("\"version\":2", "\"version\":3");
        assert!(open(&later).contains("the JSONL file has format version 3"));
        let text = format!(
            "{head}\n{{\"seq\":1,\"at\":2,\"principal\":\"\",\"message\":{{\"point\":\"x\",\"kind\":\"raw\",\"length\":1}}}}\n"
        );
        let read: Result<Vec<_>, _> = Reader::open(text.as_bytes()).unwrap().collect();
        assert_eq!(read.unwrap_err().to_string(), "line 2: unknown `point`");
    }
}
