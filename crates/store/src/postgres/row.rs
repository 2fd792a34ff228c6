//! Rows of the table of entries, and their conversion to entries.

use super::Failure;
use crate::body_codec::BodyCodec;
use crate::content::{self, Columns, MESSAGE};
use crate::pack::DecodeError;
use crate::{extra, splice};
use ::postgres::{GenericClient, Row};
use bytes::Bytes;
use foldhash::HashMap;
use signalbox_engine::record::{Body, Content, Entry, Hit};
use std::borrow::Cow;

/// Columns in the order in which [`PostgresRow::read`] expects them.
pub const COLUMNS: &str = "e.tape, t.id, e.seq, e.at, e.session, e.exchange, e.principal, e.what, e.method, e.subject,
    e.backend, e.error_code, e.length, e.form, e.body, e.extra";

/// SQL expression for the stored size of an entry. The names of an end are stored with its exchange as well.
pub const BYTES: &str =
    "(octet_length(body) + coalesce(octet_length(extra), 0) + (CASE WHEN what = 4 THEN 2 ELSE 1 END)
    * (octet_length(principal) + coalesce(octet_length(method), 0) + coalesce(octet_length(subject), 0)
    + coalesce(octet_length(backend), 0)))";

/// Returns the SQL expression for the stored size of entries besides the bodies of messages.
pub fn aside() -> String {
    format!("coalesce(sum({BYTES} - CASE WHEN what < {MESSAGE} THEN 0 ELSE octet_length(body) END), 0)::bigint")
}

/// Returns the size of an entry's names, as [`BYTES`] counts them.
pub fn name_bytes(entry: &Entry) -> usize {
    let names = content::names(&entry.content);
    let all = [Some(&*entry.principal), names.method, names.subject, names.backend];
    let bytes: usize = all.into_iter().flatten().map(|name| escape(name).len()).sum();
    if matches!(entry.content, Content::Finished(_)) { 2 * bytes } else { bytes }
}

/// Row with its body in stored form.
#[derive(Debug)]
pub struct PostgresRow {
    /// Number of its tape.
    pub tape: i64,
    /// Entry of the row, without its body.
    pub hit: Hit,
    /// Body in stored form.
    pub body: Body,
    columns: Option<Columns>,
    extra: Option<Vec<u8>>,
}

impl PostgresRow {
    /// Converts the columns of a row.
    pub fn read(row: &Row, codec: &mut BodyCodec) -> Result<Self, DecodeError> {
        let number = |place: usize| row.get::<_, i64>(place) as u64;
        let optional = |place: usize| row.get::<_, Option<i64>>(place);
        let text = |place: usize| row.get::<_, Option<String>>(place).map(|text| unescape(text).into());
        let byte =
            |place: usize| u8::try_from(row.get::<_, i16>(place)).map_err(|_| DecodeError("a code is out of range"));
        let body = codec.unpack(byte(13)?, row.get(14))?;
        let columns = Columns {
            what: byte(7)?,
            method: text(8),
            subject: text(9),
            backend: text(10),
            error_code: optional(11),
            length: optional(12).map(|length| length as u64),
        };
        let content = Content::SessionEnded;
        let entry = Entry {
            session: optional(4).map(|number| number as u64),
            exchange: optional(5).map(|number| number as u64),
            ..Entry::new(number(2), number(3), unescape(row.get(6)).into(), content)
        };
        let hit = Hit { tape: unescape(row.get(1)), entry };
        Ok(Self { tape: row.get(0), hit, body, columns: Some(columns), extra: row.get(15) })
    }

    /// Returns true if the entry is a message.
    pub fn is_message(&self) -> bool {
        self.columns.as_ref().is_some_and(|columns| content::is_message(columns.what))
    }

    /// Returns the entry that its body refers to.
    pub fn base(&self) -> Option<u64> {
        match self.body {
            Body::Like { seq, .. } => Some(seq),
            _ => None,
        }
    }

    /// Returns its whole body, joined with its base; `None` if none is stored, or the base is gone.
    pub fn whole(&self, bases: &HashMap<(i64, u64), Bytes>) -> Option<Bytes> {
        match &self.body {
            Body::Left => None,
            Body::Whole(whole) => Some(whole.clone()),
            Body::Like { seq, prefix, suffix, middle } => {
                splice::join(bases.get(&(self.tape, *seq))?, *prefix, *suffix, middle)
            }
        }
    }

    /// Decodes the content and returns the hit. A message gets the body `whole`.
    pub fn finish(mut self, whole: Option<Bytes>) -> Result<Hit, DecodeError> {
        let columns = self.columns.take().unwrap_or_default();
        let body = if content::is_message(columns.what) { whole.map_or(Body::Left, Body::Whole) } else { self.body };
        self.hit.entry.content = content::unpack(columns, body)?;
        if let Some(packed) = &self.extra {
            extra::unpack(packed, &mut self.hit.entry)?;
        }
        Ok(self.hit)
    }
}

/// Returns the whole bodies of these entries of a tape.
pub fn bases(
    client: &mut impl GenericClient,
    codec: &mut BodyCodec,
    tape: i64,
    places: &[i64],
) -> Result<Vec<(u64, Bytes)>, Failure> {
    let sql = "SELECT seq, form, body FROM tape_entries WHERE tape = $1 AND seq = ANY($2)";
    let mut found = Vec::new();
    for row in client.query(sql, &[&tape, &places])? {
        let form = u8::try_from(row.get::<_, i16>(1)).map_err(|_| DecodeError("a code is out of range"))?;
        // The recorder writes only whole bases. Do not follow any other.
        if let Body::Whole(whole) = codec.unpack(form, row.get(2))? {
            found.push((row.get::<_, i64>(0) as u64, whole));
        }
    }
    Ok(found)
}

/// Escapes a NUL as `\0` and a backslash as `\\`. A prefix of a text becomes a prefix of its escaped form.
pub fn escape(text: &str) -> Cow<'_, str> {
    if text.contains(['\0', '\\']) { text.replace('\\', "\\\\").replace('\0', "\\0").into() } else { text.into() }
}

/// Restores a text from its [`escape`]d form.
pub fn unescape(text: String) -> String {
    if !text.contains('\\') {
        return text;
    }
    let mut characters = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(character) = characters.next() {
        match character {
            '\\' => plain.extend(characters.next().map(|next| if next == '0' { '\0' } else { next })),
            other => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_what_its_code_says() {
        assert!(BYTES.contains(&format!("what = {} ", content::FINISHED)));
    }

    #[test]
    fn what_is_escaped_comes_back() {
        for text in ["", "plain", "\0", "\\0", "a\\\0b\\\\", "\\"] {
            let escaped = escape(text);
            assert!(!escaped.contains('\0'));
            assert_eq!(unescape(escaped.into_owned()), text);
        }
    }
}
