//! A store of one test.

use crate::postgres_server::PostgresServer;
use signalbox_engine::record::TapeStore;
use signalbox_store::{PostgresStore, SqliteStore};
use std::sync::Arc;
use tempfile::TempDir;

/// An empty store that can be opened again.
pub enum House {
    /// A file in a folder of its own.
    Sqlite(TempDir),
    /// A database of its own on a server.
    Postgres(String),
}

impl House {
    pub fn sqlite() -> Self {
        Self::Sqlite(TempDir::new().unwrap())
    }

    pub fn postgres(server: &PostgresServer) -> Self {
        Self::Postgres(server.database())
    }

    /// Opens it, once more, with room for this many bytes.
    pub fn open_limited_to(&self, bytes: u64) -> Arc<dyn TapeStore> {
        match self {
            Self::Sqlite(folder) => {
                Arc::new(SqliteStore::open(folder.path().join("tapes.db")).unwrap().limited_to(bytes))
            }
            Self::Postgres(url) => Arc::new(PostgresStore::open(url).unwrap().limited_to(bytes)),
        }
    }

    /// Opens it, once more, to prune sealed tapes with this key.
    pub fn open_signing(&self, key: Option<signalbox_seal::SigningKey>) -> Arc<dyn TapeStore> {
        match self {
            Self::Sqlite(folder) => Arc::new(SqliteStore::open(folder.path().join("tapes.db")).unwrap().signing(key)),
            Self::Postgres(url) => Arc::new(PostgresStore::open(url).unwrap().signing(key)),
        }
    }

    /// Opens it, once more.
    pub fn open(&self) -> Arc<dyn TapeStore> {
        match self {
            Self::Sqlite(folder) => Arc::new(SqliteStore::open(folder.path().join("tapes.db")).unwrap()),
            Self::Postgres(url) => Arc::new(PostgresStore::open(url).unwrap()),
        }
    }
}
