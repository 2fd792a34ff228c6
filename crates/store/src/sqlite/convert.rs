//! The steps from an older version of the tables to the next.

use super::key::{MAX_SEQ, key, seq_of};
use super::notifications;
use super::row::ASIDE;
use rusqlite::{OptionalExtension, Transaction};

/// How many places are counted at a time.
const SLICE: u64 = 100_000;

/// Version 2 only adds columns, which rows of version 1 do not have, and counts notifications by their method.
pub fn to_version_2(file: &Transaction<'_>) -> rusqlite::Result<()> {
    file.execute_batch(
        "ALTER TABLE tapes ADD COLUMN parent TEXT;
         ALTER TABLE tapes ADD COLUMN seal BLOB;
         ALTER TABLE sessions ADD COLUMN proof TEXT;
         ALTER TABLE sessions ADD COLUMN address TEXT;
         ALTER TABLE sessions ADD COLUMN claims BLOB;
         ALTER TABLE tape_entries ADD COLUMN extra BLOB;
         CREATE TABLE notifications (
             tape INTEGER NOT NULL,
             method INTEGER NOT NULL,
             came INTEGER NOT NULL,
             went INTEGER NOT NULL,
             PRIMARY KEY (tape, method)
         ) STRICT, WITHOUT ROWID;",
    )?;
    let mut select = file.prepare("SELECT number FROM tapes WHERE notifications > 0")?;
    let tapes = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    tapes.into_iter().try_for_each(|tape| count(file, tape))
}

/// Version 3 knows how much a tape keeps besides the bodies of messages.
pub fn to_version_3(file: &Transaction<'_>) -> rusqlite::Result<()> {
    file.execute_batch("ALTER TABLE tapes ADD COLUMN aside INTEGER NOT NULL DEFAULT 0")?;
    let sql = format!(
        "UPDATE tapes SET aside = (SELECT {ASIDE} FROM tape_entries WHERE id BETWEEN ?2 AND ?3) WHERE number = ?1"
    );
    let mut select = file.prepare("SELECT number FROM tapes")?;
    let tapes = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    for tape in tapes {
        file.execute(&sql, [tape, key(tape, 0), key(tape, MAX_SEQ)])?;
    }
    Ok(())
}

fn count(file: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
    let mut from = 0;
    loop {
        let sql = "SELECT id FROM tape_entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1";
        let mut next = file.prepare_cached(sql)?;
        let first: Option<i64> = next.query_row([key(tape, from), key(tape, MAX_SEQ)], |row| row.get(0)).optional()?;
        let Some(first) = first.map(seq_of) else { return Ok(()) };
        from = first + SLICE;
        notifications::keep(&notifications::between(file, tape, first, from)?, file, tape)?;
    }
}
