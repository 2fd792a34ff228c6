//! The tapes that one recorder writes, one after the other.

use super::tape_bounds::TapeBounds;
use crate::seal::SealSettings;
use signalbox_engine::record::{TapeInfo, TapeWriter};
use std::time::Duration;

/// Why the next tape cannot begin.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NextTapeError(#[from] Box<dyn std::error::Error + Send + Sync>);

/// A tape that can be written.
pub struct NextTape {
    /// Its head.
    pub info: TapeInfo,
    /// Writes it.
    pub writer: Box<dyn TapeWriter>,
    /// Seals it.
    pub seal: Option<SealSettings>,
    /// The key for hashes of secrets, which no other tape has.
    pub hash_key: [u8; 32],
}

/// Makes the tapes after the first one.
pub trait TapeFactory: Send {
    /// Makes a tape that begins at this time, in nanoseconds since 1970. Nothing may be stored yet: the tape at hand is
    /// ended first.
    ///
    /// # Errors
    /// If it cannot be sealed, say. The tape at hand goes on then.
    fn next_tape(&mut self, started: u64) -> Result<NextTape, NextTapeError>;

    /// Called when the tape at hand has ended and everything goes to this one.
    fn begun(&mut self, tape: TapeInfo);
}

/// The tapes of a recorder that begins the next one when one is large or old.
pub struct TapeSeries {
    /// The id of the first tape.
    pub first: String,
    /// When the next one begins.
    pub bounds: TapeBounds,
    /// How long a moment without calls under way is waited for when it is due.
    pub grace: Duration,
    /// Makes it.
    pub factory: Box<dyn TapeFactory>,
}
