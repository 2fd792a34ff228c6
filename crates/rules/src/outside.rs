//! Everything that a verdict needs and that is neither in the rules nor in the message. It all comes through one trait,
//! so that a verdict can be computed again from what was written down.

use crate::limits;
use crate::rule_set::{FNV_START, fnv};
use bytes::Bytes;
use signalbox_engine::keys::{ExchangeId, SessionKey};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One action of one rule, which keeps its counters across reloads for as long as the rule's id stays.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    /// The rule.
    pub rule: Arc<str>,
    /// The number of the action in it.
    pub action: u8,
}

/// A use that a rate limit is asked for.
#[derive(Clone, Debug)]
pub struct LimitAsk<'a> {
    /// Whose counter.
    pub slot: &'a Slot,
    /// The principal of the caller.
    pub caller: &'a str,
    /// What is counted apart.
    pub key: &'a str,
    /// How many uses.
    pub limit: u64,
    /// In how long a time.
    pub per: Duration,
    /// When.
    pub now: Instant,
}

/// What a rate limit says.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Limited {
    /// The use is counted, and so many are left.
    Passed {
        /// How many.
        left: u64,
    },
    /// There is none left for this long.
    Over {
        /// How long.
        wait: Duration,
    },
}

/// An answer that a cache is asked for.
#[derive(Clone, Debug)]
pub struct CacheAsk<'a> {
    /// Whose cache.
    pub slot: &'a Slot,
    /// The key, with the principal and its exchanged token where it is not shared.
    pub key: &'a str,
    /// The exchange whose answer is to be kept if there is none yet.
    pub exchange: Option<(SessionKey, ExchangeId)>,
    /// How long it is to be kept.
    pub ttl: Duration,
    /// How many are to be kept.
    pub max_entries: usize,
    /// When.
    pub now: Instant,
}

/// The place of a use of shared state in the order of all of them, and its time. Several threads write one tape, so the
/// order of its entries is not the order in which their calls met a counter; this is.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// How many uses came before.
    pub number: u64,
    /// Nanoseconds since the state was made, by the clock of the message.
    pub since: i128,
}

/// An answer of shared state, and the turn in which it was given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InTurn<T> {
    /// The answer.
    pub answer: T,
    /// The turn, if there is an order.
    pub turn: Option<Turn>,
}

impl<T> InTurn<T> {
    /// An answer outside of any order.
    pub fn alone(answer: T) -> Self {
        Self { answer, turn: None }
    }
}

/// What is asked of the outside.
pub trait Outside {
    /// Whether one more use is within a limit.
    fn limit(&self, ask: &LimitAsk<'_>) -> InTurn<Limited>;
    /// A random number; with a seed, the next one of its row.
    fn draw(&self, slot: &Slot, seed: Option<u64>) -> u64;
    /// The next place in a list, counted from 0 without end.
    fn position(&self, slot: &Slot, now: Instant) -> InTurn<u64>;
    /// The answer that was kept under a key.
    fn cached(&self, ask: &CacheAsk<'_>) -> InTurn<Option<Bytes>>;
    /// The wall clock; `now` is what the message's arrival says.
    fn unix_ms(&self, now: u64) -> u64;
}

impl Turn {
    /// The text of it in a ruling.
    #[must_use]
    pub fn text(self) -> String {
        format!("{} at {}", self.number, self.since)
    }

    /// Reads such a text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, since) = text.split_once(" at ")?;
        Some(Self { number: number.parse().ok()?, since: since.parse().ok()? })
    }
}

impl Limited {
    /// The text of it in a ruling.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Passed { left } => format!("passed left={left}"),
            Self::Over { wait } => format!("over wait_ms={}", wait.as_millis()),
        }
    }

    /// Reads such a text.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(left) = text.strip_prefix("passed left=") {
            return Some(Self::Passed { left: left.parse().ok()? });
        }
        let wait = text.strip_prefix("over wait_ms=")?.parse().ok()?;
        Some(Self::Over { wait: Duration::from_millis(wait) })
    }
}

/// The text of a cache's answer in a ruling.
pub(crate) fn cached_text(found: Option<&Bytes>) -> String {
    found.map_or_else(|| "miss".to_owned(), |bytes| format!("hit {}", input_text(bytes)))
}

/// Bytes from outside as a ruling holds them: whole, or by their length and hash where they are large.
pub(crate) fn input_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= limits::INPUT => text.to_owned(),
        _ => format!("{} bytes, fnv {:016x}", bytes.len(), fnv(FNV_START, bytes)),
    }
}

/// Where the files that rules name are read.
pub trait Files {
    /// The text of a file that a rule names, relative to the file of the rule. No more than `most` bytes are read.
    ///
    /// # Errors
    /// Why it cannot be read.
    fn read(&self, name: &str, most: usize) -> Result<String, FileError>;
}

/// Why a file that a rule names cannot be read, in words that follow its name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileError {
    /// The rules were not read from a file, so there is no folder to look in.
    #[error("these rules are not in a file, so a relative path has no base; write the result into the rule")]
    NoneBeside,
    /// The system could not read it; this is its error.
    #[error("{0}")]
    System(String),
    /// It is a folder, a device or the like.
    #[error("not a regular file")]
    NoFile,
    /// It is too large.
    #[error("larger than {most} bytes; split or shorten it")]
    TooLarge {
        /// How large it may be.
        most: usize,
    },
    /// It is not text.
    #[error("not valid UTF-8")]
    NoText,
}

impl From<std::io::Error> for FileError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error.to_string())
    }
}

/// For rules that are not in a file: there is nothing to read.
#[derive(Copy, Clone, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str, _: usize) -> Result<String, FileError> {
        Err(FileError::NoneBeside)
    }
}
