//! Reads the figures of `signalbox tape stats` from the tables.

use super::names::{NameRef, NameRole, NamesById};
use super::{SqliteFailure, notifications, tapes};
use crate::notifications::NotificationCounts;
use rusqlite::Connection;
use signalbox_engine::record::tally::{FinishedExchange, Tally};
use signalbox_engine::record::{MessageKind, Stats};

/// Returns the figures of one tape, or of all.
pub fn stats(connection: &Connection, tape: Option<&str>) -> Result<Stats, SqliteFailure> {
    let tapes = match tape {
        Some(asked) => vec![tapes::meant(connection, asked)?],
        None => tapes::all(connection)?,
    };
    let mut stats =
        Stats { messages: MessageKind::ALL.map(|kind| (kind.word().to_owned(), 0)).into(), ..Stats::default() };
    let mut tally = Tally::default();
    let mut names = NamesById::default();
    let mut told = NotificationCounts::default();
    for tape in tapes {
        count(connection, tape.number, &mut stats)?;
        add(connection, tape.number, &mut tally, &mut names)?;
        notifications::add(connection, tape.number, &mut names, &mut told)?;
    }
    stats.notifications = told.finish();
    tally.tell(&mut stats);
    Ok(stats)
}

/// Returns the number of facts missing from a tape.
pub fn gaps(connection: &Connection, tape: &str) -> Result<u64, SqliteFailure> {
    let number = tapes::meant(connection, tape)?.number;
    let mut select = connection.prepare_cached("SELECT gaps FROM tapes WHERE number = ?1")?;
    Ok(select.query_row([number], |row| row.get::<_, i64>(0))? as u64)
}

fn count(connection: &Connection, tape: i64, stats: &mut Stats) -> rusqlite::Result<()> {
    let sql = "SELECT requests, notifications, results, errors, raws, gaps, passed, kept FROM tapes WHERE number = ?1";
    connection.prepare_cached(sql)?.query_row([tape], |row| {
        for (place, (_, count)) in stats.messages.iter_mut().enumerate() {
            *count += row.get::<_, i64>(place)? as u64;
        }
        stats.gaps = stats.gaps.saturating_add(row.get::<_, i64>(5)? as u64);
        stats.bytes.0 = stats.bytes.0.saturating_add(row.get::<_, i64>(6)? as u64);
        stats.bytes.1 = stats.bytes.1.saturating_add(row.get::<_, i64>(7)? as u64);
        Ok(())
    })
}

fn add(connection: &Connection, tape: i64, tally: &mut Tally, names: &mut NamesById) -> Result<(), SqliteFailure> {
    let sql = "SELECT method, subject, well, took, bytes_in, bytes_out FROM exchanges
        WHERE tape = ?1 AND took IS NOT NULL";
    let mut select = connection.prepare_cached(sql)?;
    let mut rows = select.query([tape])?;
    while let Some(row) = rows.next()? {
        let number = |place: usize| row.get::<_, Option<i64>>(place).map(|number| number.unwrap_or(0) as u64);
        let mut name = |role, place: usize| -> Result<Option<String>, SqliteFailure> {
            let Some(id) = row.get::<_, Option<i64>>(place)? else { return Ok(None) };
            Ok(names.name(connection, NameRef { tape, role, id })?.map(|name| name.to_string()))
        };
        let (method, subject) = (name(NameRole::Method, 0)?.unwrap_or_default(), name(NameRole::Subject, 1)?);
        tally.add(&FinishedExchange {
            method: &method,
            subject: subject.as_deref(),
            well: row.get::<_, Option<bool>>(2)?.unwrap_or(true),
            took: number(3)?,
            bytes: (number(4)?, number(5)?),
        });
    }
    Ok(())
}
