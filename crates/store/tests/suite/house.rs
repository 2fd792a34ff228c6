//! A store of one test.

use signalbox_engine::record::TapeStore;
use signalbox_store::SqliteStore;
use std::sync::Arc;
use tempfile::TempDir;

/// An empty store that can be opened again.
pub enum House {
    /// A file in a folder of its own.
    Sqlite(TempDir),
}

impl House {
    pub fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().unwrap())
    }

    /// Opens it, once more.
    pub fn open(&self) -> Arc<dyn TapeStore> {
        match self {
            Self::Sqlite(folder) => Arc::new(SqliteStore::open(folder.path().join("tapes.db")).unwrap()),
        }
    }
}
