//! Files with one JSON value per line.

use super::direction::{DirectionHint, settle};
use super::error::ImportError;
use super::recording::{ImportedMessage, ImportedRecording, Side, Talk};
use bytes::Bytes;
use signalbox_wire::limits::MESSAGE;
use signalbox_wire::{Limits, json, scan, timestamp};

/// Maximum length of a line: the largest message plus room for its metadata.
const MAX_LINE: usize = MESSAGE + (1 << 20);
/// Numbers below this are seconds since 1970; larger ones are milliseconds, microseconds or nanoseconds.
const MOST_SECONDS: f64 = 1e11;

/// Content of one line.
pub(super) struct ParsedLine {
    /// Direction of the messages.
    pub(super) told: DirectionHint,
    /// Time of the messages.
    pub(super) at: Option<u64>,
    /// Key of the conversation.
    pub(super) key: String,
    /// Properties of the conversation that `key` stands for.
    pub(super) talk: Talk,
    /// Messages of the line: one, or those of a batch.
    pub(super) messages: Vec<Bytes>,
}

/// Parses one line; returns `None` if it holds no message. The second argument counts the conversations with each
/// server.
pub(super) type Reader = fn(&Bytes, &mut Beginnings) -> Result<Option<ParsedLine>, String>;

/// Number of conversations started with each server.
pub(super) type Beginnings = std::collections::HashMap<String, u32>;

/// Reads all lines of a file into a recording.
pub(super) fn read(file: &Bytes, reader: Reader) -> Result<ImportedRecording, ImportError> {
    let (mut recording, mut told, mut beginnings) = (ImportedRecording::default(), Vec::new(), Beginnings::new());
    let limits = Limits { message: MAX_LINE, ..Limits::default() };
    let mut at = if file.starts_with(b"\xEF\xBB\xBF") { 3 } else { 0 };
    let mut number = 0;
    while at < file.len() {
        let rest = file.slice(at..);
        let length = memchr::memchr(b'\n', &rest).unwrap_or(rest.len());
        at += length + 1;
        number += 1;
        let line = trim(&rest.slice(..length));
        if line.is_empty() {
            continue;
        }
        let bad = |why: String| ImportError::line(number, why);
        scan(&line, &limits).map_err(|error| bad(format!("no JSON that can be used: {error}")))?;
        let Some(said) = reader(&line, &mut beginnings).map_err(bad)? else { continue };
        let talk = recording.talk(&said.key, || said.talk)?;
        for message in said.messages {
            recording.push(ImportedMessage::new(talk, Side::Client, said.at, message))?;
            told.push(said.told);
        }
    }
    settle(&told, &mut recording.heard);
    Ok(recording)
}

fn trim(line: &Bytes) -> Bytes {
    let start = line.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let end = line.len() - line.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
    if start < end { line.slice(start..end) } else { Bytes::new() }
}

/// Returns the value of a member, as a slice of the line.
pub(super) fn value(line: &Bytes, name: &str) -> Option<Bytes> {
    json::member(line, name).map(|span| line.slice(span.range()))
}

/// Returns a member that is a text or a number, as text.
pub(super) fn text(line: &Bytes, name: &str) -> Option<String> {
    let value = value(line, name)?;
    if let Some(text) = json::string(&value) {
        return Some(text.into_owned());
    }
    value.first().filter(|first| first.is_ascii_digit())?;
    Some(String::from_utf8_lossy(&value).into_owned())
}

/// Parses a time: a date, or a number of seconds, milliseconds, microseconds or nanoseconds since 1970.
pub(super) fn moment(value: &Bytes) -> Option<u64> {
    if let Some(text) = json::string(value) {
        return timestamp::parse_rfc3339(&text).or_else(|| number(&text));
    }
    number(std::str::from_utf8(value).ok()?)
}

fn number(text: &str) -> Option<u64> {
    let number: f64 = text.parse().ok()?;
    if !number.is_finite() || number < 0.0 {
        return None;
    }
    let mut scale = 1e9;
    let mut seconds = number;
    while seconds >= MOST_SECONDS && scale > 1.0 {
        seconds /= 1e3;
        scale /= 1e3;
    }
    // Nanoseconds since 1970 exceed the precision of `f64`, so integers are parsed directly.
    if scale <= 1.0 { text.parse().ok() } else { Some((number * scale) as u64) }
}

/// Returns the messages in a value: one, or the elements of a batch.
pub(super) fn messages(value: Bytes) -> Vec<Bytes> {
    if value.first() == Some(&b'[') {
        return json::elements(&value).map(|span| value.slice(span.range())).collect();
    }
    vec![value]
}
