//! Appends entries to one tape, indexes their words and makes room in the store.

use super::address::PostgresAddress;
use super::copy::{Copy, EntryRow};
use super::link::{PreparedStatements, WriterLink};
use super::row::{self, escape};
use super::words::Runs;
use super::{Failure, notifications, prune, tapes};
use crate::body_codec::BodyCodec;
use crate::clock::unix_nanos;
use crate::notifications::Notifications;
use crate::retention::weight;
use crate::room::SizeLimit;
use crate::sums::{BatchExchanges, Sums, check_order};
use crate::text::is_searched;
use crate::{content, extra, splice};
use ::postgres::{Client, Statement, Transaction};
use bytes::Bytes;
use foldhash::HashMap;
use signalbox_engine::record::{Body, Content, Entry, MessageEntry, PruneReport, StoreError, TapeInfo, TapeWriter};
use signalbox_seal::{SigningKey, TapeSeal};
use std::collections::VecDeque;
use std::io::Write as _;

/// Number of bytes of rows sent at a time, so that the server works while more are packed.
const SENT_BYTES: usize = 32 << 10;

/// Maximum size of words buffered before they are sent.
const MAX_WORD_BYTES: usize = 16 << 20;

/// Maximum number of recent whole bodies, to which the next ones may refer, and their maximum size.
const MAX_RECENT: usize = 64;
const MAX_RECENT_BYTES: usize = 1 << 20;

/// Writer of one tape in a PostgreSQL database.
pub struct PostgresWriter {
    place: PostgresAddress,
    link: Option<WriterLink>,
    codec: BodyCodec,
    recent: VecDeque<(u64, Bytes)>,
    info: TapeInfo,
    number: i64,
    hidden: bool,
    last_seq: u64,
    ended: bool,
    room: Option<SizeLimit>,
    key: Option<SigningKey>,
    /// Error of making room, reported by the next `idle`.
    no_room: Option<StoreError>,
}

impl PostgresWriter {
    /// Stores the head of a new tape.
    pub fn begin(
        place: PostgresAddress,
        info: &TapeInfo,
        hidden: bool,
        room: Option<SizeLimit>,
    ) -> Result<Self, StoreError> {
        let mut client = place.connect()?;
        let number = place.with_place(begin(&mut client, info, hidden))?;
        Ok(Self {
            place,
            link: Some(WriterLink::new(client)),
            codec: BodyCodec::new(),
            recent: VecDeque::new(),
            info: info.clone(),
            number,
            hidden,
            last_seq: 0,
            ended: false,
            room,
            key: None,
            no_room: None,
        })
    }

    /// Sets the key that signs a checkpoint when the beginning of a sealed tape is deleted.
    pub fn signing(self, key: Option<SigningKey>) -> Self {
        Self { key, ..self }
    }

    /// Returns the number of the tape in the store.
    pub fn number(&self) -> i64 {
        self.number
    }

    /// Makes the tape visible.
    pub fn reveal(&mut self) -> Result<(), StoreError> {
        self.with(|writer, link| {
            link.client.execute("UPDATE tapes SET hidden_since = NULL WHERE number = $1", &[&writer.number])?;
            Ok(())
        })
    }

    /// Runs `work` with a connection, a new one if the last was lost.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Self, &mut WriterLink) -> Result<T, Failure>,
    ) -> Result<T, StoreError> {
        let mut link = match self.link.take() {
            Some(link) if !link.client.is_closed() => link,
            _ => WriterLink::new(self.place.connect()?),
        };
        let done = work(self, &mut link);
        // A connection that the server has closed may not know that yet, so drop it after any failure.
        self.link = Some(link).filter(|_| done.is_ok());
        self.place.with_place(done)
    }

    fn write(&mut self, link: &mut WriterLink, entries: &[Entry], durable: bool) -> Result<Sums, Failure> {
        let ready = link.prepare(durable)?;
        let mut transaction = link.client.transaction()?;
        if transaction.query_opt(&ready.hold, &[&self.number])?.is_none() {
            // The tape was deleted meanwhile. Begin it again under its old number.
            if self.hidden {
                return Err(StoreError::NoTape(self.info.id.clone()).into());
            }
            tapes::insert(&mut transaction, &self.info, Some(self.number), None)?;
        }
        let mut sums = Sums::default();
        let mut seen = BatchExchanges::default();
        let mut counted = Notifications::default();
        let bases = self.bases(&mut transaction, entries)?;
        for entry in entries {
            self.keep_aside(&mut transaction, entry)?;
            seen.add(entry);
            counted.add(content::what(&entry.content), content::names(&entry.content).method);
        }
        let mut left = entries;
        while !left.is_empty() {
            left = self.copy(&mut transaction, &ready, left, &bases, &mut sums)?;
        }
        keep_exchanges(&mut transaction, &ready.exchanges, self.number, seen)?;
        notifications::keep(&mut transaction, &ready.notifications, self.number, &counted)?;
        keep_sums(&mut transaction, &ready.sums, self.number, &sums)?;
        transaction.commit()?;
        self.remember(entries);
        Ok(sums)
    }

    /// Deletes the oldest entries if the store is about to exceed its limit.
    fn make_room(&mut self, sums: &Sums) -> Result<(), StoreError> {
        let Some(room) = &mut self.room else { return Ok(()) };
        if !room.add(sums) {
            return Ok(());
        }
        let room = room.clone();
        self.with(|writer, link| {
            let Some(left) = room.left(weight(&tapes::weighed(&mut link.client)?)) else { return Ok(()) };
            prune::shrink_to(&mut link.client, left, writer.key.as_ref(), unix_nanos(), &mut PruneReport::default())
        })
    }

    /// Sends entries, the first ones while the next are packed, and then their words. Returns the entries that remain
    /// when the words exceed their limit.
    fn copy<'a>(
        &mut self,
        transaction: &mut Transaction<'_>,
        ready: &PreparedStatements,
        entries: &'a [Entry],
        bases: &HashMap<u64, Bytes>,
        sums: &mut Sums,
    ) -> Result<&'a [Entry], Failure> {
        let mut runs = Runs::new(self.number);
        let mut rows = Copy::new();
        let mut extra = Vec::new();
        let mut done = 0;
        let mut writer = transaction.copy_in(&ready.entries)?;
        for entry in entries {
            let packed = content::pack(&entry.content, &mut self.codec);
            let extra = extra::pack(entry, &mut extra);
            sums.add(entry, packed.bytes.len(), extra.map_or(0, <[u8]>::len) + row::name_bytes(entry));
            rows.entry(&EntryRow { tape: self.number, entry, packed: &packed, extra });
            runs.add(entry, searched(entry, bases).as_deref());
            done += 1;
            if rows.len() >= SENT_BYTES {
                writer.write_all(&rows.take()).and_then(|()| writer.flush()).map_err(Failure::of_copy)?;
            }
            if runs.len() >= MAX_WORD_BYTES {
                break;
            }
        }
        writer.write_all(&rows.finish()).map_err(Failure::of_copy)?;
        writer.finish()?;
        let mut writer = transaction.copy_in(&ready.words)?;
        writer.write_all(&runs.finish().finish()).map_err(Failure::of_copy)?;
        writer.finish()?;
        Ok(&entries[done..])
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

    /// Returns the whole bodies that searched messages of a batch refer to. Fetches them before rows are sent, because
    /// no query can run meanwhile.
    fn bases(&mut self, transaction: &mut Transaction<'_>, batch: &[Entry]) -> Result<HashMap<u64, Bytes>, Failure> {
        let mut found = HashMap::default();
        let mut far = Vec::new();
        for entry in batch {
            let Content::Message(MessageEntry { body, .. }) = &entry.content else { continue };
            let Body::Like { seq, .. } = body else { continue };
            if !is_searched(body) || found.contains_key(seq) {
                continue;
            }
            match within(batch, *seq).or_else(|| self.recent(*seq)) {
                Some(whole) => drop(found.insert(*seq, whole)),
                None => far.push(*seq as i64),
            }
        }
        if !far.is_empty() {
            found.extend(row::bases(transaction, &mut self.codec, self.number, &far)?);
        }
        Ok(found)
    }

    fn recent(&self, seq: u64) -> Option<Bytes> {
        self.recent.iter().find(|(known, _)| *known == seq).map(|(_, whole)| whole.clone())
    }

    /// Caches the latest whole bodies, because the next batch may refer to them.
    fn remember(&mut self, batch: &[Entry]) {
        let wholes = batch.iter().rev().filter_map(|entry| match &entry.content {
            Content::Message(MessageEntry { body: Body::Whole(whole), .. }) if whole.len() <= MAX_RECENT_BYTES => {
                Some((entry.seq, whole.clone()))
            }
            _ => None,
        });
        let mut last: Vec<_> = wholes.take(MAX_RECENT).collect();
        last.reverse();
        self.recent.extend(last);
        self.recent.drain(..self.recent.len().saturating_sub(MAX_RECENT));
    }
}

/// Returns the whole message, if its words are searched.
fn searched(entry: &Entry, bases: &HashMap<u64, Bytes>) -> Option<Bytes> {
    let Content::Message(MessageEntry { body, .. }) = &entry.content else { return None };
    match body {
        Body::Whole(whole) => Some(whole.clone()),
        Body::Like { seq, prefix, suffix, middle } if is_searched(body) => {
            splice::join(bases.get(seq)?, *prefix, *suffix, middle)
        }
        Body::Like { .. } | Body::Left => None,
    }
}

impl TapeWriter for PostgresWriter {
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError> {
        if self.ended {
            return Err(StoreError::Query(format!("tape {} has ended", self.info.id)));
        }
        check_order(&self.info.id, self.last_seq, entries)?;
        let Some(last) = entries.last() else { return Ok(()) };
        let written = self.with(|writer, link| writer.write(link, entries, durable));
        match &written {
            Ok(sums) => {
                self.last_seq = last.seq;
                // The batch is stored, even if making room fails.
                self.no_room = self.make_room(sums).err();
            }
            Err(_) => self.recent.clear(),
        }
        written.map(drop)
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        // Words are stored with their entries, in the same transaction.
        self.no_room.take().map_or(Ok(false), Err)
    }

    fn end(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        self.with(|writer, link| {
            let mut transaction = link.client.transaction()?;
            let seal = tapes::lock_seal(&mut transaction, writer.number)?;
            transaction.execute("UPDATE tapes SET ended = $2 WHERE number = $1", &[&writer.number, &(at as i64)])?;
            if let (Some(seal), Some(closing)) = (seal, closing) {
                tapes::set_seal(&mut transaction, writer.number, &TapeSeal::closed(&seal, closing))?;
            }
            transaction.commit()?;
            writer.ended = true;
            Ok(())
        })
    }
}

fn begin(client: &mut Client, info: &TapeInfo, hidden: bool) -> Result<i64, Failure> {
    let mut transaction = client.transaction()?;
    let since = unix_nanos() as i64;
    // Rename the remains of a failed import or removal, so that its id is free.
    let left = "UPDATE tapes SET id = id || ' ' || number WHERE id = $1 AND hidden_since IS NOT NULL";
    transaction.execute(left, &[&escape(&info.id)])?;
    let number = tapes::insert(&mut transaction, info, None, hidden.then_some(since))?;
    transaction.commit()?;
    Ok(number)
}

/// Returns the whole body of an entry of a batch.
fn within(batch: &[Entry], seq: u64) -> Option<Bytes> {
    let place = batch.binary_search_by_key(&seq, |entry| entry.seq).ok()?;
    match &batch[place].content {
        Content::Message(MessageEntry { body: Body::Whole(whole), .. }) => Some(whole.clone()),
        _ => None,
    }
}

fn keep_exchanges(
    transaction: &mut Transaction<'_>,
    statement: &Statement,
    tape: i64,
    seen: BatchExchanges<'_>,
) -> Result<(), Failure> {
    let parts = seen.parts();
    let numbers = |number: fn(&(u64, crate::sums::ExchangePart<'_>)) -> u64| -> Vec<i64> {
        parts.iter().map(|part| number(part) as i64).collect()
    };
    let finished = || parts.iter().map(|(_, part)| part.finished);
    let method: Vec<_> = finished().map(|end| end.map(|end| escape(&end.method))).collect();
    let subject: Vec<_> = finished().map(|end| end.and_then(|end| end.subject.as_deref().map(escape))).collect();
    let outcome: Vec<_> = finished().map(|end| end.map(|end| escape(&end.outcome))).collect();
    let took: Vec<_> = finished().map(|end| end.map(|end| end.took.min(i64::MAX as u64) as i64)).collect();
    let bytes_in: Vec<_> = finished().map(|end| end.map(|end| end.bytes_in as i64)).collect();
    let bytes_out: Vec<_> = finished().map(|end| end.map(|end| end.bytes_out as i64)).collect();
    transaction.execute(
        statement,
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

fn keep_sums(transaction: &mut Transaction<'_>, statement: &Statement, tape: i64, sums: &Sums) -> Result<(), Failure> {
    transaction.execute(
        statement,
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
            &sums.aside,
        ],
    )?;
    Ok(())
}
