//! Seals the tape of this process with the key of its data folder.

use super::anchoring::{AnchorCounters, Anchoring};
use super::random;
use crate::seal_folder::{SealFolder, SealFolderError};
use signalbox_config::Seal;
use signalbox_engine::record::TapeInfo;
use signalbox_tape::SealSettings;
use signalbox_tape::seal::BadSeal;
use std::path::Path;
use std::sync::Arc;

/// Why a tape cannot be sealed.
#[derive(Debug, thiserror::Error)]
pub enum SealTapeError {
    /// There is no key to sign with.
    #[error("tapes cannot be sealed: {0}; `seal.tapes = false` records without")]
    Key(#[from] SealFolderError),
    /// The head of the tape cannot be sealed.
    #[error("tapes cannot be sealed: {0}")]
    Tape(#[from] BadSeal),
    /// The system gives no randomness.
    #[error("tapes cannot be sealed: {0}")]
    System(#[from] std::io::Error),
}

/// Seals a tape with this head, which must not change any more, as the configuration wants; nothing where it does not. Heads that are
/// anchored are counted.
///
/// # Errors
/// If there is no key and none can be made.
pub fn seal_tape(
    tape: &mut TapeInfo,
    seal: &Seal,
    data_dir: &Path,
    anchored: &Arc<AnchorCounters>,
) -> Result<Option<SealSettings>, SealTapeError> {
    if !seal.tapes {
        return Ok(None);
    }
    let key = SealFolder::of(data_dir).signing_key()?;
    let signing = (seal.head_every, seal.head_interval);
    let settings = SealSettings::begin(tape, key, random()?, seal.commit.clone(), signing)?;
    if seal.anchor.is_empty() {
        return Ok(Some(settings));
    }
    Ok(Some(settings.telling(Arc::new(Anchoring::start(&seal.anchor, anchored)?))))
}
