//! The search index: for each group of entries, the words of its messages and marks of their other attributes.
//!
//! Rows that are not indexed yet are scanned one by one. The index only makes searches fast and never decides what they
//! find.

use super::SqliteFailure;
use super::connection::learn;
use super::names::NameRole;
use super::row::{Bases, SqliteRow, complete, group, key, keys_of, seq_of};
use crate::body_codec::BodyCodec;
use crate::text::{is_searched, words_of};
use crate::word_set::WordSet;
use foldhash::HashSet;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};
use std::collections::VecDeque;
use std::fmt::Write;
use std::time::{Duration, Instant};

/// Bounds of one read. A reader prevents the log from being written back.
const SLICE: u64 = 8_192;
const MAX_READING: Duration = Duration::from_millis(50);

/// Duration after which a transaction ends, since the writer waits for it.
const MAX_WRITING: Duration = Duration::from_millis(5);

/// Minimum number of positions worth indexing. Fewer are scanned until there are more.
pub const WORTH: u64 = 4_096;

/// Prefix of index words that are not words of a message. No such word can begin with it.
const MARK: char = '§';

/// Returns the index word of a name.
pub fn name_mark(role: NameRole, id: i64) -> String {
    format!("{MARK}{}{id}", role.letter())
}

/// Returns the index word of a session.
pub fn session_mark(session: i64) -> String {
    format!("{MARK}n{session}")
}

/// Returns the index word of an error code. A minus sign would end the word.
pub fn error_mark(code: i64) -> String {
    let sign = if code < 0 { "n" } else { "" };
    format!("{MARK}e{sign}{}", code.unsigned_abs())
}

/// Last position of a tape, and its last indexed position.
#[derive(Copy, Clone, Default, Debug)]
pub struct IndexProgress {
    pub indexed: u64,
    pub last: u64,
}

impl IndexProgress {
    /// Returns the number of positions that are not indexed.
    pub fn behind(self) -> u64 {
        self.last.saturating_sub(self.indexed)
    }
}

/// Extent of the part to index.
#[derive(Copy, Clone)]
pub enum Extent<'a> {
    /// Complete groups only. The function is called before each transaction.
    Groups(&'a dyn Fn()),
    /// Includes the last, incomplete group, for a tape that has ended.
    Whole,
}

/// Returns the progress of a tape's index. A tape that does not exist is at its beginning.
pub fn progress(connection: &Connection, tape: i64) -> Result<IndexProgress, SqliteFailure> {
    let mut select = connection.prepare_cached("SELECT indexed, last_seq FROM tapes WHERE number = ?1")?;
    let read =
        |row: &Row<'_>| Ok(IndexProgress { indexed: row.get::<_, i64>(0)? as u64, last: row.get::<_, i64>(1)? as u64 });
    Ok(select.query_row([tape], read).optional()?.unwrap_or_default())
}

/// Returns other tapes with complete groups that are not indexed.
pub fn waiting(connection: &Connection, but: i64, most: i64) -> Result<Vec<i64>, SqliteFailure> {
    let sql = "SELECT number FROM tapes WHERE number <> ?1 AND last_seq > indexed + 64 LIMIT ?2";
    let mut select = connection.prepare(sql)?;
    Ok(select.query_map([but, most], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?)
}

/// Indexes a slice of a tape. Returns true if more is left, or if another connection indexes the same tape.
pub fn slice(
    connection: &mut Connection,
    codec: &mut BodyCodec,
    tape: i64,
    extent: Extent<'_>,
) -> Result<bool, SqliteFailure> {
    let IndexProgress { indexed, last } = progress(connection, tape)?;
    let end = if matches!(extent, Extent::Whole) { last } else { complete(last) };
    if end <= indexed {
        return Ok(false);
    }
    let upto = if end - indexed > SLICE { complete(indexed + SLICE) } else { end };
    // Reading and splitting words takes the most time and needs no lock.
    let mut groups = read(connection, codec, tape, indexed + 1, upto)?;
    // Positions without an entry have no group.
    let upto = if groups.cut { last_of(&groups.words).unwrap_or(upto) } else { upto };
    let mut at = indexed;
    while at < upto {
        if let Extent::Groups(before_writing) = extent {
            before_writing();
        }
        let Some(next) = add(connection, tape, at, upto, &mut groups.words)? else { return Ok(true) };
        at = next;
    }
    Ok(end > upto)
}

/// Returns the last position of these groups.
fn last_of(groups: &VecDeque<(i64, String)>) -> Option<u64> {
    groups.back().map(|(group, _)| seq_of(keys_of(*group).1))
}

/// Adds groups to the index in one short transaction, and returns the last indexed position. `None` if the index did
/// not end at `from`, because another connection has indexed the tape.
fn add(
    connection: &mut Connection,
    tape: i64,
    from: u64,
    upto: u64,
    groups: &mut VecDeque<(i64, String)>,
) -> Result<Option<u64>, SqliteFailure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let begun = Instant::now();
    let mut indexed = upto;
    let mut insert = transaction.prepare_cached("REPLACE INTO tape_search (rowid, words) VALUES (?1, ?2)")?;
    while let Some((group, words)) = groups.pop_front() {
        insert.execute(params![group, words])?;
        if begun.elapsed() >= MAX_WRITING && !groups.is_empty() {
            indexed = seq_of(keys_of(group).1);
            break;
        }
    }
    drop(insert);
    let sql = "UPDATE tapes SET indexed = ?3 WHERE number = ?1 AND indexed = ?2 RETURNING 1";
    let places = [tape, from as i64, indexed as i64];
    if transaction.prepare_cached(sql)?.query_row(places, |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    transaction.commit()?;
    Ok(Some(indexed))
}

/// Index words of consecutive groups.
#[derive(Default)]
struct Groups {
    words: VecDeque<(i64, String)>,
    /// True if the time limit ended the read early, so that the last groups are missing.
    cut: bool,
}

fn read(
    connection: &Connection,
    codec: &mut BodyCodec,
    tape: i64,
    from: u64,
    upto: u64,
) -> Result<Groups, SqliteFailure> {
    learn(connection, codec)?;
    let sql = format!("SELECT {} FROM tape_entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id", SqliteRow::COLUMNS);
    let mut select = connection.prepare_cached(&sql)?;
    let mut rows = select.query([key(tape, from), key(tape, upto)])?;
    let mut bases = Bases::default();
    let begun = Instant::now();
    let mut made = Groups::default();
    let mut words = Words::default();
    let mut current = None;
    while let Some(row) = rows.next()? {
        let row = SqliteRow::read(row)?;
        let this = group(row.id);
        if let Some(before) = current.replace(this)
            && before != this
        {
            made.words.push_back((before, words.take()));
            if begun.elapsed() >= MAX_READING {
                made.cut = true;
                return Ok(made);
            }
        }
        words.add(connection, codec, &mut bases, &row)?;
    }
    if let Some(last) = current {
        made.words.push_back((last, words.take()));
    }
    Ok(made)
}

/// Distinct words of a group.
#[derive(Default, Debug)]
struct Words {
    seen: WordSet,
    names: HashSet<(&'static str, i64)>,
    text: String,
}

impl Words {
    fn add(
        &mut self,
        connection: &Connection,
        codec: &mut BodyCodec,
        bases: &mut Bases,
        row: &SqliteRow<'_>,
    ) -> Result<(), SqliteFailure> {
        self.name(NameRole::Principal.letter(), Some(row.principal));
        self.name(NameRole::Method.letter(), row.method);
        self.name(NameRole::Subject.letter(), row.subject);
        self.name(NameRole::Backend.letter(), row.backend);
        self.name("n", row.session);
        if let Some(code) = row.error_code
            && self.names.insert(("e", code))
        {
            self.text.push_str(&error_mark(code));
            self.text.push(' ');
        }
        if !row.is_message() {
            return Ok(());
        }
        let body = row.body(codec)?;
        if !is_searched(&body) {
            return Ok(());
        }
        let Some(whole) = bases.whole(connection, codec, row.id, body)? else { return Ok(()) };
        words_of(&whole, |word| {
            if self.seen.insert(word) {
                word.with(|word| self.text.push_str(word));
                self.text.push(' ');
            }
        });
        Ok(())
    }

    fn name(&mut self, letter: &'static str, id: Option<i64>) {
        if let Some(id) = id
            && self.names.insert((letter, id))
        {
            // Writing to a `String` cannot fail.
            let _ = write!(self.text, "{MARK}{letter}{id} ");
        }
    }

    fn take(&mut self) -> String {
        self.seen.clear();
        self.names.clear();
        std::mem::take(&mut self.text)
    }
}

/// Deletes the groups that lie completely between two positions of a tape.
pub fn forget(connection: &Connection, tape: i64, from: u64, below: u64) -> rusqlite::Result<()> {
    let first = group(key(tape, from));
    let mut last = group(key(tape, below));
    if seq_of(keys_of(last).1) >= below {
        last -= 1;
    }
    let mut delete = connection.prepare_cached("DELETE FROM tape_search WHERE rowid = ?1")?;
    for group in first..=last {
        delete.execute([group])?;
    }
    Ok(())
}
