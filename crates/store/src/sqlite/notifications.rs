//! The table with the counts of notifications received and sent, by method.

use super::SqliteFailure;
use super::names::{NameRef, NameRole, NamesById};
use super::row::key;
use crate::notifications::{NotificationCounts, Notifications};
use rusqlite::{Connection, Transaction};

/// Counts the notifications between two positions of a tape, by the number of their method.
pub fn between(
    transaction: &Transaction<'_>,
    tape: i64,
    first: u64,
    below: u64,
) -> rusqlite::Result<Notifications<i64>> {
    let mut all = Notifications::default();
    let mut select = transaction.prepare_cached("SELECT what, method FROM tape_entries WHERE id >= ?1 AND id < ?2")?;
    let mut rows = select.query([key(tape, first), key(tape, below)])?;
    while let Some(row) = rows.next()? {
        all.add(row.get(0)?, row.get(1)?);
    }
    Ok(all)
}

/// Adds the counts to those of the tape.
pub fn keep(counted: &Notifications<i64>, transaction: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
    change(counted, transaction, tape, 1)
}

/// Subtracts the counts from those of the tape.
pub fn take_off(counted: &Notifications<i64>, transaction: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
    change(counted, transaction, tape, -1)
}

fn change(counted: &Notifications<i64>, transaction: &Transaction<'_>, tape: i64, sign: i64) -> rusqlite::Result<()> {
    if counted.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO notifications (tape, method, came, went) VALUES (?1, ?2, ?3, ?4)
        ON CONFLICT (tape, method) DO UPDATE SET came = came + excluded.came, went = went + excluded.went";
    let mut upsert = transaction.prepare_cached(sql)?;
    for (method, [came, went]) in counted.counts() {
        upsert.execute([tape, *method, sign * came, sign * went])?;
    }
    Ok(())
}

/// Adds the counts of a tape to the totals by name.
pub fn add(
    connection: &Connection,
    tape: i64,
    names: &mut NamesById,
    told: &mut NotificationCounts,
) -> Result<(), SqliteFailure> {
    let mut select = connection.prepare_cached("SELECT method, came, went FROM notifications WHERE tape = ?1")?;
    let mut rows = select.query([tape])?;
    while let Some(row) = rows.next()? {
        let method = NameRef { tape, role: NameRole::Method, id: row.get(0)? };
        let name = names.name(connection, method)?.map_or_else(String::new, ToString::to_string);
        told.add(name, [row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64]);
    }
    Ok(())
}
