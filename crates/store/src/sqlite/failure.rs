//! What can go wrong inside, before the path of the file is added.

use crate::pack::Torn;
use rusqlite::{ErrorCode, ffi};
use signalbox_engine::record::StoreError;

/// Why something could not be done.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// SQLite said so.
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
    /// The stored data is damaged.
    #[error(transparent)]
    Torn(#[from] Torn),
    /// The error is already in its final form.
    #[error(transparent)]
    Said(#[from] StoreError),
}

impl Failure {
    /// In the words of the port.
    pub fn told(self, place: &str) -> StoreError {
        match self {
            Self::Said(error) => error,
            Self::Torn(torn) => damaged(place, &torn.to_string()),
            Self::Sqlite(error) => told(&error, place),
        }
    }
}

fn told(error: &rusqlite::Error, place: &str) -> StoreError {
    let rusqlite::Error::SqliteFailure(failure, _) = error else {
        return StoreError::Other(format!("{place}: {error}"));
    };
    match failure.code {
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked | ErrorCode::FileLockingProtocolFailed => {
            StoreError::Locked(place.to_owned())
        }
        ErrorCode::DiskFull => StoreError::Full(place.to_owned()),
        // The shared memory beside the file could not grow.
        _ if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => StoreError::Full(place.to_owned()),
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => damaged(place, &error.to_string()),
        ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::ReadOnly => {
            StoreError::Open { place: place.to_owned(), why: error.to_string() }
        }
        _ => StoreError::Other(format!("{place}: {error}")),
    }
}

fn damaged(place: &str, why: &str) -> StoreError {
    let todo =
        "`signalbox tape export` saves the tapes that can still be read; then move the file away; a new one is created";
    StoreError::Damaged { place: place.to_owned(), why: format!("{why}. {todo}") }
}
