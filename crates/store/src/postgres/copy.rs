//! Rows in the binary format of `COPY`, and the only list of the columns of an entry.

use super::row::escape;
use crate::body_codec::{EncodedBody, refers_to};
use crate::content;
use signalbox_engine::record::Entry;

/// Header of every copy: a signature, flags, and the length of an empty extension.
const HEAD: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// Trailer of every copy, in place of the number of fields of the next row.
const TAIL: [u8; 2] = (-1i16).to_be_bytes();

/// Entry to insert into the table.
pub struct EntryRow<'a> {
    /// Number of its tape.
    pub tape: i64,
    pub entry: &'a Entry,
    /// Packed content without its columns.
    pub packed: &'a EncodedBody,
    /// Attributes that only some entries have; see [`crate::extra`].
    pub extra: Option<&'a [u8]>,
}

/// Name of a column, and the function that writes its value.
type Column = (&'static str, fn(&mut Copy, &EntryRow<'_>));

/// Columns of an entry. A new one has to be added here and in the tables.
const COLUMNS: &[Column] = &[
    ("tape", |copy, row| copy.number(row.tape)),
    ("seq", |copy, row| copy.number(row.entry.seq as i64)),
    ("at", |copy, row| copy.number(row.entry.at as i64)),
    ("session", |copy, row| copy.optional(row.entry.session.map(|number| number as i64))),
    ("exchange", |copy, row| copy.optional(row.entry.exchange.map(|number| number as i64))),
    ("principal", |copy, row| copy.text(Some(&row.entry.principal))),
    ("what", |copy, row| copy.small(content::what(&row.entry.content))),
    ("method", |copy, row| copy.text(content::names(&row.entry.content).method)),
    ("subject", |copy, row| copy.text(content::names(&row.entry.content).subject)),
    ("backend", |copy, row| copy.text(content::names(&row.entry.content).backend)),
    ("error_code", |copy, row| copy.optional(content::names(&row.entry.content).error_code)),
    ("length", |copy, row| copy.optional(content::length(&row.entry.content).map(|length| length as i64))),
    ("form", |copy, row| copy.small(row.packed.form)),
    ("body", |copy, row| copy.bytes(&row.packed.bytes)),
    ("base", |copy, row| copy.optional(refers_to(row.packed.form, &row.packed.bytes).map(|base| base as i64))),
    ("extra", |copy, row| match row.extra {
        Some(extra) => copy.bytes(extra),
        None => copy.null(),
    }),
];

/// Returns the statement that receives rows of entries.
pub fn entries_sql() -> String {
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).collect();
    format!("COPY tape_entries ({}) FROM STDIN (FORMAT binary)", names.join(", "))
}

/// Statement that receives rows of words.
pub const WORDS_SQL: &str = "COPY tape_words (tape, first, last, words) FROM STDIN (FORMAT binary)";

/// Encoded rows of one table.
pub struct Copy {
    bytes: Vec<u8>,
}

impl Copy {
    /// Creates a copy with a header and no rows.
    pub fn new() -> Self {
        Self { bytes: HEAD.to_vec() }
    }

    /// Returns the number of encoded bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the bytes so far, to send them before the rest.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Returns the remaining bytes with the trailer.
    pub fn finish(mut self) -> Vec<u8> {
        self.bytes.extend(TAIL);
        self.bytes
    }

    /// Appends the row of an entry.
    pub fn entry(&mut self, row: &EntryRow<'_>) {
        self.row(COLUMNS.len());
        for (_, put) in COLUMNS {
            put(self, row);
        }
    }

    /// Appends the words of a run of entries, each once and in order.
    pub fn words(&mut self, tape: i64, first: u64, last: u64, words: &[&str]) {
        self.row(4);
        self.number(tape);
        self.number(first as i64);
        self.number(last as i64);
        // A word ends with a NUL byte, and has no positions.
        let length: usize = words.iter().map(|word| word.len() + 3).sum();
        self.head(4 + length);
        self.bytes.extend((words.len() as u32).to_be_bytes());
        for word in words {
            self.bytes.extend_from_slice(word.as_bytes());
            self.bytes.extend([0; 3]);
        }
    }

    fn row(&mut self, fields: usize) {
        self.bytes.extend((fields as i16).to_be_bytes());
    }

    fn head(&mut self, length: usize) {
        self.bytes.extend((length as i32).to_be_bytes());
    }

    fn null(&mut self) {
        self.bytes.extend((-1i32).to_be_bytes());
    }

    fn number(&mut self, number: i64) {
        self.head(8);
        self.bytes.extend(number.to_be_bytes());
    }

    fn optional(&mut self, number: Option<i64>) {
        match number {
            Some(number) => self.number(number),
            None => self.null(),
        }
    }

    fn small(&mut self, number: u8) {
        self.head(2);
        self.bytes.extend(i16::from(number).to_be_bytes());
    }

    fn text(&mut self, text: Option<&str>) {
        match text {
            Some(text) => self.bytes(escape(text).as_bytes()),
            None => self.null(),
        }
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.head(bytes.len());
        self.bytes.extend_from_slice(bytes);
    }
}
