//! Deletes a tape or its beginning a slice at a time, so that no other connection waits long for the file.

use super::connection::learn;
use super::names::{NameIds, NameRole};
use super::row::{ASIDE, Bases, MAX_SEQ, SqliteRow, key, seq_of};
use super::writer::NEAR;
use super::{SqliteFailure, index, notifications, tapes};
use crate::body_codec::{BodyCodec, EncodedBody};
use crate::checkpoint::CheckpointEntry;
use crate::content::{self, Columns};
use crate::retention::Marks;
use crate::splice;
use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use signalbox_engine::record::{Body, Content};
use signalbox_seal::SigningKey;

/// Number of entries deleted in one transaction.
const SLICE: u64 = 5_000;

/// Number of pages of the file freed in one transaction.
const VACUUM_PAGES: u32 = 1_000;

/// Number of index pages merged at a time, and the maximum number of merges.
const MERGE_PAGES: i64 = 500;
const MAX_MERGES: usize = 200;

/// Deletes a tape by its number. If interrupted, the rest stays hidden and is swept later.
pub fn forget_number(connection: &mut Connection, tape: i64) -> Result<u64, SqliteFailure> {
    let hide = "UPDATE tapes SET hidden_since = 0 WHERE number = ?1";
    connection.execute(hide, [tape])?;
    let mut forgotten = 0;
    // The writer of the tape may still be at work. Entries that it adds after the head is gone form a tape again.
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some((first, below)) = next_slice(&transaction, tape, MAX_SEQ)? else {
            forget_head(&transaction, tape)?;
            transaction.commit()?;
            return Ok(forgotten);
        };
        forgotten += forget_rows(&transaction, tape, first, below)?;
        transaction.commit()?;
    }
}

fn forget_head(transaction: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
    for sql in [
        "DELETE FROM exchanges WHERE tape = ?1",
        "DELETE FROM sessions WHERE tape = ?1",
        "DELETE FROM notifications WHERE tape = ?1",
        "DELETE FROM far_references WHERE tape = ?1",
        "DELETE FROM names WHERE tape = ?1",
        "DELETE FROM tapes WHERE number = ?1",
    ] {
        transaction.execute(sql, [tape])?;
    }
    Ok(())
}

/// Deletion of the beginning of a tape that continues.
#[derive(Copy, Clone, Debug)]
pub struct SqliteCut<'a> {
    /// Number of the tape.
    pub tape: i64,
    /// Position below which entries are deleted.
    pub below: u64,
    /// True to leave a mark that the beginning is missing.
    pub marked: bool,
    /// Key that signs a checkpoint if the tape is sealed.
    pub key: Option<&'a SigningKey>,
}

/// Deletes the entries below a position of a tape that continues.
pub fn forget_below(
    connection: &mut Connection,
    codec: &mut BodyCodec,
    cut: SqliteCut<'_>,
) -> Result<u64, SqliteFailure> {
    learn(connection, codec)?;
    let SqliteCut { tape, below, marked, .. } = cut;
    let mut forgotten = 0;
    loop {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let Some((first, end)) = next_slice(&transaction, tape, below)? else {
            return finish_cut(transaction, cut).map(|()| forgotten);
        };
        let mut sums = SliceSums::of(&transaction, tape, first, end)?;
        let marks = if marked { marks(&transaction, codec, tape, first, end)? } else { Marks::default() };
        let mark = marks.next(sums.entries as u64).filter(|_| marked);
        if marked && mark.is_none() {
            return finish_cut(transaction, cut).map(|()| forgotten);
        }
        forgotten += sums.entries as u64 - marks.count;
        detach(&transaction, codec, tape, end)?;
        let counted = notifications::between(&transaction, tape, first, end)?;
        notifications::take_off(&counted, &transaction, tape)?;
        put_checkpoint(&transaction, cut, end)?;
        forget_rows(&transaction, tape, first, end)?;
        if let Some(content) = mark {
            sums.entries -= 1;
            sums.gaps = (sums.entries + 1 - marks.count as i64).max(0);
            sums.aside -= put_mark(&transaction, codec, tape, end - 1, &content)?;
        }
        sums.take_off(&transaction, tape)?;
        transaction.commit()?;
    }
}

/// Deletes exchanges and sessions that have no entries any more.
fn finish_cut(transaction: Transaction<'_>, SqliteCut { tape, below, .. }: SqliteCut<'_>) -> Result<(), SqliteFailure> {
    transaction.execute("DELETE FROM exchanges WHERE tape = ?1 AND last < ?2", [tape, below as i64])?;
    let sql = "DELETE FROM sessions WHERE tape = ?1
        AND ended < coalesce((SELECT at FROM tape_entries WHERE id BETWEEN ?2 AND ?3 LIMIT 1), ended + 1)";
    transaction.execute(sql, [tape, key(tape, below), key(tape, MAX_SEQ)])?;
    transaction.commit()?;
    Ok(())
}

/// Signs the end of the deleted part, if the tape is sealed.
fn put_checkpoint(transaction: &Transaction<'_>, cut: SqliteCut<'_>, end: u64) -> Result<(), SqliteFailure> {
    let sql = "SELECT tape_entries.id, what, extra, tapes.id, seal FROM tape_entries, tapes
        WHERE tape_entries.id >= ?1 AND tape_entries.id < ?2 AND number = ?3 ORDER BY tape_entries.id DESC LIMIT 1";
    let mut select = transaction.prepare_cached(sql)?;
    let mut rows = select.query([key(cut.tape, 0), key(cut.tape, end), cut.tape])?;
    let Some(row) = rows.next()? else { return Ok(()) };
    let extra: Option<Vec<u8>> = row.get(2)?;
    let gone = CheckpointEntry { seq: seq_of(row.get(0)?), what: row.get(1)?, extra: extra.as_deref() };
    let (tape, seal): (String, Option<Vec<u8>>) = (row.get(3)?, row.get(4)?);
    if let Some(seal) = gone.checkpoint(&tape, seal.as_deref(), cut.key)? {
        tapes::set_seal(transaction, cut.tape, &seal)?;
    }
    Ok(())
}

/// Returns the marks that earlier deletions left in a slice.
fn marks(
    transaction: &Transaction<'_>,
    codec: &mut BodyCodec,
    tape: i64,
    first: u64,
    below: u64,
) -> Result<Marks, SqliteFailure> {
    let mut marks = Marks::default();
    let sql = "SELECT form, body FROM tape_entries WHERE id >= ?1 AND id < ?2 AND what = ?3";
    let mut select = transaction.prepare_cached(sql)?;
    let mut rows = select.query([key(tape, first), key(tape, below), i64::from(content::GAP)])?;
    while let Some(row) = rows.next()? {
        let packed = row.get_ref(1)?.as_blob().unwrap_or_default();
        let columns = Columns { what: content::GAP, ..Columns::default() };
        marks.add(&content::unpack(columns, codec.unpack(row.get(0)?, packed)?)?);
    }
    Ok(marks)
}

/// Inserts a mark for the missing entries up to this position. Returns its stored size in bytes.
fn put_mark(
    transaction: &Transaction<'_>,
    codec: &mut BodyCodec,
    tape: i64,
    place: u64,
    content: &Content,
) -> rusqlite::Result<i64> {
    let packed = content::pack(content, codec);
    let principal = NameIds::default().id(transaction, tape, NameRole::Principal, "")?;
    let sql = "INSERT INTO tape_entries (id, at, principal, what, form, body) VALUES (?1,
        coalesce((SELECT at FROM tape_entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1),
        (SELECT last_at FROM tapes WHERE number = ?3), 0), ?4, ?5, ?6, ?7)";
    transaction.prepare_cached(sql)?.execute(params![
        key(tape, place),
        key(tape, MAX_SEQ),
        tape,
        principal,
        content::what(content),
        packed.form,
        &packed.bytes[..],
    ])?;
    Ok(packed.bytes.len() as i64)
}

/// Returns the next range of positions to delete: its first, and the position after its last.
fn next_slice(transaction: &Transaction<'_>, tape: i64, below: u64) -> rusqlite::Result<Option<(u64, u64)>> {
    let sql = "SELECT id FROM tape_entries WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT 1";
    let first: Option<i64> =
        transaction.prepare_cached(sql)?.query_row([key(tape, 0), key(tape, below)], |row| row.get(0)).optional()?;
    Ok(first.map(|first| (seq_of(first), below.min(seq_of(first) + SLICE))))
}

fn forget_rows(transaction: &Transaction<'_>, tape: i64, first: u64, below: u64) -> rusqlite::Result<u64> {
    let sql = "DELETE FROM tape_entries WHERE id >= ?1 AND id < ?2";
    let count = transaction.prepare_cached(sql)?.execute([key(tape, first), key(tape, below)])?;
    index::forget(transaction, tape, first, below)?;
    transaction.execute("DELETE FROM far_references WHERE tape = ?1 AND base < ?2", [tape, below as i64])?;
    Ok(count as u64)
}

/// Detaches remaining entries from a deleted base. The first of them becomes whole, and the others refer to it.
fn detach(transaction: &Transaction<'_>, codec: &mut BodyCodec, tape: i64, below: u64) -> Result<(), SqliteFailure> {
    let mut bases = Bases::default();
    let mut successors: Vec<(u64, u64, Bytes)> = Vec::new();
    for seq in referring(transaction, tape, below)? {
        let sql = format!("SELECT {} FROM tape_entries WHERE id = ?1", SqliteRow::COLUMNS);
        let mut select = transaction.prepare_cached(&sql)?;
        let mut rows = select.query([key(tape, seq)])?;
        let Some(row) = rows.next()? else { continue };
        let row = SqliteRow::read(row)?;
        let body = row.body(codec)?;
        let Body::Like { seq: base, .. } = body else { continue };
        let Some(whole) = bases.whole(transaction, codec, row.id, body)? else { continue };
        drop(rows);
        let packed = match successors.iter().find(|(of, _, _)| *of == base) {
            Some((_, successor, like)) => codec.pack(&splice::encode_like(*successor, like, &whole)),
            None => {
                successors.push((base, seq, whole.clone()));
                codec.pack(&Body::Whole(whole))
            }
        };
        replace(transaction, tape, seq, &packed)?;
        if let Some((_, successor, _)) =
            successors.iter().find(|(of, successor, _)| *of == base && seq - *successor > NEAR)
        {
            let sql = "INSERT OR IGNORE INTO far_references (tape, base, seq) VALUES (?1, ?2, ?3)";
            transaction.prepare_cached(sql)?.execute([tape, *successor as i64, seq as i64])?;
        }
    }
    Ok(())
}

/// Returns the positions at or above `below` that refer to one below it.
fn referring(transaction: &Transaction<'_>, tape: i64, below: u64) -> Result<Vec<u64>, SqliteFailure> {
    let mut found = Vec::new();
    let sql = "SELECT id, form, body FROM tape_entries WHERE id >= ?1 AND id < ?2";
    let mut select = transaction.prepare_cached(sql)?;
    let mut rows = select.query([key(tape, below), key(tape, below + NEAR)])?;
    while let Some(row) = rows.next()? {
        let packed = row.get_ref(2)?.as_blob().unwrap_or_default();
        if crate::body_codec::refers_to(row.get(1)?, packed).is_some_and(|base| base < below) {
            found.push(seq_of(row.get(0)?));
        }
    }
    let sql = "SELECT seq FROM far_references WHERE tape = ?1 AND base < ?2 AND seq >= ?2";
    let mut select = transaction.prepare_cached(sql)?;
    let mut rows = select.query([tape, below as i64])?;
    while let Some(row) = rows.next()? {
        found.push(row.get::<_, i64>(0)? as u64);
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

fn replace(transaction: &Transaction<'_>, tape: i64, seq: u64, packed: &EncodedBody) -> rusqlite::Result<()> {
    let id = key(tape, seq);
    let sql = "UPDATE tapes SET kept = kept + ?2 - (SELECT length(body) FROM tape_entries WHERE id = ?3)
        WHERE number = ?1";
    transaction.prepare_cached(sql)?.execute(params![tape, packed.bytes.len() as i64, id])?;
    let sql = "UPDATE tape_entries SET form = ?2, body = ?3 WHERE id = ?1";
    transaction.prepare_cached(sql)?.execute(params![id, packed.form, &packed.bytes[..]])?;
    Ok(())
}

/// Totals of a deleted slice, to subtract from those of its tape.
struct SliceSums {
    entries: i64,
    kinds: [i64; 5],
    passed: i64,
    kept: i64,
    aside: i64,
    /// Number of missing facts that the new mark adds.
    gaps: i64,
}

impl SliceSums {
    fn of(transaction: &Transaction<'_>, tape: i64, first: u64, below: u64) -> rusqlite::Result<Self> {
        let sql = format!(
            "SELECT what, count(*), coalesce(sum(length), 0), sum(length(body)), {ASIDE} FROM tape_entries
            WHERE id >= ?1 AND id < ?2 GROUP BY what"
        );
        let mut select = transaction.prepare_cached(&sql)?;
        let mut rows = select.query([key(tape, first), key(tape, below)])?;
        let mut sums = Self { entries: 0, kinds: [0; 5], passed: 0, kept: 0, aside: 0, gaps: 0 };
        while let Some(row) = rows.next()? {
            let (what, count): (u8, i64) = (row.get(0)?, row.get(1)?);
            sums.entries += count;
            sums.aside += row.get::<_, i64>(4)?;
            if let Some(kind) = content::kind_of(what) {
                sums.kinds[kind] += count;
                sums.passed += row.get::<_, i64>(2)?;
                sums.kept += row.get::<_, i64>(3)?;
            }
        }
        Ok(sums)
    }

    fn take_off(&self, transaction: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
        let [requests, notifications, results, errors, raws] = self.kinds;
        let sql = "UPDATE tapes SET entries = entries - ?2, requests = requests - ?3,
            notifications = notifications - ?4, results = results - ?5, errors = errors - ?6, raws = raws - ?7,
            passed = passed - ?8, kept = kept - ?9, aside = aside - ?12, gaps = gaps + ?13,
            first_at = coalesce((SELECT at FROM tape_entries WHERE id BETWEEN ?10 AND ?11 LIMIT 1), last_at)
            WHERE number = ?1";
        let (low, high) = (key(tape, 0), key(tape, u64::MAX));
        transaction.prepare_cached(sql)?.execute(params![
            tape,
            self.entries,
            requests,
            notifications,
            results,
            errors,
            raws,
            self.passed,
            self.kept,
            low,
            high,
            self.aside,
            self.gaps,
        ])?;
        Ok(())
    }
}

/// Returns free pages to the file system.
pub fn shrink(connection: &mut Connection) -> Result<(), SqliteFailure> {
    for _ in 0..MAX_MERGES {
        let before = connection.total_changes();
        connection.execute("INSERT INTO tape_search (tape_search, rank) VALUES ('merge', ?1)", [MERGE_PAGES])?;
        if connection.total_changes() - before < 2 {
            break;
        }
    }
    loop {
        let free: u32 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
        if free == 0 {
            break;
        }
        let mut vacuum = connection.prepare(&format!("PRAGMA incremental_vacuum({VACUUM_PAGES})"))?;
        let mut rows = vacuum.query([])?;
        while rows.next()?.is_some() {}
        drop(rows);
        drop(vacuum);
        let left: u32 = connection.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
        if left >= free {
            break;
        }
    }
    // If other connections are reading, the file shrinks when they are done.
    let _ = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    Ok(())
}

/// Returns the number of bytes of the file in use.
pub fn used(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
    let (pages, free) = (number("PRAGMA page_count")?, number("PRAGMA freelist_count")?);
    Ok(((pages - free) * number("PRAGMA page_size")?) as u64)
}
