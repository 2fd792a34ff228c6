//! Finding entries, over one tape or all.

use super::escape::escape;
use super::row::{self, COLUMNS, StoredRow};
use super::{Failure, tapes};
use crate::content::{FINISHED, MESSAGE};
use crate::limits::{DEFAULT_LIMIT, MAX_LIMIT, MAX_PAGE_BYTES};
use crate::squeeze::Squeezer;
use crate::text::Needle;
use ::postgres::Client;
use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::types::ToSql;
use bytes::Bytes;
use foldhash::HashMap;
use signalbox_engine::record::{Hit, Page, Query, StoreError};

/// How many rows are read at a time.
const CHUNK: usize = 1_000;

/// How many rows are made whole at a time.
const MADE_WHOLE: usize = 16;

/// Answers a query.
pub fn find(client: &mut Client, query: &Query) -> Result<Page, Failure> {
    let needle = query.text.as_deref().map(Needle::read).transpose()?.flatten();
    let mut search = Search::new(client, query, needle.as_ref())?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT).min(MAX_LIMIT);
    let mut squeezer = Squeezer::new();
    let mut hits: Vec<Hit> = Vec::new();
    let (mut bytes, mut cut) = (0, false);
    while hits.len() <= limit && !cut {
        // The database knows words but not what follows what, so of phrases more rows are read than are wanted.
        let phrases = needle.as_ref().is_some_and(Needle::has_phrase);
        let wanted = if phrases { CHUNK } else { CHUNK.min(limit + 1 - hits.len()) };
        let (rows, full) = search.rows(client, &mut squeezer, wanted)?;
        let Some(last) = rows.last() else { break };
        search.go_on_behind(last);
        for (row, whole) in make_whole(client, &mut squeezer, rows)? {
            let found = needle.as_ref().is_none_or(|needle| whole.as_ref().is_some_and(|whole| needle.is_in(whole)));
            if !found || cut {
                continue;
            }
            bytes += whole.as_ref().map_or(0, Bytes::len);
            cut = bytes >= MAX_PAGE_BYTES;
            hits.push(row.finish(whole)?);
        }
        if !full {
            break;
        }
    }
    let more = hits.len() > limit || cut;
    hits.truncate(limit);
    Ok(Page { hits, more })
}

/// Bodies made whole, a few at a time, because each may be large.
fn make_whole(
    client: &mut Client,
    squeezer: &mut Squeezer,
    rows: Vec<StoredRow>,
) -> Result<Vec<(StoredRow, Option<Bytes>)>, Failure> {
    let mut made = Vec::with_capacity(rows.len());
    let mut rows = rows.into_iter().peekable();
    while rows.peek().is_some() {
        let part: Vec<StoredRow> = rows.by_ref().take(MADE_WHOLE).collect();
        let mut wanted: HashMap<i64, Vec<i64>> = HashMap::default();
        for row in &part {
            wanted.entry(row.tape).or_default().extend(row.base().map(|base| base as i64));
        }
        let mut known = HashMap::default();
        for (tape, places) in wanted.into_iter().filter(|(_, places)| !places.is_empty()) {
            for (seq, whole) in row::bases(client, squeezer, tape, &places)? {
                known.insert((tape, seq), whole);
            }
        }
        made.extend(part.into_iter().map(|row| {
            let whole = if row.is_message() { row.whole(&known) } else { None };
            (row, whole)
        }));
    }
    Ok(made)
}

type Value = Box<dyn ToSql + Sync + Send>;

/// A question in SQL.
struct Search {
    conditions: Vec<String>,
    values: Vec<Value>,
    /// The number of the only tape.
    tape: Option<i64>,
    newest_first: bool,
    /// The last row that was read: its time, its tape and its place.
    last: Option<(i64, String, i64)>,
}

impl Search {
    fn new(client: &mut Client, query: &Query, needle: Option<&Needle>) -> Result<Self, Failure> {
        let tape = match &query.tape {
            Some(asked) => Some(tapes::meant(client, asked)?.number),
            None => {
                let mut all = tapes::all(client)?;
                if all.len() > 1 { None } else { all.pop().map(|tape| tape.number) }
            }
        };
        if query.after.is_some() && tape.is_none() {
            return Err(StoreError::Query("say of which tape: a place counts within one tape".into()).into());
        }
        let mut search =
            Self { conditions: Vec::new(), values: Vec::new(), tape, newest_first: query.newest_first, last: None };
        search.conditions.push("t.hidden_since IS NULL".into());
        search.numbers(query);
        search.names(query);
        search.ending(query);
        if query.only_ends {
            search.conditions.push(format!("e.what = {FINISHED}"));
        }
        if let Some(needle) = needle {
            // Words are letters and digits only, so the quotes cannot be left.
            let words: Vec<String> = needle.words().into_iter().map(|word| format!("'{word}'")).collect();
            search.add("e.words IS NOT NULL AND e.words @@ $::text::tsquery", words.join(" & "));
            search.conditions.push(format!("e.what >= {MESSAGE}"));
        }
        Ok(search)
    }

    /// A condition with one value, which stands where the `$` is.
    fn add(&mut self, condition: &str, value: impl ToSql + Sync + Send + 'static) {
        self.values.push(Box::new(value));
        self.conditions.push(condition.replace('$', &format!("${}", self.values.len())));
    }

    fn numbers(&mut self, query: &Query) {
        if let Some(tape) = self.tape {
            self.add("e.tape = $", tape);
        }
        if let Some(session) = query.session {
            self.add("e.session = $", session as i64);
        }
        if let Some(exchange) = query.exchange {
            self.add("e.exchange = $", exchange as i64);
        }
        if let Some(code) = query.error_code {
            self.add("e.error_code = $", code);
        }
        if let Some(since) = query.since {
            self.add("e.at >= $", since.min(i64::MAX as u64) as i64);
        }
        if let Some(until) = query.until {
            self.add("e.at < $", until.min(i64::MAX as u64) as i64);
        }
        if let Some(after) = query.after {
            let after = after.min(i64::MAX as u64) as i64;
            self.add(if self.newest_first { "e.seq < $" } else { "e.seq > $" }, after);
        }
    }

    fn names(&mut self, query: &Query) {
        let text = |text: &str| escape(text).into_owned();
        if let Some(subject) = &query.subject {
            self.add("md5(e.subject) = md5($::text) AND e.subject = $", text(subject));
        }
        if let Some(backend) = &query.backend {
            self.add("e.backend = $", text(backend));
        }
        if let Some(principal) = &query.principal {
            self.add("e.principal = $", text(principal));
        }
        if query.methods.is_empty() {
            return;
        }
        let mut any = Vec::new();
        for method in &query.methods {
            let (condition, value) = match method.strip_suffix('*') {
                Some(beginning) => ("starts_with(e.method, $)", beginning),
                None => ("e.method = $", method.as_str()),
            };
            self.add(condition, text(value));
            any.extend(self.conditions.pop());
        }
        self.conditions.push(format!("({})", any.join(" OR ")));
    }

    fn ending(&mut self, query: &Query) {
        if query.outcome.is_none() && query.slower_than.is_none() {
            return;
        }
        let first = self.conditions.len();
        if let Some(outcome) = &query.outcome {
            self.add("x.outcome = $", escape(outcome).into_owned());
        }
        if let Some(least) = query.slower_than {
            self.add("x.took >= $", least.min(i64::MAX as u64) as i64);
        }
        let how = self.conditions.split_off(first).join(" AND ");
        self.conditions.push(format!(
            "EXISTS (SELECT 1 FROM exchanges x WHERE x.tape = e.tape AND x.exchange = e.exchange AND {how})"
        ));
    }

    fn go_on_behind(&mut self, row: &StoredRow) {
        let entry = &row.hit.entry;
        self.last = Some((entry.at as i64, escape(&row.hit.tape).into_owned(), entry.seq as i64));
    }

    /// The next rows, and whether there may be more behind them.
    fn rows(
        &self,
        client: &mut Client,
        squeezer: &mut Squeezer,
        count: usize,
    ) -> Result<(Vec<StoredRow>, bool), Failure> {
        let mut sql = format!(
            "SELECT {COLUMNS} FROM tape_entries e JOIN tapes t ON t.number = e.tape WHERE {}",
            self.conditions.join(" AND ")
        );
        let mut values: Vec<&(dyn ToSql + Sync)> =
            self.values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        let (order, direction, sign) = if self.newest_first { ("DESC", " DESC", '<') } else { ("ASC", "", '>') };
        if let Some((at, tape, seq)) = &self.last {
            let next = values.len() + 1;
            if self.tape.is_some() {
                values.push(seq);
                sql += &format!(" AND e.seq {sign} ${next}");
            } else {
                values.extend([at as &(dyn ToSql + Sync), tape, seq]);
                sql += &format!(" AND (e.at, t.id, e.seq) {sign} (${next}, ${}, ${})", next + 1, next + 2);
            }
        }
        sql += &match self.tape {
            Some(_) => format!(" ORDER BY e.seq {order} LIMIT {count}"),
            None => format!(" ORDER BY e.at{direction}, t.id{direction}, e.seq{direction} LIMIT {count}"),
        };
        let mut stream = client.query_raw(&sql, values)?;
        let (mut found, mut bytes) = (Vec::new(), 0);
        while let Some(row) = stream.next()? {
            bytes += row.get::<_, &[u8]>(14).len();
            found.push(StoredRow::read(&row, squeezer)?);
            if bytes >= MAX_PAGE_BYTES {
                return Ok((found, true));
            }
        }
        let full = found.len() == count;
        Ok((found, full))
    }
}
