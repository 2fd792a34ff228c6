//! Tapes in a PostgreSQL database, in a schema of their own.
//!
//! All calls block and must not run on a thread of an async runtime.

mod address;
mod copy;
mod filter;
mod find;
mod forget;
mod link;
mod notifications;
mod prune;
mod row;
mod schema;
mod ssl;
mod stats;
mod tables;
mod tapes;
mod tls;
mod words;
mod writer;

use crate::room::SizeLimit;
use ::postgres::Client;
pub(crate) use address::PostgresAddress;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::record::{
    Entry, EntryPage, PruneReport, Query, Retention, SessionInfo, Stats, StoreError, TapeInfo, TapeStore, TapeTables,
    TapeWriter,
};
use signalbox_seal::SigningKey;
pub use ssl::PostgresAddressError;
use std::sync::Mutex;
use writer::PostgresWriter;

/// Number of entries in a batch of an import.
const IMPORT_BATCH: usize = 500;

/// Error before the address of the database is added.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// Error of the database.
    #[error(transparent)]
    Postgres(#[from] ::postgres::Error),
    /// Rows could not be sent.
    #[error(transparent)]
    Copy(std::io::Error),
    /// The stored data is damaged.
    #[error(transparent)]
    DecodeError(#[from] crate::pack::DecodeError),
    /// The error is already in its final form.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Failure {
    /// Converts an error of copying rows to the underlying database error, if there is one.
    fn of_copy(error: std::io::Error) -> Self {
        match error.downcast::<::postgres::Error>() {
            Ok(error) => Self::Postgres(error),
            Err(error) => Self::Copy(error),
        }
    }
}

/// Tape store in a PostgreSQL database.
pub struct PostgresStore {
    place: PostgresAddress,
    most: Option<u64>,
    key: Option<SigningKey>,
    client: Mutex<Option<Client>>,
}

impl PostgresStore {
    /// Opens a store by the URL of its database, and creates its tables if there are none.
    ///
    /// # Errors
    /// If the URL is invalid, the database cannot be reached, or a later version wrote it.
    pub fn open(url: &str) -> Result<Self, StoreError> {
        let bad = |why: PostgresAddressError| StoreError::Open { place: "the database".into(), why: why.to_string() };
        let place = PostgresAddress::read(url).map_err(bad)?;
        let mut client = place.connect()?;
        let prepared = schema::prepare(&mut client, &place);
        place.with_place(prepared)?;
        Ok(Self { place, most: None, key: None, client: Mutex::new(Some(client)) })
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

    /// Checks the URL of a database without connecting or reading files.
    ///
    /// # Errors
    /// If the URL is invalid. The error never quotes the URL, which may contain the password.
    pub fn check(url: &str) -> Result<(), PostgresAddressError> {
        PostgresAddress::read(url).map(|_| ())
    }

    /// Runs a query on the connection. The next query reopens a lost connection.
    fn ask<T>(&self, question: impl FnOnce(&mut Client) -> Result<T, Failure>) -> Result<T, StoreError> {
        let mut held = self.client.lock().unpoisoned();
        let mut client = match held.take() {
            Some(client) if !client.is_closed() => client,
            _ => self.place.connect()?,
        };
        let answer = self.place.with_place(question(&mut client));
        // A connection that the server has closed may not know that yet, so drop it after any failure.
        if answer.is_ok() {
            *held = Some(client);
        }
        answer
    }
}

impl TapeStore for PostgresStore {
    fn begin(&self, tape: &TapeInfo) -> Result<Box<dyn TapeWriter>, StoreError> {
        let writer = PostgresWriter::begin(self.place.clone(), tape, false, self.most.map(SizeLimit::new))?;
        Ok(Box::new(writer.signing(self.key.clone())))
    }

    fn tapes(&self) -> Result<Vec<(TapeInfo, u64)>, StoreError> {
        self.ask(|client| Ok(tapes::all(client)?.into_iter().map(|row| (row.info, row.entries)).collect()))
    }

    fn tape(&self, id: &str) -> Result<TapeInfo, StoreError> {
        self.ask(|client| tapes::meant(client, id).map(|row| row.info))
    }

    fn gaps(&self, tape: &str) -> Result<u64, StoreError> {
        self.ask(|client| stats::gaps(client, tape))
    }

    fn sessions(&self, tape: &str) -> Result<Vec<(u64, SessionInfo)>, StoreError> {
        self.ask(|client| tapes::sessions(client, tape))
    }

    fn tables(&self, tape: &str) -> Result<TapeTables, StoreError> {
        self.ask(|client| tables::tables(client, tape))
    }

    fn find(&self, query: &Query) -> Result<EntryPage, StoreError> {
        self.ask(|client| find::find(client, query))
    }

    fn stats(&self, tape: Option<&str>) -> Result<Stats, StoreError> {
        self.ask(|client| stats::stats(client, tape))
    }

    fn import(
        &self,
        tape: &TapeInfo,
        entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>,
    ) -> Result<u64, StoreError> {
        // Hide the tape until it is complete.
        let mut writer = PostgresWriter::begin(self.place.clone(), tape, true, None)?;
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
            let _ = self.ask(|client| forget::forget_number(client, writer.number()));
        }
        kept.map(|()| count)
    }

    fn remove(&self, tape: &str) -> Result<(), StoreError> {
        self.ask(|client| {
            let number = tapes::meant(client, tape)?.number;
            forget::forget_number(client, number)?;
            Ok(())
        })
    }

    fn prune(&self, retention: &Retention, now: u64) -> Result<PruneReport, StoreError> {
        self.ask(|client| prune::prune(client, retention, now, self.key.as_ref()))
    }
}
