//! Delivery of records from the journal to sinks. Each sink runs on a thread of its own, at its own pace.

mod database;
mod file;
mod remote;
mod syslog;

pub use database::DatabaseSink;
pub use file::FileSink;
pub use remote::{AlertSink, Poster, RemoteSink};
pub use syslog::{BadSyslogAddress, SyslogAddress, SyslogSink};

pub use crate::journal::JournalRecord;
use crate::journal::{Cursor, JournalReader};
use crate::log::unix_ms;
use crate::place::SinkPlace;
use crate::progress::LogProgress;
use crate::record::AuditRecord;
use crate::signed::{MissingReason, SignedPlace};
use signalbox_engine::record::StoreError;
use signalbox_seal::SigningKey;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use std::time::Duration;

/// Maximum number of records in a batch, and the approximate limit of its bytes.
pub const MAX_BATCH: usize = 500;
const MAX_BATCH_BYTES: usize = 1 << 20;
/// Pause after the first failure. It doubles with each failure, up to the maximum.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Maximum pause of a sink that calls wait for.
const LONGEST_REQUIRED_PAUSE: Duration = Duration::from_millis(500);

/// Error of writing to a sink.
#[derive(Debug, thiserror::Error)]
pub enum SinkError {
    /// A file or connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Error of the database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The address did not accept the records.
    #[error("{0}")]
    Refused(String),
    /// The journal lacks a record that it should have.
    #[error("record {0} is not in the journal")]
    Missing(u64),
}

/// Destination to which records are delivered.
pub trait Sink: Send + std::fmt::Debug {
    /// Returns its name: `file`, `database`, `remote`, `syslog` or `alert`.
    fn name(&self) -> &'static str;

    /// Returns the place that it writes to, which distinguishes it from another sink of the same name; `None` if
    /// records cannot be read back from there.
    fn place(&self) -> Option<&SinkPlace> {
        None
    }

    /// Returns the last record of a chain that its place has already; 0 if there is none. May block, within bounds.
    ///
    /// # Errors
    /// If the place cannot be read.
    fn last_of(&mut self, chain: &str) -> Result<u64, SinkError> {
        let _ = chain;
        Ok(0)
    }

    /// Writes records in order, all or none. May block, within bounds. After a crash it may receive records that it has
    /// already.
    ///
    /// # Errors
    /// If it did not accept the records.
    fn write(&mut self, lines: &[JournalRecord]) -> Result<(), SinkError>;
}

/// Delivers records to one sink.
#[derive(Debug)]
pub(crate) struct Runner {
    pub index: usize,
    pub sink: Box<dyn Sink>,
    pub cursor: Cursor,
    pub acked: u64,
    pub required: bool,
    pub progress: Arc<LogProgress>,
    pub folder: PathBuf,
    pub key: SigningKey,
    pub chain: String,
    /// Last record of the log when the sink was added, if the log wrote to another place before, or to none. Records up
    /// to this one that the journal no longer has are elsewhere.
    pub came_after: Option<u64>,
    /// True if no cursor states the sink's position, so that the sink has to read it from its place.
    pub unknown: bool,
}

impl Runner {
    /// Starts the runner on a thread of its own.
    pub fn spawn(self) -> io::Result<()> {
        Builder::new().name(format!("audit-{}", self.sink.name())).spawn(move || self.run()).map(drop)
    }

    /// Runs until the log has ended and the sink has everything, or time is up.
    pub fn run(mut self) {
        let mut reader = JournalReader::new(&self.folder);
        let mut pause = FIRST_PAUSE;
        while let Some((upto, keep_from)) = self.progress.more(self.acked + 1, MAX_BATCH as u64, self.required) {
            match self.step(&mut reader, upto, keep_from) {
                Ok(()) => pause = FIRST_PAUSE,
                Err(error) => {
                    self.progress.failed(self.index, &error.to_string());
                    if !self.progress.pause(pause) {
                        break;
                    }
                    pause = (pause * 2).min(if self.required { LONGEST_REQUIRED_PAUSE } else { LONGEST_PAUSE });
                }
            }
        }
        self.progress.done();
    }

    fn step(&mut self, reader: &mut JournalReader, upto: u64, keep_from: u64) -> Result<(), SinkError> {
        if self.unknown {
            // A place that the log returns to already has records. No gap must stand for these.
            self.acked = self.acked.max(self.sink.last_of(&self.chain)?.min(upto));
            self.unknown = false;
            if self.acked == upto {
                self.reached(upto, 0);
                return Ok(());
            }
        }
        let next = (self.acked + 1).max(keep_from);
        let mut lines = reader.read(next, upto, MAX_BATCH, MAX_BATCH_BYTES)?;
        let skipped = next - 1 - self.acked;
        let Some(last) = lines.last().map(|line| line.seq) else { return Err(SinkError::Missing(next)) };
        if skipped > 0 {
            let gap = self.gap(next, &lines).ok_or(SinkError::Missing(next))?;
            lines.insert(0, gap);
        }
        self.sink.write(&lines)?;
        let skipped = self.came_after.take().map_or(skipped, |last| skipped.min((next - 1).saturating_sub(last)));
        self.reached(last, skipped);
        Ok(())
    }

    /// Stores the position of the sink and reports it to the waiters.
    fn reached(&mut self, last: u64, skipped: u64) {
        self.acked = last;
        if let Err(error) = self.cursor.keep(last) {
            tracing::warn!(sink = self.sink.name(), %error, "it could not be kept how far the audit sink came");
        }
        self.progress.acked(self.index, last, skipped);
    }

    /// Returns the signed line that stands for the skipped records before `next`.
    fn gap(&self, next: u64, lines: &[JournalRecord]) -> Option<JournalRecord> {
        let (hash, _) = AuditRecord::read(&lines.first()?.text).ok()?.hashes()?;
        let (chain, from, to) = (self.chain.clone(), self.acked + 1, next - 1);
        let is_elsewhere = self.came_after.is_some_and(|last| to <= last);
        let kind = if is_elsewhere { MissingReason::Elsewhere } else { MissingReason::Gap }.kind(self.sink.name());
        let sink = self.sink.place().map(|place| place.name.clone());
        let text = SignedPlace { kind, chain, from, to, hash, at: unix_ms(), sink }.sign(&self.key)?;
        Some(JournalRecord { seq: to, text })
    }
}
