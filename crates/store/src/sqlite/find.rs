//! Finds entries on one tape or on all. A search uses the index of a tape first, and scans row by row if that does not
//! help.

use super::connection::{SqliteReader, learn};
use super::exchanges::{self, EndingFilter, ExchangeSet};
use super::filter::SqliteFilter;
use super::names::NamesById;
use super::row::{Bases, MAX_SEQ, SqliteRow, group, key, keys_of, seq_of};
use super::{SqliteFailure, tapes};
use crate::body_codec::BodyCodec;
use crate::limits::MAX_PAGE_BYTES;
use crate::merge::{Merge, promising};
use crate::tape_row::TapeRow;
use crate::text::{Needle, is_searched};
use rusqlite::{Connection, OptionalExtension};
use signalbox_engine::record::{Body, EntryPage, Hit, Query};

/// Returns the page of entries that match a query.
pub fn find(reader: &mut SqliteReader, query: &Query) -> Result<EntryPage, SqliteFailure> {
    let needle = query.text.as_deref().map(Needle::read).transpose()?.flatten();
    // One transaction, so that all reads see the same snapshot.
    let transaction = reader.connection.transaction()?;
    learn(&transaction, &mut reader.codec)?;
    let tapes = match &query.tape {
        Some(asked) => vec![tapes::meant(&transaction, asked)?],
        None => promising(tapes::all(&transaction)?, query)?,
    };
    let mut merge = Merge::new(query);
    for tape in tapes {
        if merge.is_enough(&tape) {
            break;
        }
        let search = SqliteSearch::new(&transaction, &mut reader.codec, &tape, query, needle.as_ref(), merge.room())?;
        if let Some(search) = search {
            let (hits, cut) = search.run()?;
            merge.add(hits, cut);
        }
    }
    Ok(merge.page())
}

/// Maximum number of exchanges that are read one by one, if the index could be used and if not.
const FEW_BESIDE_INDEX: usize = 1_000;
const FEW: usize = 10_000;

/// Filter for the exchanges that a query asks for.
enum ExchangeFilter {
    All,
    Set(ExchangeSet),
    Each(EndingFilter, Option<(i64, bool)>),
}

/// Search of one tape.
pub struct SqliteSearch<'a> {
    connection: &'a Connection,
    codec: &'a mut BodyCodec,
    tape: &'a TapeRow,
    needle: Option<&'a Needle>,
    newest_first: bool,
    client_side: bool,
    filter: SqliteFilter,
    sql: String,
    exchange_filter: ExchangeFilter,
    range: (u64, u64),
    names: NamesById,
    bases: Bases,
    room: usize,
    bytes: usize,
    hits: Vec<Hit>,
}

impl<'a> SqliteSearch<'a> {
    /// Creates a search for up to `room` entries; `None` if nothing on the tape can match.
    pub fn new(
        connection: &'a Connection,
        codec: &'a mut BodyCodec,
        tape: &'a TapeRow,
        query: &Query,
        needle: Option<&'a Needle>,
        room: usize,
    ) -> Result<Option<Self>, SqliteFailure> {
        let Some(filter) = SqliteFilter::read(connection, tape, query, needle)? else { return Ok(None) };
        let Some(range) = range(connection, tape, query)? else { return Ok(None) };
        let ending = EndingFilter::read(connection, tape.number, query.outcome.as_deref(), query.slower_than)?;
        let exchange_filter = match ending {
            None => ExchangeFilter::All,
            Some(None) => return Ok(None),
            Some(Some(ending)) => {
                let most = if filter.index().is_some() { FEW_BESIDE_INDEX } else { FEW };
                match ending.few(connection, tape.number, range, most)? {
                    Some(few) => ExchangeFilter::Set(few),
                    None => ExchangeFilter::Each(ending, None),
                }
            }
        };
        Ok(Some(Self {
            connection,
            codec,
            tape,
            needle,
            newest_first: query.newest_first,
            client_side: query.client_side,
            sql: filter.sql(query.newest_first),
            filter,
            exchange_filter,
            range,
            names: NamesById::default(),
            bases: Bases::default(),
            room,
            bytes: 0,
            hits: Vec::new(),
        }))
    }

    /// Runs the search. Returns the hits in order, and true if their size ended it early.
    pub fn run(mut self) -> Result<(Vec<Hit>, bool), SqliteFailure> {
        if let ExchangeFilter::Set(few) = &mut self.exchange_filter {
            let mut ranges = std::mem::take(&mut few.ranges);
            if self.newest_first {
                ranges.reverse();
            }
            for range in ranges {
                if !self.scan(range)? {
                    break;
                }
            }
        } else if let Some(question) = self.filter.index() {
            self.run_by_index(&question)?;
        } else {
            self.scan(self.range)?;
        }
        let cut = self.bytes >= MAX_PAGE_BYTES;
        Ok((self.hits, cut))
    }

    /// Scans the groups that the index names, and all rows that are not indexed.
    fn run_by_index(&mut self, question: &str) -> Result<(), SqliteFailure> {
        let behind = (self.tape.indexed + 1, MAX_SEQ);
        if self.newest_first && !self.scan(behind)? {
            return Ok(());
        }
        let upto = self.range.1.min(self.tape.indexed);
        let order = if self.newest_first { "DESC" } else { "ASC" };
        let sql = format!(
            "SELECT rowid FROM tape_search WHERE tape_search MATCH ?1 AND rowid BETWEEN ?2 AND ?3 ORDER BY rowid {order}"
        );
        let connection = self.connection;
        let mut select = connection.prepare(&sql)?;
        let ends = [self.range.0, upto].map(|seq| group(key(self.tape.number, seq)));
        let mut groups = select.query((question, ends[0], ends[1]))?;
        while let Some(row) = groups.next()? {
            let (first, last) = keys_of(row.get(0)?);
            if !self.scan((seq_of(first), seq_of(last).min(self.tape.indexed)))? {
                return Ok(());
            }
        }
        drop(groups);
        if !self.newest_first {
            self.scan(behind)?;
        }
        Ok(())
    }

    /// Scans every row between two positions. Returns false if there are enough hits.
    fn scan(&mut self, part: (u64, u64)) -> Result<bool, SqliteFailure> {
        let (first, last) = (part.0.max(self.range.0), part.1.min(self.range.1));
        if first > last {
            return Ok(true);
        }
        let connection = self.connection;
        let mut select = connection.prepare_cached(&self.sql)?;
        let mut rows = select.query([key(self.tape.number, first), key(self.tape.number, last)])?;
        while let Some(row) = rows.next()? {
            let row = SqliteRow::read(row)?;
            self.take(&row)?;
            if self.hits.len() >= self.room || self.bytes >= MAX_PAGE_BYTES {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take(&mut self, row: &SqliteRow<'_>) -> Result<(), SqliteFailure> {
        if !self.is_wanted(row.exchange)? {
            return Ok(());
        }
        let mut body = row.body(self.codec)?;
        if self.needle.is_some() && !self.client_side && !is_searched(&body) {
            return Ok(());
        }
        if row.is_message() {
            let whole = self.bases.whole(self.connection, self.codec, row.id, body)?;
            if let Some(needle) = self.needle
                && !whole.as_ref().is_some_and(|whole| needle.is_in(whole))
            {
                return Ok(());
            }
            self.bytes += whole.as_ref().map_or(0, bytes::Bytes::len);
            body = whole.map_or(Body::Left, Body::Whole);
        }
        let entry = row.entry(self.connection, &mut self.names, body)?;
        self.hits.push(Hit { tape: self.tape.info.id.clone(), entry });
        Ok(())
    }

    fn is_wanted(&mut self, exchange: Option<i64>) -> Result<bool, SqliteFailure> {
        match (&mut self.exchange_filter, exchange) {
            (ExchangeFilter::All, _) => Ok(true),
            (_, None) => Ok(false),
            (ExchangeFilter::Set(few), Some(exchange)) => Ok(few.exchanges.contains(&exchange)),
            (ExchangeFilter::Each(_, Some((known, wanted))), Some(exchange)) if *known == exchange => Ok(*wanted),
            (ExchangeFilter::Each(ending, last), Some(exchange)) => {
                let wanted = ending.is_of(self.connection, self.tape.number, exchange)?;
                *last = Some((exchange, wanted));
                Ok(wanted)
            }
        }
    }
}

/// Returns the positions that can match; `None` if there are none.
fn range(connection: &Connection, tape: &TapeRow, query: &Query) -> Result<Option<(u64, u64)>, SqliteFailure> {
    let (mut first, mut last) = (0, tape.last_seq);
    match query.after {
        Some(after) if query.newest_first => last = last.min(after.saturating_sub(1)),
        Some(after) => first = after.saturating_add(1),
        None => {}
    }
    if let Some(exchange) = query.exchange {
        let Some(of) = exchanges::range(connection, tape.number, exchange)? else { return Ok(None) };
        (first, last) = (first.max(of.0), last.min(of.1));
    }
    if !tape.disordered {
        if let Some(since) = query.since {
            first = first.max(place_of(connection, tape, since)?);
        }
        if let Some(until) = query.until {
            last = last.min(place_of(connection, tape, until)?.saturating_sub(1));
        }
    }
    Ok((first <= last).then_some((first, last)))
}

/// Returns the first position at or after a time, by binary search. The clock of the tape must not go backwards.
pub fn place_of(connection: &Connection, tape: &TapeRow, time: u64) -> Result<u64, SqliteFailure> {
    let mut select = connection.prepare_cached("SELECT at FROM tape_entries WHERE id BETWEEN ?1 AND ?2 LIMIT 1")?;
    let (mut low, mut high) = (0, tape.last_seq + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        let keys = [key(tape.number, middle), key(tape.number, tape.last_seq)];
        let at: Option<i64> = select.query_row(keys, |row| row.get(0)).optional()?;
        if at.is_none_or(|at| at as u64 >= time) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok(low)
}
