//! Finds entries on one tape or on all. A search uses the index of a tape first, and scans row by row if that does not
//! help.

use super::filter::PostgresFilter;
use super::row::{self, COLUMNS, PostgresRow};
use super::{Failure, tapes, words};
use crate::body_codec::BodyCodec;
use crate::limits::MAX_PAGE_BYTES;
use crate::merge::{Merge, promising};
use crate::tape_row::TapeRow;
use crate::text::{Needle, is_searched};
use ::postgres::Client;
use ::postgres::fallible_iterator::FallibleIterator;
use bytes::Bytes;
use foldhash::HashMap;
use signalbox_engine::record::{EntryPage, Hit, Query};

/// Returns the page of entries that match a query.
pub fn find(client: &mut Client, query: &Query) -> Result<EntryPage, Failure> {
    let needle = query.text.as_deref().map(Needle::read).transpose()?.flatten();
    let tapes = match &query.tape {
        Some(asked) => vec![tapes::meant(client, asked)?],
        None => promising(tapes::all(client)?, query)?,
    };
    let mut codec = BodyCodec::new();
    let mut merge = Merge::new(query);
    for tape in tapes {
        if merge.is_enough(&tape) {
            break;
        }
        let search = PostgresSearch::new(client, &mut codec, &tape, query, needle.as_ref(), merge.room())?;
        if let Some(search) = search {
            let found = search.run()?;
            merge.add(found.hits, found.cut);
        }
    }
    Ok(merge.page())
}

/// Number of rows read at a time.
const CHUNK: usize = 1_000;

/// Number of bodies made whole at a time.
const MADE_WHOLE: usize = 16;

/// Number of runs scanned at first, and the maximum number scanned at a time.
const FIRST_RUNS: usize = 8;
const MAX_RUNS: usize = 256;

/// Maximum number of exchanges that are read one by one.
const FEW: usize = 1_000;

/// First and last position, both inclusive.
type Range = (i64, i64);

/// Search of one tape.
pub struct PostgresSearch<'a> {
    client: &'a mut Client,
    codec: &'a mut BodyCodec,
    tape: &'a TapeRow,
    query: &'a Query,
    needle: Option<&'a Needle>,
    filter: PostgresFilter,
    range: Range,
    room: usize,
    found: FoundEntries,
}

/// Hits of a search, in order.
#[derive(Default)]
pub struct FoundEntries {
    /// Entries with the id of their tape.
    pub hits: Vec<Hit>,
    /// True if their size ended the search early.
    pub cut: bool,
    bytes: usize,
}

impl<'a> PostgresSearch<'a> {
    /// Creates a search for up to `room` entries; `None` if nothing on the tape can match.
    pub fn new(
        client: &'a mut Client,
        codec: &'a mut BodyCodec,
        tape: &'a TapeRow,
        query: &'a Query,
        needle: Option<&'a Needle>,
        room: usize,
    ) -> Result<Option<Self>, Failure> {
        let Some(range) = range(client, tape, query)? else { return Ok(None) };
        let filter = PostgresFilter::read(tape, query, needle.is_some());
        Ok(Some(Self { client, codec, tape, query, needle, filter, range, room, found: FoundEntries::default() }))
    }

    /// Runs the search by the most selective method.
    pub fn run(mut self) -> Result<FoundEntries, Failure> {
        if let Some(few) = self.few()? {
            for part in few.chunks(MAX_RUNS) {
                if !self.look(part)? {
                    break;
                }
            }
        } else if let Some(question) = words::question(self.query, self.needle) {
            self.run_by_words(&question)?;
        } else {
            self.look(&[self.range])?;
        }
        Ok(self.found)
    }

    /// Returns the ranges of the exchanges with the wanted end, if there are few.
    fn few(&mut self) -> Result<Option<Vec<Range>>, Failure> {
        let Some(how) = &self.filter.ending else { return Ok(None) };
        let sql =
            format!("SELECT first, last FROM exchanges x WHERE x.tape = $1 AND {how} ORDER BY first LIMIT {}", FEW + 1);
        let rows = self.client.query(&sql, &self.filter.ending_values(self.query))?;
        if rows.len() > FEW {
            return Ok(None);
        }
        let ranges = rows.iter().map(|row| (row.get(0), row.get(1)));
        let within = |(first, last): Range| (first.max(self.range.0), last.min(self.range.1));
        let mut apart: Vec<Range> = Vec::new();
        for (first, last) in ranges.map(within).filter(|(first, last)| first <= last) {
            match apart.last_mut() {
                Some(before) if first <= before.1 + 1 => before.1 = before.1.max(last),
                _ => apart.push((first, last)),
            }
        }
        if self.query.newest_first {
            apart.reverse();
        }
        Ok(Some(apart))
    }

    /// Scans the runs that contain all the wanted words and marks.
    fn run_by_words(&mut self, question: &str) -> Result<(), Failure> {
        let (mut first, mut last) = self.range;
        let mut count = FIRST_RUNS;
        let order = if self.query.newest_first { "DESC" } else { "ASC" };
        loop {
            let sql = format!(
                "SELECT first, last FROM tape_words WHERE tape = $1 AND last >= $2 AND first <= $3
                AND words @@ $4::text::tsquery ORDER BY first {order} LIMIT {count}"
            );
            let rows = self.client.query(&sql, &[&self.tape.number, &first, &last, &question])?;
            let runs: Vec<Range> = rows
                .iter()
                .map(|row| (row.get::<_, i64>(0).max(self.range.0), row.get::<_, i64>(1).min(self.range.1)))
                .collect();
            let Some(end) = runs.last().copied() else { return Ok(()) };
            if !self.look(&runs)? || runs.len() < count {
                return Ok(());
            }
            if self.query.newest_first {
                last = end.0 - 1;
            } else {
                first = end.1 + 1;
            }
            count = (2 * count).min(MAX_RUNS);
        }
    }

    /// Scans every row of some ranges, which are in order. Returns false if there are enough hits.
    fn look(&mut self, ranges: &[Range]) -> Result<bool, Failure> {
        let (mut first, mut last) = self.range;
        // The database does not know the order of words, so a search for phrases reads more rows than it returns.
        let exact = self.needle.is_none();
        loop {
            let count = if exact { CHUNK.min(self.room - self.found.hits.len()) } else { CHUNK };
            let (rows, full) = self.rows(ranges, (first, last), count)?;
            let Some(end) = rows.last().map(|row| row.hit.entry.seq as i64) else { return Ok(true) };
            self.take(rows)?;
            if self.found.cut || self.found.hits.len() >= self.room {
                return Ok(false);
            }
            if !full {
                return Ok(true);
            }
            if self.query.newest_first {
                last = end - 1;
            } else {
                first = end + 1;
            }
        }
    }

    /// Returns the next rows, and true if there may be more.
    fn rows(
        &mut self,
        ranges: &[Range],
        (first, last): Range,
        count: usize,
    ) -> Result<(Vec<PostgresRow>, bool), Failure> {
        let order = if self.query.newest_first { "DESC" } else { "ASC" };
        let (from, to): (Vec<i64>, Vec<i64>) = ranges.iter().copied().unzip();
        // A single range needs no list.
        let single = if let [(from, to)] = ranges { Some((first.max(*from), last.min(*to))) } else { None };
        let (first, last) = single.unwrap_or((first, last));
        let mut values = self.filter.values();
        let next = values.len() + 1;
        values.extend([&first as &(dyn ::postgres::types::ToSql + Sync), &last]);
        let conditions = self.filter.sql();
        let from = if single.is_some() {
            format!("(SELECT * FROM tape_entries e WHERE e.seq BETWEEN ${next} AND ${} AND {conditions}) e", next + 1)
        } else {
            values.extend([&from as &(dyn ::postgres::types::ToSql + Sync), &to]);
            // `OFFSET 0` makes the database look up each range by key. Otherwise it compares every row with every
            // range.
            format!(
                "unnest(${}::bigint[], ${}::bigint[]) AS r (first, last) CROSS JOIN LATERAL (SELECT * FROM tape_entries e
                WHERE e.seq BETWEEN greatest(r.first, ${next}) AND least(r.last, ${}) AND {conditions} OFFSET 0) e",
                next + 2,
                next + 3,
                next + 1
            )
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM {from} JOIN tapes t ON t.number = e.tape WHERE t.hidden_since IS NULL
            ORDER BY e.seq {order} LIMIT {count}"
        );
        let mut stream = self.client.query_raw(&sql, values)?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        while let Some(row) = stream.next()? {
            bytes += row.get::<_, &[u8]>(14).len();
            found.push(PostgresRow::read(&row, self.codec)?);
            if bytes >= MAX_PAGE_BYTES {
                return Ok((found, true));
            }
        }
        let full = found.len() == count;
        Ok((found, full))
    }

    /// Adds the matching rows to the hits. Makes bodies whole a few at a time, because each may be large.
    fn take(&mut self, rows: Vec<PostgresRow>) -> Result<(), Failure> {
        let needle = self.needle;
        let all_images = needle.is_none() || self.query.client_side;
        let mut rows = rows.into_iter().filter(|row| all_images || is_searched(&row.body)).peekable();
        while rows.peek().is_some() {
            let part: Vec<PostgresRow> = rows.by_ref().take(MADE_WHOLE).collect();
            let places: Vec<i64> = part.iter().filter_map(|row| row.base().map(|base| base as i64)).collect();
            let mut known = HashMap::default();
            if !places.is_empty() {
                for (seq, whole) in row::bases(self.client, self.codec, self.tape.number, &places)? {
                    known.insert((self.tape.number, seq), whole);
                }
            }
            for row in part {
                let whole = if row.is_message() { row.whole(&known) } else { None };
                let wanted = needle.is_none_or(|needle| whole.as_ref().is_some_and(|whole| needle.is_in(whole)));
                if !wanted || self.found.hits.len() >= self.room {
                    continue;
                }
                self.found.bytes += whole.as_ref().map_or(0, Bytes::len);
                self.found.hits.push(row.finish(whole)?);
                if self.found.bytes >= MAX_PAGE_BYTES {
                    self.found.cut = true;
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Returns the positions that can match; `None` if there are none.
fn range(client: &mut Client, tape: &TapeRow, query: &Query) -> Result<Option<Range>, Failure> {
    let (mut first, mut last) = (0, tape.last_seq);
    match query.after {
        Some(after) if query.newest_first => last = last.min(after.saturating_sub(1)),
        Some(after) => first = after.saturating_add(1),
        None => {}
    }
    if let Some(exchange) = query.exchange {
        let sql = "SELECT first, last FROM exchanges WHERE tape = $1 AND exchange = $2";
        let Some(row) = client.query_opt(sql, &[&tape.number, &(exchange as i64)])? else { return Ok(None) };
        let place = |column: usize| row.get::<_, i64>(column) as u64;
        (first, last) = (first.max(place(0)), last.min(place(1)));
    }
    if !tape.disordered {
        if let Some(since) = query.since {
            first = first.max(place_of(client, tape, since)?);
        }
        if let Some(until) = query.until {
            last = last.min(place_of(client, tape, until)?.saturating_sub(1));
        }
    }
    Ok((first <= last).then_some((first as i64, last as i64)))
}

/// Returns the first position at or after a time, by binary search. The clock of the tape must not go backwards.
pub fn place_of(client: &mut Client, tape: &TapeRow, time: u64) -> Result<u64, Failure> {
    let time = time.min(i64::MAX as u64) as i64;
    if tape.disordered {
        let sql = "SELECT min(seq) FROM tape_entries WHERE tape = $1 AND at >= $2";
        let place: Option<i64> = client.query_one(sql, &[&tape.number, &time])?.get(0);
        return Ok(place.map_or(tape.last_seq + 1, |place| place as u64));
    }
    let sql = "SELECT seq, at FROM tape_entries WHERE tape = $1 AND seq >= $2 ORDER BY seq LIMIT 1";
    let select = client.prepare(sql)?;
    let (mut low, mut high) = (0, tape.last_seq as i64 + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        match client.query_opt(&select, &[&tape.number, &middle])? {
            Some(row) if row.get::<_, i64>(1) < time => low = row.get::<_, i64>(0) + 1,
            // The next entry there is late enough: it, or one before it, is the first.
            Some(_) | None => high = middle,
        }
    }
    Ok(low as u64)
}
