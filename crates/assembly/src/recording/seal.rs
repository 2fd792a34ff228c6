//! Seals the tapes of this process with the key of its data folder.

use super::anchoring::{AnchorCounters, Anchoring};
use super::random;
use crate::seal_folder::{SealFolder, SealFolderError};
use signalbox_config::Seal;
use signalbox_engine::record::TapeInfo;
use signalbox_seal::SigningKey;
use signalbox_tape::seal::{BadSeal, HeadSink};
use signalbox_tape::{HeadInterval, SealSettings};
use std::path::Path;
use std::sync::Arc;

/// Reason why a tape cannot be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealTapeError {
    /// There is no signing key.
    #[error("tapes cannot be sealed: {0}; `seal.tapes = false` records without")]
    Key(#[from] SealFolderError),
    /// The head of the tape cannot be sealed.
    #[error("tapes cannot be sealed: {0}")]
    Tape(#[from] BadSeal),
    /// The system provides no randomness.
    #[error("tapes cannot be sealed: {0}")]
    System(#[from] std::io::Error),
}

/// Sealing of one process's tapes, each with its own seed. Their signed heads go to the same places.
pub struct TapeSealing {
    key: SigningKey,
    commit: Vec<Vec<String>>,
    interval: HeadInterval,
    heads: Option<Arc<dyn HeadSink>>,
}

impl TapeSealing {
    /// Sets up sealing as configured, or returns `None` if it is off. `anchored` counts the anchored heads.
    ///
    /// # Errors
    /// If there is no key and none can be created.
    pub fn new(seal: &Seal, data_dir: &Path, anchored: &Arc<AnchorCounters>) -> Result<Option<Self>, SealTapeError> {
        if !seal.tapes {
            return Ok(None);
        }
        let key = SealFolder::of(data_dir).signing_key()?;
        let heads: Option<Arc<dyn HeadSink>> = match seal.anchor.is_empty() {
            true => None,
            false => Some(Arc::new(Anchoring::start(&seal.anchor, anchored)?)),
        };
        let interval = HeadInterval { entries: seal.head_every, time: seal.head_interval };
        Ok(Some(Self { key, commit: seal.commit.clone(), interval, heads }))
    }

    /// Seals a tape with this head, which must not change afterwards.
    ///
    /// # Errors
    /// If the head cannot be signed, or the system provides no randomness.
    pub fn seal(&self, tape: &mut TapeInfo) -> Result<SealSettings, SealTapeError> {
        let settings = SealSettings::begin(tape, self.key.clone(), random()?, self.commit.clone(), self.interval)?;
        Ok(match &self.heads {
            Some(heads) => settings.telling(Arc::clone(heads)),
            None => settings,
        })
    }
}
