//! Reads all that is derived from the entries of a tape.

use super::names::{NameRef, NameRole, NamesById};
use super::{SqliteFailure, tapes};
use rusqlite::{Connection, Row};
use signalbox_engine::record::{ExchangeRow, SessionRow, TapeTables, TapeTotals};
use std::sync::Arc;

/// Returns the tables of a tape, all as of one moment.
pub fn tables(connection: &mut Connection, asked: &str) -> Result<TapeTables, SqliteFailure> {
    let transaction = connection.transaction()?;
    let tape = tapes::meant(&transaction, asked)?.number;
    let mut reading = TableReader { connection: &transaction, tape, names: NamesById::default() };
    let mut tables = TapeTables::new(reading.totals()?);
    reading.sessions(&mut tables)?;
    reading.exchanges(&mut tables)?;
    reading.notifications(&mut tables)?;
    Ok(tables)
}

struct TableReader<'a> {
    connection: &'a Connection,
    tape: i64,
    names: NamesById,
}

impl TableReader<'_> {
    fn totals(&self) -> rusqlite::Result<TapeTotals> {
        let sql = "SELECT entries, first_at, last_at, last_seq, disordered, gaps, passed, requests, notifications,
            results, errors, raws FROM tapes WHERE number = ?1";
        self.connection.prepare_cached(sql)?.query_row([self.tape], |row| {
            let mut messages = [0; 5];
            for (place, count) in messages.iter_mut().enumerate() {
                *count = number(row, 7 + place)?.unwrap_or_default();
            }
            Ok(TapeTotals {
                entries: number(row, 0)?.unwrap_or_default(),
                first_at: number(row, 1)?,
                last_at: number(row, 2)?,
                last_seq: number(row, 3)?.unwrap_or_default(),
                disordered: row.get(4)?,
                gaps: number(row, 5)?.unwrap_or_default(),
                passed: number(row, 6)?.unwrap_or_default(),
                messages,
            })
        })
    }

    fn sessions(&self, tables: &mut TapeTables) -> Result<(), SqliteFailure> {
        let described = tapes::sessions_of(self.connection, self.tape)?;
        let sql = "SELECT began, ended FROM sessions WHERE tape = ?1 AND number = ?2";
        let mut select = self.connection.prepare_cached(sql)?;
        for (session, info) in described {
            let (began, ended) =
                select.query_row([self.tape, session as i64], |row| Ok((number(row, 0)?, number(row, 1)?)))?;
            tables.sessions.insert(session, SessionRow { began: began.unwrap_or_default(), ended, info });
        }
        Ok(())
    }

    fn exchanges(&mut self, tables: &mut TapeTables) -> Result<(), SqliteFailure> {
        let sql = "SELECT exchange, first, last, method, subject, outcome, well, took, bytes_in, bytes_out
            FROM exchanges WHERE tape = ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        let mut rows = select.query([self.tape])?;
        while let Some(row) = rows.next()? {
            let exchange = ExchangeRow {
                first: number(row, 1)?.unwrap_or_default(),
                last: number(row, 2)?.unwrap_or_default(),
                method: self.name(NameRole::Method, row.get(3)?, tables)?,
                subject: self.name(NameRole::Subject, row.get(4)?, tables)?,
                outcome: self.name(NameRole::Outcome, row.get(5)?, tables)?,
                well: row.get(6)?,
                took: number(row, 7)?,
                bytes_in: number(row, 8)?,
                bytes_out: number(row, 9)?,
            };
            tables.exchanges.insert(number(row, 0)?.unwrap_or_default(), exchange);
        }
        Ok(())
    }

    fn notifications(&mut self, tables: &mut TapeTables) -> Result<(), SqliteFailure> {
        let mut select =
            self.connection.prepare_cached("SELECT method, came, went FROM notifications WHERE tape = ?1")?;
        let mut rows = select.query([self.tape])?;
        while let Some(row) = rows.next()? {
            let method = self.name(NameRole::Method, row.get(0)?, tables)?.unwrap_or_default();
            let counts = tables.notifications.entry(method).or_default();
            counts.came = counts.came.wrapping_add(number(row, 1)?.unwrap_or_default());
            counts.went = counts.went.wrapping_add(number(row, 2)?.unwrap_or_default());
        }
        Ok(())
    }

    fn name(&mut self, role: NameRole, id: Option<i64>, tables: &mut TapeTables) -> rusqlite::Result<Option<Arc<str>>> {
        let Some(id) = id else { return Ok(None) };
        let of = NameRef { tape: self.tape, role, id };
        Ok(self.names.name(self.connection, of)?.map(|name| tables.name(name)))
    }
}

fn number(row: &Row<'_>, place: usize) -> rusqlite::Result<Option<u64>> {
    Ok(row.get::<_, Option<i64>>(place)?.map(|number| number as u64))
}
