//! Appends entries to one tape and does its deferred work: indexing, training and making room.

use super::connection::{SqliteFile, learn};
use super::index::Extent;
use super::indexer::Indexer;
use super::names::{NameIds, NameRole};
use super::row::{MAX_TAPE, key};
use super::{SqliteFailure, exchanges, forget, index, notifications, prune, tapes};
use crate::body_codec::{BodyCodec, refers_to};
use crate::clock::unix_nanos;
use crate::notifications::Notifications;
use crate::room::SizeLimit;
use crate::sums::{BatchExchanges, Sums, check_order};
use crate::{content, extra};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior, params};
use signalbox_engine::record::{Content, Entry, PruneReport, StoreError, TapeInfo, TapeWriter};
use signalbox_seal::{SigningKey, TapeSeal};

/// Distance in positions beyond which a reference is stored separately, so that deleting its base finds it.
pub const NEAR: u64 = 1_000;

/// Writer of one tape in a SQLite file.
pub struct SqliteWriter {
    place: SqliteFile,
    connection: Connection,
    codec: BodyCodec,
    names: NameIds,
    info: TapeInfo,
    number: i64,
    hidden: bool,
    last_seq: u64,
    durable: bool,
    ended: bool,
    room: Option<SizeLimit>,
    key: Option<SigningKey>,
    /// Error of making room, reported by the next `idle`.
    no_room: Option<SqliteFailure>,
    /// Indexer, started with the first deferred work.
    indexer: Option<Indexer>,
    /// Last position when the indexer was woken.
    woken_at: u64,
}

impl SqliteWriter {
    /// Stores the head of a new tape.
    pub fn begin(
        place: SqliteFile,
        mut connection: Connection,
        info: &TapeInfo,
        hidden: bool,
        room: Option<SizeLimit>,
    ) -> Result<Self, StoreError> {
        let number = place.with_place(begin(&mut connection, info, hidden))?;
        Ok(Self {
            place,
            connection,
            codec: BodyCodec::new(),
            names: NameIds::default(),
            info: info.clone(),
            number,
            hidden,
            last_seq: 0,
            durable: false,
            ended: false,
            room,
            key: None,
            no_room: None,
            indexer: None,
            woken_at: 0,
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

    /// Indexes the whole tape and makes it visible.
    pub fn reveal(&mut self) -> Result<(), StoreError> {
        let revealed = self.index_all().and_then(|()| {
            let sql = "UPDATE tapes SET hidden_since = NULL WHERE number = ?1";
            Ok(self.connection.execute(sql, [self.number])?)
        });
        self.place.with_place(revealed).map(|_| ())
    }

    fn index_all(&mut self) -> Result<(), SqliteFailure> {
        while index::slice(&mut self.connection, &mut self.codec, self.number, Extent::Whole)? {}
        Ok(())
    }

    fn check(&self, entries: &[Entry]) -> Result<(), StoreError> {
        if self.ended {
            return Err(StoreError::Query(format!("tape {} has ended", self.info.id)));
        }
        check_order(&self.info.id, self.last_seq, entries)
    }

    /// Sets whether a transaction syncs the log to disk when it ends.
    fn set_durable(&mut self, durable: bool) -> Result<(), SqliteFailure> {
        if self.durable != durable {
            self.connection.pragma_update(None, "synchronous", if durable { "FULL" } else { "NORMAL" })?;
            self.durable = durable;
        }
        Ok(())
    }

    fn write(&mut self, entries: &[Entry]) -> Result<Sums, SqliteFailure> {
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let there = "SELECT 1 FROM tapes WHERE number = ?1";
        if transaction.prepare_cached(there)?.query_row([self.number], |_| Ok(())).optional()?.is_none() {
            // The tape was deleted meanwhile. Begin it again under its old number.
            if self.hidden {
                return Err(StoreError::NoTape(self.info.id.clone()).into());
            }
            self.names.forget();
            tapes::insert(&transaction, &self.info, Some(self.number), None)?;
        }
        let mut batch = Batch { tape: self.number, names: &mut self.names, codec: &mut self.codec };
        let sums = batch.write(&transaction, entries)?;
        keep_sums(&sums, &transaction, self.number)?;
        transaction.commit()?;
        Ok(sums)
    }

    /// Deletes the oldest entries if the store is about to exceed its limit.
    fn make_room(&mut self, sums: &Sums) -> Result<(), SqliteFailure> {
        let Some(room) = &mut self.room else { return Ok(()) };
        if !room.add(sums) {
            return Ok(());
        }
        let Some(left) = room.left(forget::used(&self.connection)?) else { return Ok(()) };
        let mut pruned = PruneReport::default();
        let key = self.key.as_ref();
        let mut pruner = prune::SqlitePruner { connection: &mut self.connection, codec: &mut self.codec, key };
        pruner.shrink_to(left, unix_nanos(), &mut pruned)
    }

    /// Trains a dictionary on the first bodies, unless the store has one.
    fn train(&mut self) -> Result<(), SqliteFailure> {
        learn(&self.connection, &mut self.codec)?;
        let Some(trained) = self.codec.train() else { return Ok(()) };
        let sql = "INSERT INTO dictionaries (number, bytes) VALUES (1, ?1) ON CONFLICT DO NOTHING";
        self.connection.execute(sql, [trained])?;
        learn(&self.connection, &mut self.codec)
    }

    /// Trains the dictionary, and wakes the indexer for new entries.
    fn work(&mut self) -> Result<(), SqliteFailure> {
        self.set_durable(false)?;
        if self.codec.latest() == 0 {
            self.train()?;
        }
        let Some(indexer) = &self.indexer else {
            // The indexer also serves tapes whose writers died.
            let started = Indexer::start(self.place.clone(), self.number).map_err(|error| self.place.cannot(error))?;
            started.wake();
            self.indexer = Some(started);
            return Ok(());
        };
        if self.last_seq - self.woken_at >= index::WORTH {
            self.woken_at = self.last_seq;
            indexer.wake();
        }
        Ok(indexer.check()?)
    }

    fn finish(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), SqliteFailure> {
        self.indexer = None;
        self.set_durable(true)?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        transaction.execute("UPDATE tapes SET ended = ?2 WHERE number = ?1", params![self.number, at as i64])?;
        if let (Some(seal), Some(closing)) = (tapes::seal(&transaction, self.number)?, closing) {
            tapes::set_seal(&transaction, self.number, &TapeSeal::closed(&seal, closing))?;
        }
        transaction.commit()?;
        self.ended = true;
        Ok(())
    }
}

impl TapeWriter for SqliteWriter {
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError> {
        self.check(entries)?;
        let Some(last) = entries.last() else { return Ok(()) };
        self.codec.compress_ahead(entries);
        let turn = self.indexer.as_ref().map(Indexer::write_turn);
        let written = self.set_durable(durable).and_then(|()| self.write(entries));
        match &written {
            Ok(sums) => {
                self.last_seq = last.seq;
                // The batch is stored, even if making room fails.
                self.no_room = self.make_room(sums).err();
            }
            Err(_) => self.names.forget(),
        }
        drop(turn);
        self.codec.end_batch();
        self.place.with_place(written).map(drop)
    }

    fn idle(&mut self) -> Result<bool, StoreError> {
        let worked = self.no_room.take().map_or_else(|| self.work(), Err);
        // The indexer does the rest.
        self.place.with_place(worked).map(|()| false)
    }

    fn unindexed(&self) -> u64 {
        self.indexer.as_ref().map_or(0, |indexer| self.last_seq.saturating_sub(indexer.indexed()))
    }

    fn end(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        let finished = self.finish(at, closing).and_then(|()| self.index_all());
        self.place.with_place(finished)
    }

    fn end_before_next(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        // The indexer of the next tape adopts the rest.
        let finished = self.finish(at, closing);
        self.place.with_place(finished)
    }
}

fn begin(connection: &mut Connection, info: &TapeInfo, hidden: bool) -> Result<i64, SqliteFailure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let since = unix_nanos() as i64;
    // Rename the remains of a failed import or removal, so that its id is free.
    let left = "UPDATE tapes SET id = id || ' ' || number WHERE id = ?1 AND hidden_since IS NOT NULL";
    transaction.execute(left, [&info.id])?;
    let number = tapes::insert(&transaction, info, None, hidden.then_some(since))?;
    if number > MAX_TAPE {
        return Err(StoreError::Query("the store has seen too many tapes; start another file".into()).into());
    }
    transaction.commit()?;
    Ok(number)
}

/// Batch of entries being written to the tables.
struct Batch<'a> {
    tape: i64,
    names: &'a mut NameIds,
    codec: &'a mut BodyCodec,
}

impl Batch<'_> {
    fn write(&mut self, transaction: &Transaction<'_>, entries: &[Entry]) -> rusqlite::Result<Sums> {
        let mut sums = Sums::default();
        let mut seen = BatchExchanges::default();
        let mut counted = Notifications::default();
        let mut more = Vec::new();
        let sql = "INSERT INTO tape_entries
            (id, at, session, exchange, principal, what, method, subject, backend, error_code, length, form, body, extra)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)";
        let mut insert = transaction.prepare_cached(sql)?;
        for entry in entries {
            let asked = content::names(&entry.content);
            let packed = content::pack(&entry.content, self.codec);
            let length = content::length(&entry.content);
            let what = content::what(&entry.content);
            let more = extra::pack(entry, &mut more);
            let mut id = |role, name: Option<&str>| {
                name.map(|name| self.names.id(transaction, self.tape, role, name)).transpose()
            };
            let method = id(NameRole::Method, asked.method)?;
            counted.add(what, method);
            insert.execute(params![
                key(self.tape, entry.seq),
                entry.at as i64,
                entry.session.map(|number| number as i64),
                entry.exchange.map(|number| number as i64),
                id(NameRole::Principal, Some(&entry.principal))?,
                what,
                method,
                id(NameRole::Subject, asked.subject)?,
                id(NameRole::Backend, asked.backend)?,
                asked.error_code,
                length.map(|length| length as i64),
                packed.form,
                &packed.bytes[..],
                more,
            ])?;
            self.keep_aside(transaction, entry)?;
            if let Some(base) = refers_to(packed.form, &packed.bytes)
                && entry.seq.saturating_sub(base) > NEAR
            {
                keep_far(transaction, self.tape, base, entry.seq)?;
            }
            seen.add(entry);
            sums.add(entry, packed.bytes.len(), more.map_or(0, <[u8]>::len));
        }
        drop(insert);
        exchanges::keep(seen, transaction, self.tape, self.names)?;
        notifications::keep(&counted, transaction, self.tape)?;
        Ok(sums)
    }

    fn keep_aside(&self, transaction: &Transaction<'_>, entry: &Entry) -> rusqlite::Result<()> {
        match (&entry.content, entry.session) {
            (Content::Session(info), Some(number)) => {
                tapes::keep_session(transaction, self.tape, number, info, entry.at)
            }
            (Content::SessionEnded, Some(number)) => tapes::end_session(transaction, self.tape, number, entry.at),
            _ => Ok(()),
        }
    }
}

fn keep_far(connection: &Connection, tape: i64, base: u64, seq: u64) -> rusqlite::Result<()> {
    let sql = "INSERT INTO far_references (tape, base, seq) VALUES (?1, ?2, ?3)";
    connection.prepare_cached(sql)?.execute([tape, base as i64, seq as i64])?;
    Ok(())
}

/// Adds the totals of a batch to the head of its tape.
fn keep_sums(sums: &Sums, transaction: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
    let first = sums.first_at as i64;
    let sql = "UPDATE tapes SET entries = entries + ?2,
            disordered = disordered OR ?6 OR ?3 < coalesce(last_at, ?3),
            first_at = min(coalesce(first_at, ?3), ?3), last_at = max(coalesce(last_at, ?4), ?4), last_seq = ?5,
            requests = requests + ?7, notifications = notifications + ?8, results = results + ?9,
            errors = errors + ?10, raws = raws + ?11, gaps = gaps + ?12, passed = passed + ?13, kept = kept + ?14,
            aside = aside + ?15
            WHERE number = ?1";
    let [requests, notifications, results, errors, raws] = sums.kinds;
    transaction.prepare_cached(sql)?.execute(params![
        tape,
        sums.entries,
        first,
        sums.last_at as i64,
        sums.last_seq as i64,
        sums.disordered,
        requests,
        notifications,
        results,
        errors,
        raws,
        sums.gaps,
        sums.passed,
        sums.kept,
        sums.aside,
    ])?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sqlite::connection;
    use signalbox_engine::fact::Point;
    use signalbox_engine::record::{Body, MessageEntry, MessageKind, TapeKind};
    use std::time::Duration;

    fn entry(seq: u64) -> Entry {
        let noise: Vec<u8> =
            (0..2_000u64).map(|n| ((n + seq).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect();
        let content = Content::Message(MessageEntry {
            method: Some(format!("m{seq}").into()),
            ..MessageEntry::new(Point::ClientIn, MessageKind::Raw, 2_000, Body::Whole(noise.into()))
        });
        Entry { exchange: Some(seq), ..Entry::new(seq, seq, "local".into(), content) }
    }

    #[test]
    fn a_full_file_keeps_nothing_of_the_batch_and_all_of_it_later() {
        let folder = tempfile::TempDir::new().unwrap();
        let place = SqliteFile::new(&folder.path().join("tapes.db"), Duration::from_secs(5));
        let connection = connection::create(&place).unwrap();
        let info = TapeInfo::new("t".into(), TapeKind::Serve, String::new(), 1);
        let mut writer = SqliteWriter::begin(place, connection, &info, false, None).unwrap();
        let limit = |writer: &SqliteWriter, pages: u32| {
            writer.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
        };
        let count = |writer: &SqliteWriter, table: &str| -> i64 {
            writer.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
        };
        writer.append(&[entry(1)], false).unwrap();
        limit(&writer, 60);
        let batch: Vec<Entry> = (2..=400).map(entry).collect();
        for _ in 0..2 {
            assert!(matches!(writer.append(&batch, true), Err(StoreError::Full(_))));
            for table in ["tape_entries", "exchanges"] {
                assert_eq!(count(&writer, table), 1, "{table}");
            }
        }
        limit(&writer, 1_000_000);
        writer.append(&batch, true).unwrap();
        assert_eq!(count(&writer, "tape_entries"), 400);
        assert_eq!(count(&writer, "names WHERE role = 'm'"), 400, "names of the failed batch were not taken for kept");
        writer.end(9, None).unwrap();
    }
}
