//! Reads all that is derived from the entries of a tape.

use super::row::unescape;
use super::{Failure, tapes};
use crate::pack::DecodeError;
use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::{Client, GenericClient, IsolationLevel, Row};
use signalbox_engine::record::tally::SUCCESS;
use signalbox_engine::record::{ExchangeRow, NotificationStats, SessionRow, TapeTables, TapeTotals};
use std::sync::Arc;

/// Returns the tables of a tape, all as of one moment.
pub fn tables(client: &mut Client, asked: &str) -> Result<TapeTables, Failure> {
    let tape = tapes::meant(client, asked)?.number;
    let transaction = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let mut transaction = transaction.start()?;
    let mut tables = TapeTables::new(totals(&mut transaction, tape)?);
    for (session, info) in tapes::sessions_of(&mut transaction, tape)? {
        tables.sessions.insert(session, SessionRow { info, ..SessionRow::default() });
    }
    for row in transaction.query("SELECT number, began, ended FROM sessions WHERE tape = $1", &[&tape])? {
        if let Some(session) = tables.sessions.get_mut(&(row.get::<_, i64>(0) as u64)) {
            (session.began, session.ended) = (number(&row, 1).unwrap_or_default(), number(&row, 2));
        }
    }
    exchanges(&mut transaction, tape, &mut tables)?;
    for row in transaction.query("SELECT method, came, went FROM notifications WHERE tape = $1", &[&tape])? {
        let method = String::from_utf8(row.get(0)).map_err(|_| DecodeError("a method is not valid UTF-8"))?;
        let counts = [1, 2].map(|place| number(&row, place).unwrap_or_default());
        let method = tables.name(&unescape(method));
        tables.notifications.insert(method, NotificationStats { came: counts[0], went: counts[1] });
    }
    Ok(tables)
}

fn totals(client: &mut impl GenericClient, tape: i64) -> Result<TapeTotals, Failure> {
    let sql = "SELECT entries, first_at, last_at, last_seq, disordered, gaps, passed, kinds
        FROM tapes WHERE number = $1";
    let row = client.query_one(sql, &[&tape])?;
    let mut messages = [0; 5];
    for (count, stored) in messages.iter_mut().zip(row.get::<_, Vec<i64>>(7)) {
        *count = stored as u64;
    }
    Ok(TapeTotals {
        entries: number(&row, 0).unwrap_or_default(),
        first_at: number(&row, 1),
        last_at: number(&row, 2),
        last_seq: number(&row, 3).unwrap_or_default(),
        disordered: row.get(4),
        gaps: number(&row, 5).unwrap_or_default(),
        passed: number(&row, 6).unwrap_or_default(),
        messages,
    })
}

fn exchanges(client: &mut impl GenericClient, tape: i64, tables: &mut TapeTables) -> Result<(), Failure> {
    let sql = "SELECT exchange, first, last, method, subject, outcome, took, bytes_in, bytes_out
        FROM exchanges WHERE tape = $1";
    let mut rows = client.query_raw(sql, [tape])?;
    while let Some(row) = rows.next()? {
        let mut name = |place: usize| -> Option<Arc<str>> {
            row.get::<_, Option<String>>(place).map(|name| tables.name(&unescape(name)))
        };
        let [method, subject, outcome] = [3, 4, 5].map(&mut name);
        let exchange = ExchangeRow {
            first: number(&row, 1).unwrap_or_default(),
            last: number(&row, 2).unwrap_or_default(),
            well: outcome.as_deref().map(|outcome| outcome == SUCCESS),
            method,
            subject,
            outcome,
            took: number(&row, 6),
            bytes_in: number(&row, 7),
            bytes_out: number(&row, 8),
        };
        tables.exchanges.insert(number(&row, 0).unwrap_or_default(), exchange);
    }
    Ok(())
}

fn number(row: &Row, place: usize) -> Option<u64> {
    row.get::<_, Option<i64>>(place).map(|number| number as u64)
}
