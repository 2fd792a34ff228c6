//! Errors of reading and writing tape files.

use signalbox_engine::record::StoreError;

/// Error of reading or writing a tape file.
#[derive(Debug, thiserror::Error)]
pub enum TapeFileError {
    /// The file is not a tape.
    #[error("this is not a tape file")]
    NotATape,
    /// A later version of the program wrote the file.
    #[error("the tape file has format version {found}; this program reads versions up to {known}")]
    Future {
        /// Version of the file.
        found: u32,
        /// Latest version that this program reads.
        known: u32,
    },
    /// The content is damaged.
    #[error("the tape file is damaged at byte {at}: {why}")]
    Damaged {
        /// Offset of the damage, in bytes.
        at: u64,
        /// Description of the damage.
        why: String,
    },
    /// The file could not be read or written.
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl TapeFileError {
    pub(crate) fn damaged(at: u64, why: impl Into<String>) -> Self {
        Self::Damaged { at, why: why.into() }
    }
}

impl From<TapeFileError> for StoreError {
    fn from(error: TapeFileError) -> Self {
        let place = "the tape file".to_owned();
        match error {
            TapeFileError::Future { found, known } => Self::Future { place, found, known },
            TapeFileError::Damaged { .. } | TapeFileError::NotATape => Self::Damaged { place, why: error.to_string() },
            TapeFileError::Io(error) if error.kind() == std::io::ErrorKind::StorageFull => Self::Full(place),
            TapeFileError::Io(error) => Self::Other(error.to_string()),
        }
    }
}
