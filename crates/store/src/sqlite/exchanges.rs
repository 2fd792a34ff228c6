//! Exchanges: their range of entries and their outcomes.

use super::names::{self, NameIds, NameRole};
use super::schema::SLOW;
use crate::sums::BatchExchanges;
use foldhash::HashSet;
use rusqlite::{Connection, OptionalExtension, params};
use signalbox_engine::record::tally::SUCCESS;

/// Stores the exchanges of a batch.
pub fn keep(seen: BatchExchanges<'_>, connection: &Connection, tape: i64, names: &mut NameIds) -> rusqlite::Result<()> {
    let sql = "INSERT INTO exchanges
            (tape, exchange, first, last, method, subject, outcome, well, took, bytes_in, bytes_out)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)
            ON CONFLICT (tape, exchange) DO UPDATE SET last = excluded.last,
            method = coalesce(excluded.method, method), subject = coalesce(excluded.subject, subject),
            outcome = coalesce(excluded.outcome, outcome), well = coalesce(excluded.well, well),
            took = coalesce(excluded.took, took), bytes_in = coalesce(excluded.bytes_in, bytes_in),
            bytes_out = coalesce(excluded.bytes_out, bytes_out)";
    let mut upsert = connection.prepare_cached(sql)?;
    for (exchange, part) in seen.parts() {
        let mut id = |role, name: Option<&str>| name.map(|name| names.id(connection, tape, role, name)).transpose();
        let finished = part.finished;
        upsert.execute(params![
            tape,
            exchange as i64,
            part.first as i64,
            part.last as i64,
            id(NameRole::Method, finished.map(|finished| &*finished.method))?,
            id(NameRole::Subject, finished.and_then(|finished| finished.subject.as_deref()))?,
            id(NameRole::Outcome, finished.map(|finished| &*finished.outcome))?,
            finished.map(|finished| finished.outcome == SUCCESS),
            finished.map(|finished| finished.took.min(i64::MAX as u64) as i64),
            finished.map(|finished| finished.bytes_in as i64),
            finished.map(|finished| finished.bytes_out as i64),
        ])?;
    }
    Ok(())
}

/// Returns the first and last position of an exchange.
pub fn range(connection: &Connection, tape: i64, exchange: u64) -> rusqlite::Result<Option<(u64, u64)>> {
    connection
        .prepare_cached("SELECT first, last FROM exchanges WHERE tape = ?1 AND exchange = ?2")?
        .query_row([tape, exchange as i64], |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))
        .optional()
}

/// Conditions of a query on the end of an exchange.
#[derive(Clone, Debug)]
pub struct EndingFilter {
    /// Number of the outcome's name, and whether it is success.
    pub outcome: Option<(i64, bool)>,
    /// Minimum duration, in nanoseconds.
    pub slower_than: Option<u64>,
}

impl EndingFilter {
    /// Reads the conditions of a query; `None` if it has none. The inner `None` means that nothing on this tape can
    /// match.
    pub fn read(
        connection: &Connection,
        tape: i64,
        outcome: Option<&str>,
        slower_than: Option<u64>,
    ) -> rusqlite::Result<Option<Option<Self>>> {
        let outcome = match outcome {
            None if slower_than.is_none() => return Ok(None),
            None => None,
            Some(outcome) => match names::find(connection, tape, NameRole::Outcome, outcome)? {
                Some(id) => Some((id, outcome == SUCCESS)),
                None => return Ok(Some(None)),
            },
        };
        Ok(Some(Some(Self { outcome, slower_than })))
    }

    /// Returns the matching exchanges and their ranges, unless there are more than `most`.
    pub fn few(
        &self,
        connection: &Connection,
        tape: i64,
        range: (u64, u64),
        most: usize,
    ) -> rusqlite::Result<Option<ExchangeSet>> {
        // The planner would rather walk all exchanges of the tape.
        let unwell = self.outcome.is_some_and(|(_, well)| !well);
        let slow = self.slower_than.is_some_and(|least| least >= SLOW);
        let index = match (unwell, slow) {
            (true, _) => " INDEXED BY exchanges_unwell",
            (false, true) => " INDEXED BY exchanges_slow",
            (false, false) => "",
        };
        let mut sql = format!(
            "SELECT exchange, first, last FROM exchanges{index} WHERE tape = ?1 AND last >= ?2 AND first <= ?3"
        );
        // Only numbers are inserted, so SQL injection is impossible. The literal conditions are those of the partial
        // indexes.
        if let Some((outcome, well)) = self.outcome {
            sql += &format!(" AND outcome = {outcome}{}", if well { "" } else { " AND well = 0" });
        }
        if let Some(least) = self.slower_than {
            sql += &format!(" AND took >= {}", least.min(i64::MAX as u64));
        }
        if slow {
            sql += &format!(" AND took >= {SLOW}");
        }
        sql += &format!(" LIMIT {}", most + 1);
        let mut select = connection.prepare(&sql)?;
        let mut rows = select.query(params![tape, range.0 as i64, range.1 as i64])?;
        let mut few = ExchangeSet::default();
        while let Some(row) = rows.next()? {
            if few.exchanges.len() == most {
                return Ok(None);
            }
            few.exchanges.insert(row.get(0)?);
            few.ranges.push((row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64));
        }
        few.join();
        Ok(Some(few))
    }

    /// Returns true if this exchange matches.
    pub fn is_of(&self, connection: &Connection, tape: i64, exchange: i64) -> rusqlite::Result<bool> {
        let found: Option<(Option<i64>, Option<i64>)> = connection
            .prepare_cached("SELECT outcome, took FROM exchanges WHERE tape = ?1 AND exchange = ?2")?
            .query_row([tape, exchange], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let Some((Some(outcome), Some(took))) = found else { return Ok(false) };
        let slow = self.slower_than.is_none_or(|least| took as u64 >= least);
        Ok(slow && self.outcome.is_none_or(|(wanted, _)| wanted == outcome))
    }
}

/// Small set of matching exchanges.
#[derive(Default, Debug)]
pub struct ExchangeSet {
    /// Numbers of the exchanges.
    pub exchanges: HashSet<i64>,
    /// Their ranges of positions, in order and without overlap.
    pub ranges: Vec<(u64, u64)>,
}

impl ExchangeSet {
    fn join(&mut self) {
        self.ranges.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::with_capacity(self.ranges.len());
        for (first, last) in self.ranges.drain(..) {
            match joined.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
                _ => joined.push((first, last)),
            }
        }
        self.ranges = joined;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_become_one() {
        let mut few = ExchangeSet { exchanges: HashSet::default(), ranges: vec![(9, 9), (1, 3), (2, 5), (6, 6)] };
        few.join();
        assert_eq!(few.ranges, [(1, 6), (9, 9)]);
    }
}
