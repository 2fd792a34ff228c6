//! Tapes in one SQLite file, which several processes may read and write at once.

mod connection;
mod exchanges;
mod filter;
mod find;
mod forget;
mod index;
mod indexer;
mod names;
mod notifications;
mod prune;
mod row;
mod schema;
mod stats;
mod tables;
mod tapes;
mod writer;

use crate::pack::DecodeError;
use crate::room::SizeLimit;
use connection::SqliteReader;
pub(crate) use connection::{SqliteFile, create_if};
use rusqlite::{ErrorCode, ffi};
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::record::{
    Entry, EntryPage, PruneReport, Query, Retention, SessionInfo, Stats, StoreError, TapeInfo, TapeStore, TapeTables,
    TapeWriter,
};
use signalbox_seal::SigningKey;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;
use writer::SqliteWriter;

/// Maximum time to wait for another process that has the file locked.
const MAX_WAIT: Duration = Duration::from_secs(5);

/// Maximum number of idle connections kept for later queries.
const MAX_READERS: usize = 4;

/// Number of entries in a batch of an import.
const IMPORT_BATCH: usize = 500;

/// Tape store in a SQLite file. Only the owner of the file can read it.
pub struct SqliteStore {
    place: SqliteFile,
    most: Option<u64>,
    key: Option<SigningKey>,
    readers: Mutex<Vec<SqliteReader>>,
}

impl SqliteStore {
    /// Opens a store, and creates it if there is none.
    ///
    /// # Errors
    /// If the file cannot be opened, is damaged, is locked, or was written by a later version.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_waiting(path, MAX_WAIT)
    }

    /// Opens a store with this maximum time to wait for other processes.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_waiting(path: impl AsRef<Path>, wait: Duration) -> Result<Self, StoreError> {
        let place = SqliteFile::new(path.as_ref(), wait);
        let reader = place.with_place(connection::create(&place).map(SqliteReader::new))?;
        Ok(Self { place, most: None, key: None, readers: Mutex::new(vec![reader]) })
    }

    /// Limits the size of the store. Its writers delete the oldest entries before it grows larger.
    #[must_use]
    pub fn limited_to(self, bytes: u64) -> Self {
        Self { most: Some(bytes), ..self }
    }

    /// Sets the key that signs a checkpoint when the beginning of a sealed tape is deleted.
    #[must_use]
    pub fn signing(self, key: Option<SigningKey>) -> Self {
        Self { key, ..self }
    }

    /// Runs a query on a connection that no other thread uses meanwhile.
    fn ask<T>(&self, question: impl FnOnce(&mut SqliteReader) -> Result<T, SqliteFailure>) -> Result<T, StoreError> {
        let idle = self.readers.lock().unpoisoned().pop();
        let reader = match idle {
            Some(reader) => Ok(reader),
            None => connection::open(&self.place).map(SqliteReader::new),
        };
        let mut reader = self.place.with_place(reader)?;
        let answer = self.place.with_place(question(&mut reader));
        let mut readers = self.readers.lock().unpoisoned();
        if readers.len() < MAX_READERS {
            readers.push(reader);
        }
        answer
    }

    fn writer(&self, tape: &TapeInfo, hidden: bool) -> Result<SqliteWriter, StoreError> {
        let connection = self.place.with_place(connection::open(&self.place))?;
        let room = self.most.filter(|_| !hidden).map(SizeLimit::new);
        let writer = SqliteWriter::begin(self.place.clone(), connection, tape, hidden, room)?;
        Ok(writer.signing(self.key.clone()))
    }
}

impl TapeStore for SqliteStore {
    fn begin(&self, tape: &TapeInfo) -> Result<Box<dyn TapeWriter>, StoreError> {
        Ok(Box::new(self.writer(tape, false)?))
    }

    fn tapes(&self) -> Result<Vec<(TapeInfo, u64)>, StoreError> {
        self.ask(|reader| tapes::list(&reader.connection))
    }

    fn tape(&self, id: &str) -> Result<TapeInfo, StoreError> {
        self.ask(|reader| tapes::meant(&reader.connection, id).map(|row| row.info))
    }

    fn gaps(&self, tape: &str) -> Result<u64, StoreError> {
        self.ask(|reader| stats::gaps(&reader.connection, tape))
    }

    fn sessions(&self, tape: &str) -> Result<Vec<(u64, SessionInfo)>, StoreError> {
        self.ask(|reader| tapes::sessions(&reader.connection, tape))
    }

    fn tables(&self, tape: &str) -> Result<TapeTables, StoreError> {
        self.ask(|reader| tables::tables(&mut reader.connection, tape))
    }

    fn find(&self, query: &Query) -> Result<EntryPage, StoreError> {
        self.ask(|reader| find::find(reader, query))
    }

    fn stats(&self, tape: Option<&str>) -> Result<Stats, StoreError> {
        self.ask(|reader| stats::stats(&reader.connection, tape))
    }

    fn import(
        &self,
        tape: &TapeInfo,
        entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>,
    ) -> Result<u64, StoreError> {
        // Hide the tape until it is complete.
        let mut writer = self.writer(tape, true)?;
        let mut count = 0;
        let mut keep = || {
            let mut batch = Vec::with_capacity(IMPORT_BATCH);
            for entry in &mut *entries {
                batch.push(entry?);
                count += 1;
                if batch.len() == IMPORT_BATCH {
                    writer.append(&batch, false)?;
                    batch.clear();
                }
            }
            writer.append(&batch, false)?;
            writer.reveal()
        };
        let kept = keep();
        if kept.is_err() {
            // Report the first error. The next prune deletes the rest.
            let _ = self.ask(|reader| forget::forget_number(&mut reader.connection, writer.number()));
        }
        kept.map(|()| count)
    }

    fn remove(&self, tape: &str) -> Result<(), StoreError> {
        self.ask(|reader| {
            let number = tapes::meant(&reader.connection, tape)?.number;
            forget::forget_number(&mut reader.connection, number)?;
            forget::shrink(&mut reader.connection)
        })
    }

    fn prune(&self, retention: &Retention, now: u64) -> Result<PruneReport, StoreError> {
        self.ask(|reader| prune::prune(reader, retention, now, self.key.as_ref()))
    }
}

/// Error before the path of the file is added.
#[derive(Debug, thiserror::Error)]
pub enum SqliteFailure {
    /// SQLite reported an error.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The stored data is damaged.
    #[error(transparent)]
    DecodeError(#[from] DecodeError),
    /// The error is already in its final form.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SqliteFailure {
    /// Converts the failure to an error of the store, with the path of the file.
    pub fn into_store_error(self, place: &str) -> StoreError {
        match self {
            Self::Store(error) => error,
            Self::DecodeError(torn) => damaged(place, &torn.to_string()),
            Self::Sqlite(error) => store_error(&error, place),
        }
    }
}

fn store_error(error: &rusqlite::Error, place: &str) -> StoreError {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return StoreError::Other(format!("{place}: {error}"));
    };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreError::Locked(place.to_owned())
        }
        ErrorCode::DiskFull => StoreError::Full(place.to_owned()),
        // The shared memory file could not grow.
        _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full(place.to_owned()),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => damaged(place, &error.to_string()),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => {
            StoreError::Open { place: place.to_owned(), why: error.to_string() }
        }
        _ => StoreError::Other(format!("{place}: {error}")),
    }
}

fn damaged(place: &str, why: &str) -> StoreError {
    let todo =
        "`signalbox tape export` saves the tapes that can still be read; then move the file away; a new one is created";
    StoreError::Damaged { place: place.to_owned(), why: format!("{why}. {todo}") }
}
