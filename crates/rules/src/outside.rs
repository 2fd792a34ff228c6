//! External inputs of a verdict: everything outside of the rules and the message. All of them pass through one trait,
//! so that a verdict can be recomputed from a recording.

use crate::limits;
use crate::rule_set::{FNV_START, fnv};
use bytes::Bytes;
use signalbox_engine::keys::{ExchangeId, SessionKey};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Action of a rule. Its state survives reloads as long as the rule keeps its id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Slot {
    pub rule: Arc<str>,
    /// Index of the action in the rule.
    pub action: u8,
}

/// Request to a rate limit for one use.
#[derive(Clone, Debug)]
pub struct LimitAsk<'a> {
    /// Action that owns the limit.
    pub slot: &'a Slot,
    /// Principal of the caller.
    pub caller: &'a str,
    /// Key under which uses are counted.
    pub key: &'a str,
    /// Maximum number of uses in `per`.
    pub limit: u64,
    /// Length of the window.
    pub per: Duration,
    /// Time of the use.
    pub now: Instant,
    /// The exchange of the call's first round, if the use is one of a call.
    pub call: Option<ExchangeId>,
}

/// Decision of a rate limit.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum LimitDecision {
    /// Within the limit. The use has been counted.
    Passed {
        /// Number of uses left.
        left: u64,
    },
    Over {
        /// Time until the next use is allowed.
        wait: Duration,
    },
}

/// Request to a cache for an answer.
#[derive(Clone, Debug)]
pub struct CacheAsk<'a> {
    /// Action that owns the cache.
    pub slot: &'a Slot,
    /// Cache key. Includes the page, and unless the cache is shared the principal and its exchanged token.
    pub key: &'a str,
    /// Exchange whose answer is to be stored after a miss.
    pub exchange: Option<(SessionKey, ExchangeId)>,
    /// Lifetime of an entry.
    pub ttl: Duration,
    /// Maximum number of entries.
    pub max_entries: usize,
    /// Time of the request.
    pub now: Instant,
}

/// Position of a use of shared state among all uses, with its time. Several threads write a tape, so its entries are
/// not in the order in which their calls used a counter. Turns are.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Turn {
    /// Number of uses before this one.
    pub number: u64,
    /// Nanoseconds since the state was created, by the message's clock.
    pub since: i128,
}

/// Answer of shared state, with the turn of the use.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InTurn<T> {
    pub answer: T,
    /// Turn of the use, or `None` if uses are not ordered.
    pub turn: Option<Turn>,
}

impl<T> InTurn<T> {
    /// Wraps an answer without a turn.
    pub fn alone(answer: T) -> Self {
        Self { answer, turn: None }
    }
}

/// Source of the external inputs of a verdict.
pub trait Outside {
    /// Requests one use from a rate limit.
    fn limit(&self, ask: &LimitAsk<'_>) -> InTurn<LimitDecision>;
    /// Returns `true` if the limit has counted an earlier round of the call.
    fn is_counted(&self, slot: &Slot, call: ExchangeId) -> bool;
    /// Returns a random number. With a seed, the next number of its sequence.
    fn draw(&self, slot: &Slot, seed: Option<u64>) -> u64;
    /// Returns the next position in a list, counted from 0 without wrapping.
    fn position(&self, slot: &Slot, now: Instant) -> InTurn<u64>;
    /// Looks up a cached answer.
    fn cached(&self, ask: &CacheAsk<'_>) -> InTurn<Option<Bytes>>;
    /// Returns the wall clock. `now` is the arrival time of the message.
    fn unix_ms(&self, now: u64) -> u64;
}

impl Turn {
    /// Formats the turn for a ruling.
    #[must_use]
    pub fn text(self) -> String {
        format!("{} at {}", self.number, self.since)
    }

    /// Parses the output of [`Self::text`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (number, since) = text.split_once(" at ")?;
        Some(Self { number: number.parse().ok()?, since: since.parse().ok()? })
    }
}

impl LimitDecision {
    /// Formats the decision for a ruling.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Passed { left } => format!("passed left={left}"),
            Self::Over { wait } => format!("over wait_ms={}", wait.as_millis()),
        }
    }

    /// Parses the output of [`Self::text`].
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(left) = text.strip_prefix("passed left=") {
            return Some(Self::Passed { left: left.parse().ok()? });
        }
        let wait = text.strip_prefix("over wait_ms=")?.parse().ok()?;
        Some(Self::Over { wait: Duration::from_millis(wait) })
    }
}

/// Formats a cache lookup for a ruling.
pub(crate) fn cached_text(found: Option<&Bytes>) -> String {
    found.map_or_else(|| "miss".to_owned(), |bytes| format!("hit {}", input_text(bytes)))
}

/// Formats external bytes for a ruling. Large ones are replaced by their length and hash.
pub(crate) fn input_text(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.len() <= limits::INPUT => text.to_owned(),
        _ => format!("{} bytes, fnv {:016x}", bytes.len(), fnv(FNV_START, bytes)),
    }
}

/// Source of the files that rules refer to.
pub trait Files {
    /// Reads a file as text. `name` is relative to the rule file. Reads at most `most` bytes.
    ///
    /// # Errors
    /// If the file cannot be read.
    fn read(&self, name: &str, most: usize) -> Result<String, OutsideFileError>;
}

/// Reason why a file cannot be read. The text follows the file's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OutsideFileError {
    /// The rules are not in a file, so relative paths have no base.
    #[error("these rules are not in a file, so a relative path has no base; write the result into the rule")]
    NoneBeside,
    /// Error of the operating system.
    #[error("{0}")]
    System(String),
    /// The path is a folder, a device or similar.
    #[error("not a regular file")]
    NoFile,
    #[error("larger than {most} bytes; split or shorten it")]
    TooLarge {
        /// Maximum size in bytes.
        most: usize,
    },
    #[error("not valid UTF-8")]
    NoText,
}

impl From<std::io::Error> for OutsideFileError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error.to_string())
    }
}

/// File source for rules that are not in a file.
#[derive(Copy, Clone, Debug)]
pub struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &str, _: usize) -> Result<String, OutsideFileError> {
        Err(OutsideFileError::NoneBeside)
    }
}
