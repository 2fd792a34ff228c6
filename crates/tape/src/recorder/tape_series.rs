//! The tapes that one recorder writes in sequence.

use super::tape_bounds::TapeBounds;
use crate::seal::SealSettings;
use signalbox_engine::record::{TapeInfo, TapeWriter};
use std::time::Duration;

/// Error that keeps the next tape from beginning.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct NextTapeError(#[from] Box<dyn std::error::Error + Send + Sync>);

/// A tape that is ready to be written.
pub struct NextTape {
    pub info: TapeInfo,
    pub writer: Box<dyn TapeWriter>,
    pub seal: Option<SealSettings>,
    /// Key for hashes of secrets. Each tape has its own.
    pub hash_key: [u8; 32],
}

/// Makes the tapes after the first one.
pub trait TapeFactory: Send {
    /// Creates a tape that begins at this time, in nanoseconds since 1970. Must not store anything yet: the recorder
    /// ends the current tape first.
    ///
    /// # Errors
    /// Returns an error if the tape cannot be made, for example not sealed. The current tape then continues.
    fn next_tape(&mut self, started: u64) -> Result<NextTape, NextTapeError>;

    /// Notifies the factory that the former tape has ended and this one receives the entries.
    fn begun(&mut self, tape: TapeInfo);
}

/// Tapes of a recorder that begins the next one when the current one is large or old.
pub struct TapeSeries {
    /// Id of the first tape.
    pub first: String,
    /// Bounds at which the next tape begins.
    pub bounds: TapeBounds,
    /// Maximum time to wait for a moment without calls in flight once the next tape is due.
    pub grace: Duration,
    pub factory: Box<dyn TapeFactory>,
}
