//! The port behind which tapes are kept. Every implementation passes the same suite of tests.

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
    /// What whoever runs the program can do about it.
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
    /// Keeps these entries, all or none, and has them on disk when it returns where `durable` is asked for.
    ///
    /// # Errors
    /// What the store says; nothing of the batch is kept then, and it may be offered again.
    fn append(&mut self, entries: &[Entry], durable: bool) -> Result<(), StoreError>;

    /// Work that may wait, done when there is time: the index for text search, say. True where more is left.
    ///
    /// # Errors
    /// What the store says.
    fn idle(&mut self) -> Result<bool, StoreError>;

    /// Marks the end of the tape.
    ///
    /// # Errors
    /// What the store says.
    fn end(&mut self, at: u64) -> Result<(), StoreError>;
}

/// What is to be kept; what is older or beyond goes, oldest first. A tape that is being written stays.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Retention {
    /// Nothing older than this.
    pub max_age: Option<Duration>,
    /// No more than this many bytes in all.
    pub max_bytes: Option<u64>,
    /// Only say what would go.
    pub dry_run: bool,
}

/// What was pruned.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Pruned {
    /// Tapes that are gone.
    pub tapes: Vec<String>,
    /// Entries that are gone with them, or from the beginning of a tape that goes on.
    pub entries: u64,
    /// Bytes of disk that are free again, about.
    pub bytes: u64,
}

/// Where tapes are kept. It may be used from several threads, and by several processes at once.
pub trait TapeStore: Send + Sync {
    /// Begins a tape.
    ///
    /// # Errors
    /// What the store says.
    fn begin(&self, tape: &TapeInfo) -> Result<Box<dyn TapeWriter>, StoreError>;

    /// All tapes, the newest first, with the number of their entries.
    ///
    /// # Errors
    /// What the store says.
    fn tapes(&self) -> Result<Vec<(TapeInfo, u64)>, StoreError>;

    /// One tape, by its name or an unambiguous beginning of it; `last` is the newest.
    ///
    /// # Errors
    /// Where there is none, or several.
    fn tape(&self, id: &str) -> Result<TapeInfo, StoreError>;

    /// The sessions of a tape, with their number.
    ///
    /// # Errors
    /// What the store says.
    fn sessions(&self, tape: &str) -> Result<Vec<(u64, SessionInfo)>, StoreError>;

    /// Entries that a query finds.
    ///
    /// # Errors
    /// What the store says.
    fn find(&self, query: &Query) -> Result<EntryPage, StoreError>;

    /// Numbers over one tape, or over all.
    ///
    /// # Errors
    /// What the store says.
    fn stats(&self, tape: Option<&str>) -> Result<Stats, StoreError>;

    /// Keeps a tape that came from elsewhere: its head and all its entries.
    ///
    /// # Errors
    /// What the source of the entries or the store says; nothing is kept then.
    fn import(
        &self,
        tape: &TapeInfo,
        entries: &mut dyn Iterator<Item = Result<Entry, StoreError>>,
    ) -> Result<u64, StoreError>;

    /// Forgets a tape.
    ///
    /// # Errors
    /// What the store says.
    fn remove(&self, tape: &str) -> Result<(), StoreError>;

    /// Forgets what is not to be kept.
    ///
    /// # Errors
    /// What the store says.
    fn prune(&self, retention: &Retention, now: u64) -> Result<Pruned, StoreError>;
}
