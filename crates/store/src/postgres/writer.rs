//! The writing side of one tape.

use super::copy::{self, Copy, EntryRow};
use super::escape::escape;
use super::place::Place;
use super::words::Runs;
use super::{Failure, row, tapes};
use crate::content;
use crate::seen::Seen;
use crate::splice;
use crate::squeeze::Squeezer;
use crate::sums::{Sums, check_order};
use crate::text::is_searched;
use ::postgres::{Client, Transaction};
use bytes::Bytes;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, StoreError, TapeInfo, TapeWriter};
use std::collections::VecDeque;
use std::io::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

/// How many bytes of bodies are sent at a time.
const MAX_CHUNK_BYTES: usize = 16 << 20;

/// How many whole bodies are remembered, because the next ones may refer to them, and how large they may be.
const MAX_RECENT: usize = 64;
const MAX_RECENT_BYTES: usize = 1 << 20;

/// The writing side of one tape in a PostgreSQL database.
pub struct PostgresWriter {
    place: Place,
    client: Option<Client>,
    squeezer: Squeezer,
    recent: VecDeque<(u64, Bytes)>,
    info: TapeInfo,
    number: i64,
    hidden: bool,
    last_seq: u64,
    ended: bool,
}

impl PostgresWriter {
    /// Keeps the head of a tape.
    pub fn begin(place: Place, info: &TapeInfo, hidden: bool) -> Result<Self, StoreError> {
        let mut client = place.connect()?;
        let number = place.told(begin(&mut client, info, hidden))?;
        Ok(Self {
            place,
            client: Some(client),
            squeezer: Squeezer::new(),
            recent: VecDeque::new(),
            info: info.clone(),
            number,
            hidden,
            last_seq: 0,
            ended: false,
        })
    }

    /// Its number in the store.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Lets everybody see it.
    pub fn reveal(&mut self) -> Result<(), StoreError> {
        self.with(|writer, client| {
            client.execute("UPDATE tapes SET hidden_since = NULL WHERE number = $1", &[&writer.number])?;
            Ok(())
        })
    }

    /// Does something with a connection, a fresh one where the last one was lost.
    fn with<T>(&mut self, work: impl FnOnce(&mut Self, &mut Client) -> Result<T, Failure>) -> Result<T, StoreError> {
        let mut client = match self.client.take() {
            Some(client) if !client.is_closed() => client,
            _ => self.place.connect()?,
        };
        let done = work(self, &mut client);
        // A connection that the server has ended may not know it yet when it says so: after any failure it is made anew.
        self.client = Some(client).filter(|_| done.is_ok());
        self.place.told(done)
    }

    fn write(&mut self, client: &mut Client, entries: &[Entry], durable: bool) -> Result<(), Failure> {
        let mut transaction = client.transaction()?;
        if !durable {
            transaction.batch_execute("SET LOCAL synchronous_commit = off")?;
        }
        if transaction.query_opt("SELECT 1 FROM tapes WHERE number = $1 FOR UPDATE", &[&self.number])?.is_none() {
            // Somebody forgot the tape meanwhile. What follows is a tape again, by its old number.
            if self.hidden {
                return Err(StoreError::NoTape(self.info.id.clone()).into());
            }
            tapes::insert(&mut transaction, &self.info, Some(self.number), None)?;
        }
        let mut sums = Sums::default();
        let mut seen = Seen::default();
        let mut batch = Batch::new(self.number);
        for entry in entries {
            let packed = content::pack(&entry.content, &mut self.squeezer);
            let searched = self.searched(&mut transaction, entries, entry)?;
            self.keep_aside(&mut transaction, entry)?;
            seen.add(entry);
            sums.add(entry, packed.bytes.len());
            batch.rows.entry(&EntryRow { tape: self.number, entry, packed: &packed });
            batch.runs.add(entry, searched.as_deref());
            if batch.rows.len() + batch.runs.len() >= MAX_CHUNK_BYTES {
                std::mem::replace(&mut batch, Batch::new(self.number)).send(&mut transaction)?;
            }
        }
        batch.send(&mut transaction)?;
        keep_exchanges(&mut transaction, self.number, seen)?;
        keep_sums(&mut transaction, self.number, &sums)?;
        transaction.commit()?;
        Ok(())
    }

    fn keep_aside(&self, transaction: &mut Transaction<'_>, entry: &Entry) -> Result<(), Failure> {
        match (&entry.content, entry.session) {
            (Content::Session(info), Some(number)) => {
                tapes::keep_session(transaction, self.number, number, info, entry.at)
            }
            (Content::SessionEnded, Some(number)) => tapes::end_session(transaction, self.number, number, entry.at),
            _ => Ok(()),
        }
    }

    /// The message made whole, where its words are searched.
    fn searched(
        &mut self,
        transaction: &mut Transaction<'_>,
        batch: &[Entry],
        entry: &Entry,
    ) -> Result<Option<Bytes>, Failure> {
        let Content::Message(message) = &entry.content else { return Ok(None) };
        if let Body::Whole(whole) = &message.body
            && whole.len() <= MAX_RECENT_BYTES
        {
            if self.recent.len() == MAX_RECENT {
                self.recent.pop_front();
            }
            self.recent.push_back((entry.seq, whole.clone()));
        }
        if !is_searched(&message.body) {
            return Ok(None);
        }
        Ok(match &message.body {
            Body::Whole(whole) => Some(whole.clone()),
            Body::Like { seq, prefix, suffix, middle } => {
                let base = match within(batch, *seq) {
                    Some(base) => Some(base),
                    None => self.base(transaction, *seq)?,
                };
                base.and_then(|base| splice::join(&base, *prefix, *suffix, middle))
            }
            Body::Left => None,
        })
    }

    fn base(&mut self, transaction: &mut Transaction<'_>, seq: u64) -> Result<Option<Bytes>, Failure> {
        if let Some((_, whole)) = self.recent.iter().find(|(known, _)| *known == seq) {
            return Ok(Some(whole.clone()));
        }
        let found = row::bases(transaction, &mut self.squeezer, self.number, &[seq as i64])?;
        Ok(found.into_iter().next().map(|(_, whole)| whole))
    }
}

impl TapeWriter for PostgresWriter {
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError> {
        if self.ended {
            return Err(StoreError::Query(format!("tape {} has ended", self.info.id)));
        }
        check_order(&self.info.id, self.last_seq, entries)?;
        let Some(last) = entries.last() else { return Ok(()) };
        let written = self.with(|writer, client| writer.write(client, entries, durable));
        match &written {
            Ok(()) => self.last_seq = last.seq,
            Err(_) => self.recent.clear(),
        }
        written
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        // Words are kept with their entries, in the same transaction.
        Ok(false)
    }

    fn end(&mut self, at: u64) -> Result<(), StoreError> {
        self.with(|writer, client| {
            client.execute("UPDATE tapes SET ended = $2 WHERE number = $1", &[&writer.number, &(at as i64)])?;
            writer.ended = true;
            Ok(())
        })
    }
}

fn begin(client: &mut Client, info: &TapeInfo, hidden: bool) -> Result<i64, Failure> {
    let mut transaction = client.transaction()?;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
    // What a failed import or a removal left behind does not stand in the way of its name.
    let left = "UPDATE tapes SET id = id || ' ' || number WHERE id = $1 AND hidden_since IS NOT NULL";
    transaction.execute(left, &[&escape(&info.id)])?;
    let number = tapes::insert(&mut transaction, info, None, hidden.then_some(since))?;
    transaction.commit()?;
    Ok(number)
}

/// The whole body of an entry of a batch.
fn within(batch: &[Entry], seq: u64) -> Option<Bytes> {
    let place = batch.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
    match &batch[place].content {
        Content::Message(MessageEntry { body: Body::Whole(whole), .. }) => Some(whole.clone()),
        _ => None,
    }
}

/// Rows on their way into the tables.
struct Batch {
    rows: Copy,
    runs: Runs,
}

impl Batch {
    fn new(tape: i64) -> Self {
        Self { rows: Copy::new(), runs: Runs::new(tape) }
    }

    fn send(self, transaction: &mut Transaction<'_>) -> Result<(), Failure> {
        send(transaction, &copy::entries_sql(), self.rows)?;
        send(transaction, copy::WORDS_SQL, self.runs.finish())
    }
}

fn send(transaction: &mut Transaction<'_>, sql: &str, rows: Copy) -> Result<(), Failure> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut writer = transaction.copy_in(sql)?;
    writer.write_all(&rows.finish()).map_err(Failure::of_copy)?;
    writer.finish()?;
    Ok(())
}

fn keep_exchanges(transaction: &mut Transaction<'_>, tape: i64, seen: Seen<'_>) -> Result<(), Failure> {
    let parts = seen.parts();
    let numbers = |number: fn(&(u64, crate::seen::Part<'_>)) -> u64| -> Vec<i64> {
        parts.iter().map(|part| number(part) as i64).collect()
    };
    let finished = || parts.iter().map(|(_, part)| part.finished);
    let method: Vec<_> = finished().map(|end| end.map(|end| escape(&end.method))).collect();
    let subject: Vec<_> = finished().map(|end| end.and_then(|end| end.subject.as_deref().map(escape))).collect();
    let outcome: Vec<_> = finished().map(|end| end.map(|end| escape(&end.outcome))).collect();
    let took: Vec<_> = finished().map(|end| end.map(|end| end.took.min(i64::MAX as u64) as i64)).collect();
    let bytes_in: Vec<_> = finished().map(|end| end.map(|end| end.bytes_in as i64)).collect();
    let bytes_out: Vec<_> = finished().map(|end| end.map(|end| end.bytes_out as i64)).collect();
    let sql = "INSERT INTO exchanges (tape, exchange, first, last, method, subject, outcome, took, bytes_in, bytes_out)
        SELECT $1, * FROM unnest($2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[],
        $8::bigint[], $9::bigint[], $10::bigint[])
        ON CONFLICT (tape, exchange) DO UPDATE SET last = excluded.last,
        method = coalesce(excluded.method, exchanges.method), subject = coalesce(excluded.subject, exchanges.subject),
        outcome = coalesce(excluded.outcome, exchanges.outcome), took = coalesce(excluded.took, exchanges.took),
        bytes_in = coalesce(excluded.bytes_in, exchanges.bytes_in),
        bytes_out = coalesce(excluded.bytes_out, exchanges.bytes_out)";
    transaction.execute(
        sql,
        &[
            &tape,
            &numbers(|(exchange, _)| *exchange),
            &numbers(|(_, part)| part.first),
            &numbers(|(_, part)| part.last),
            &method,
            &subject,
            &outcome,
            &took,
            &bytes_in,
            &bytes_out,
        ],
    )?;
    Ok(())
}

fn keep_sums(transaction: &mut Transaction<'_>, tape: i64, sums: &Sums) -> Result<(), Failure> {
    let sql = "UPDATE tapes SET entries = entries + $2,
        disordered = disordered OR $6 OR $3 < coalesce(last_at, $3),
        first_at = least(first_at, $3), last_at = greatest(last_at, $4), last_seq = $5,
        kinds = (SELECT array_agg(a + b ORDER BY n) FROM unnest(kinds, $7::bigint[]) WITH ORDINALITY AS k (a, b, n)),
        gaps = gaps + $8, passed = passed + $9, kept = kept + $10 WHERE number = $1";
    transaction.execute(
        sql,
        &[
            &tape,
            &sums.entries,
            &(sums.first_at as i64),
            &(sums.last_at as i64),
            &(sums.last_seq as i64),
            &sums.disordered,
            &sums.kinds.to_vec(),
            &sums.gaps,
            &sums.passed,
            &sums.kept,
        ],
    )?;
    Ok(())
}
