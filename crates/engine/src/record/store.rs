//! The port behind which tapes are stored. Every implementation passes the same tests.

use super::around::SessionInfo;
use super::entry::Entry;
use super::query::{EntryPage, Query, Stats};
use super::tape_info::TapeInfo;
use std::time::Duration;

/// Why a store could not do what was asked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// It cannot be opened or reached.
    #[error("cannot open {place}: {why}")]
    Open {
        /// Where it is; never with a password in it.
        place: String,
        /// Why not.
        why: String,
    },
    /// Another process holds it.
    #[error("{0} is locked by another process")]
    Locked(String),
    /// There is no room left.
    #[error("no space left where {0} is")]
    Full(String),
    /// It was written by a later version of the program.
    #[error("{place} has format version {found}; this program reads versions up to {known}")]
    Future {
        /// Where it is.
        place: String,
        /// The version it has.
        found: u32,
        /// The latest this program knows.
        known: u32,
    },
    /// There is no such tape.
    #[error("no tape {0}; see `signalbox tape list`")]
    NoTape(String),
    /// What was asked makes no sense to it.
    #[error("{0}")]
    Query(String),
    /// What is stored is damaged.
    #[error("{place} is damaged: {why}")]
    Damaged {
        /// Where it is.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// Anything else the store said.
    #[error("{0}")]
    Other(String),
}

impl StoreError {
    /// What the operator can do about it.
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

/// The writing side of one tape. One thread owns it.
pub trait TapeWriter: Send {
    /// Appends these entries, all or none. With `durable` they are on disk when it returns.
    ///
    /// # Errors
    /// If the store fails; nothing of the batch is kept then, and it may be appended again.
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError>;

    /// Does deferred work, such as indexing for text search. Returns true if more is left.
    ///
    /// # Errors
    /// If the store fails.
    fn idle(&mut self) -> Result<bool, StoreError>;

    /// The number of entries that the index for text search lacks. A search looks through them one by one.
    fn unindexed(&self) -> u64 {
        0
    }

    /// Marks the end of the tape, and keeps with its head what closes its seal.
    ///
    /// # Errors
    /// If the store fails.
    fn end(&mut self, at: u64, closing: Option<&[u8]>) -> Result<(), StoreError>;
}

/// What to keep; older entries and those beyond the size are removed, oldest first. A tape that is being written stays.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Retention {
    /// Nothing older than this.
    pub max_age: Option<Duration>,
    /// No more than this many bytes in all.
    pub max_bytes: Option<u64>,
    /// Only report what would be removed.
    pub dry_run: bool,
}

/// What was pruned.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pruned {
    /// Removed tapes.
    pub tapes: Vec<String>,
    /// Entries removed with them, or from the beginning of a tape that is being written.
    pub entries: u64,
    /// Bytes of disk freed, approximately.
    pub bytes: u64,
}

/// A store of tapes. It may be used from several threads, and by several processes at once.
pub trait TapeStore: Send + Sync {
    /// Begins a tape.
    ///
    /// # Errors
    /// If the store fails.
    fn begin(&self, tape: &TapeInfo) -> Result<Box<dyn TapeWriter>, StoreError>;

    /// All tapes, the newest first, with the number of their entries.
    ///
    /// # Errors
    /// If the store fails.
    fn tapes(&self) -> Result<Vec<(TapeInfo, u64)>, StoreError>;

    /// One tape, by its name or an unambiguous beginning of it; `last` is the newest.
    ///
    /// # Errors
    /// If there is none, or several.
    fn tape(&self, id: &str) -> Result<TapeInfo, StoreError>;

    /// Facts that are missing from a tape, as its gaps say. What was pruned from its beginning is counted too.
    ///
    /// # Errors
    /// If the store fails.
    fn gaps(&self, tape: &str) -> Result<u64, StoreError>;

    /// The sessions of a tape, with their number.
    ///
    /// # Errors
    /// If the store fails.
    fn sessions(&self, tape: &str) -> Result<Vec<(u64, SessionInfo)>, StoreError>;

    /// Entries that a query finds.
    ///
    /// # Errors
    /// If the store fails.
    fn find(&self, query: &Query) -> Result<EntryPage, StoreError>;

    /// Statistics of one tape, or of all.
    ///
    /// # Errors
    /// If the store fails.
    fn stats(&self, tape: Option<&str>) -> Result<Stats, StoreError>;

    /// Imports a tape: its head and all its entries.
    ///
    /// # Errors
    /// If the source of the entries or the store fails; nothing is kept then.
    fn import(
        &self,
        tape: &TapeInfo,
        entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>,
    ) -> Result<u64, StoreError>;

    /// Forgets a tape.
    ///
    /// # Errors
    /// If the store fails.
    fn remove(&self, tape: &str) -> Result<(), StoreError>;

    /// Removes what need not be kept.
    ///
    /// # Errors
    /// If the store fails.
    fn prune(&self, retention: &Retention, now: u64) -> Result<Pruned, StoreError>;
}
