//! Errors of exports and imports.

use super::jsonl::JsonlError;
use signalbox_engine::record::StoreError;

/// Error of an export or import.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The tape could not be read to its end.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The export could not be written, or the import could not be read.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// A line of an import is invalid.
    #[error("line {line}: {why}")]
    Line {
        /// Line number, counted from 1.
        line: u64,
        /// Mistake in the line.
        why: JsonlError,
    },
}

impl From<serde_json::Error> for ExportError {
    fn from(error: serde_json::Error) -> Self {
        Self::Io(error.into())
    }
}
