//! Reads the figures of `signalbox tape stats` from the tables.

use super::row::unescape;
use super::{Failure, notifications, tapes};
use crate::notifications::NotificationCounts;
use ::postgres::Client;
use ::postgres::fallible_iterator::FallibleIterator;
use signalbox_engine::record::tally::{FinishedExchange, SUCCESS, Tally};
use signalbox_engine::record::{MessageKind, Stats};

/// Returns the number of facts missing from a tape.
pub fn gaps(client: &mut Client, tape: &str) -> Result<u64, Failure> {
    let number = tapes::meant(client, tape)?.number;
    Ok(client.query_one("SELECT gaps FROM tapes WHERE number = $1", &[&number])?.get::<_, i64>(0) as u64)
}

/// Returns the figures of one tape, or of all.
pub fn stats(client: &mut Client, tape: Option<&str>) -> Result<Stats, Failure> {
    let tapes = match tape {
        Some(asked) => vec![tapes::meant(client, asked)?],
        None => tapes::all(client)?,
    };
    let numbers: Vec<i64> = tapes.iter().map(|tape| tape.number).collect();
    let mut stats =
        Stats { messages: MessageKind::ALL.map(|kind| (kind.word().to_owned(), 0)).into(), ..Stats::default() };
    for row in client.query("SELECT kinds, gaps, passed, kept FROM tapes WHERE number = ANY($1)", &[&numbers])? {
        let kinds: Vec<i64> = row.get(0);
        for ((_, count), more) in stats.messages.iter_mut().zip(kinds) {
            *count += more as u64;
        }
        let number = |place: usize| row.get::<_, i64>(place) as u64;
        stats.gaps = stats.gaps.saturating_add(number(1));
        stats.bytes.0 = stats.bytes.0.saturating_add(number(2));
        stats.bytes.1 = stats.bytes.1.saturating_add(number(3));
    }
    let mut told = NotificationCounts::default();
    notifications::add(client, &numbers, &mut told)?;
    stats.notifications = told.finish();
    let mut tally = Tally::default();
    let sql = "SELECT method, subject, outcome, took, coalesce(bytes_in, 0), coalesce(bytes_out, 0) FROM exchanges
        WHERE tape = ANY($1) AND took IS NOT NULL";
    let mut rows = client.query_raw(sql, [&numbers])?;
    while let Some(row) = rows.next()? {
        let text = |place: usize| row.get::<_, Option<String>>(place).map(unescape);
        let number = |place: usize| row.get::<_, i64>(place) as u64;
        let (method, subject) = (text(0).unwrap_or_default(), text(1));
        tally.add(&FinishedExchange {
            method: &method,
            subject: subject.as_deref(),
            well: text(2).is_none_or(|outcome| outcome == SUCCESS),
            took: number(3),
            bytes: (number(4), number(5)),
        });
    }
    tally.tell(&mut stats);
    Ok(stats)
}
