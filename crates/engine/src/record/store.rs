//! Port to the stores of tapes. Every implementation passes the same tests.

use super::around::SessionInfo;
use super::entry::Entry;
use super::query::{EntryPage, Query, Stats};
use super::tables::TapeTables;
use super::tape_info::TapeInfo;
use std::time::Duration;

/// Failure of a store.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// The store cannot be opened or reached.
    #[error("cannot open {place}: {why}")]
    Open {
        /// Location of the store, never with a password in it.
        place: String,
        /// Reason for the failure.
        why: String,
    },
    /// Another process has locked the store.
    #[error("{0} is locked by another process")]
    Locked(String),
    /// There is no room left.
    #[error("no space left where {0} is")]
    Full(String),
    /// A later version of the program wrote the store.
    #[error("{place} has format version {found}; this program reads versions up to {known}")]
    Future {
        /// Location of the store.
        place: String,
        /// Version of the store.
        found: u32,
        /// Latest version this program knows.
        known: u32,
    },
    /// There is no such tape.
    #[error("no tape {0}; see `signalbox tape list`")]
    NoTape(String),
    /// The query is not valid.
    #[error("{0}")]
    Query(String),
    /// The stored data is damaged.
    #[error("{place} is damaged: {why}")]
    Damaged {
        /// Location of the store.
        place: String,
        /// Description of the damage.
        why: String,
    },
    /// Any other error of the store.
    #[error("{0}")]
    Other(String),
}

impl StoreError {
    /// Returns advice for the operator.
    #[must_use]
    pub fn advice(&self) -> &'static str {
        match self {
            Self::Open { .. } => {
                "see that it exists and that this user may write to it, or record elsewhere (`--data-dir`, `record.postgres`)"
            }
            Self::Locked(_) => "end the other process, or record elsewhere (`--data-dir`)",
            Self::Full(_) => "make room on the disk, or keep less (`record.max_size`, `signalbox tape prune`)",
            Self::Future { .. } => "run the newer version, or record elsewhere (`--data-dir`)",
            Self::Damaged { .. } => {
                "move the file away: a new one is begun at the next start, and `signalbox tape` can still be tried on the old one"
            }
            Self::NoTape(_) | Self::Query(_) | Self::Other(_) => "see docs/recording.md",
        }
    }
}

/// Writing side of one tape. One thread owns it.
pub trait TapeWriter: Send {
    /// Appends these entries, all or none. With `durable` they are on disk when it returns.
    ///
    /// # Errors
    /// Returns an error if the store fails. Nothing of the batch is then stored, and it may be appended again.
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError>;

    /// Does deferred work, such as indexing for text search. Returns true if more is left.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn idle(&mut self) -> Result<bool, StoreError>;

    /// Returns the number of entries that the index for text search lacks. A search scans them one by one.
    fn unindexed(&self) -> u64 {
        0
    }

    /// Marks the end of the tape, and stores the closing part of its seal with its head.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn end(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError>;

    /// Marks the end of the tape while the same thread goes on with another tape of the same store, to whose writer it
    /// may leave deferred work.
    ///
    /// # Errors
    /// If the store fails.
    fn end_before_next(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError> {
        self.end(at, closing)
    }
}

/// Retention policy. Older entries and those beyond the size are removed, oldest first. A tape that is being written
/// stays.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Retention {
    /// Maximum age of an entry.
    pub max_age: Option<Duration>,
    /// Maximum number of bytes in all.
    pub max_bytes: Option<u64>,
    /// True to only report what would be removed.
    pub dry_run: bool,
}

/// Result of a pruning.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct PruneReport {
    /// Names of removed tapes.
    pub tapes: Vec<String>,
    /// Number of entries removed with them, or from the beginning of a tape that is being written.
    pub entries: u64,
    /// Bytes of disk freed, approximately.
    pub bytes: u64,
}

/// Store of tapes. It may be used from several threads, and by several processes at once.
pub trait TapeStore: Send + Sync {
    /// Begins a tape.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn begin(&self, tape: &TapeInfo) -> Result<Box<dyn TapeWriter>, StoreError>;

    /// Returns all tapes, newest first, with the number of their entries.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn tapes(&self) -> Result<Vec<(TapeInfo, u64)>, StoreError>;

    /// Returns one tape, by its name or an unambiguous prefix of it; `last` is the newest.
    ///
    /// # Errors
    /// Returns an error if there is none, or several.
    fn tape(&self, id: &str) -> Result<TapeInfo, StoreError>;

    /// Returns the number of facts missing from a tape, according to its gaps. Entries pruned from its beginning are
    /// counted too.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn gaps(&self, tape: &str) -> Result<u64, StoreError>;

    /// Returns the sessions of a tape, with their numbers.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn sessions(&self, tape: &str) -> Result<Vec<(u64, SessionInfo)>, StoreError>;

    /// Returns all that is derived from the entries of a tape, as of one moment.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn tables(&self, tape: &str) -> Result<TapeTables, StoreError>;

    /// Returns the entries that match a query.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn find(&self, query: &Query) -> Result<EntryPage, StoreError>;

    /// Returns the statistics of one tape, or of all.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn stats(&self, tape: Option<&str>) -> Result<Stats, StoreError>;

    /// Imports a tape: its head and all its entries.
    ///
    /// # Errors
    /// Returns an error if the source of the entries or the store fails. Nothing is then stored.
    fn import(
        &self,
        tape: &TapeInfo,
        entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>,
    ) -> Result<u64, StoreError>;

    /// Removes a tape.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn remove(&self, tape: &str) -> Result<(), StoreError>;

    /// Removes the entries that the retention policy does not cover.
    ///
    /// # Errors
    /// Returns an error if the store fails.
    fn prune(&self, retention: &Retention, now: u64) -> Result<PruneReport, StoreError>;
}
