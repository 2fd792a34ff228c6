//! The errors of reading and writing tape files.

use signalbox_engine::record::StoreError;

/// Why a tape file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum TapeFileError {
    /// It is something else.
    #[error("this is not a tape file")]
    NotATape,
    /// It was written by a later version of the program.
    #[error("the tape file has format version {found}; this program reads versions up to {known}")]
    Future {
        /// The version it has.
        found: u32,
        /// The latest this program knows.
        known: u32,
    },
    /// It is not what was written.
    #[error("the tape file is damaged at byte {at}: {why}")]
    Damaged {
        /// Where.
        at: u64,
        /// What is wrong.
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
