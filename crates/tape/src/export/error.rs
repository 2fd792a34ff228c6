//! Why an export failed.

use signalbox_engine::record::StoreError;

/// Why an export or import failed.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The tape could not be read on.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// What was made could not be written, or what was to be read could not be.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A line of an import makes no sense.
    #[error("line {line}: {why}")]
    Line {
        /// Which, from 1.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}
