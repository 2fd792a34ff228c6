//! Opens the file with the pragmas that every connection needs. A [`SqliteReader`] runs queries on one connection.

use super::{SqliteFailure, schema};
use crate::body_codec::BodyCodec;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use signalbox_engine::record::StoreError;
use std::fs::{OpenOptions, Permissions};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Number of prepared statements that a connection caches.
const STATEMENTS: usize = 64;

/// Number of log pages written back at once. Few large writes cost less than many small ones.
const CHECKPOINT_PAGES: u32 = 4_000;

/// Size in bytes to which the log is truncated after a write-back.
const MAX_LOG_BYTES: u64 = 64 << 20;

/// Path of the file, and the time to wait for other processes.
#[derive(Clone, Debug)]
pub struct SqliteFile {
    path: Arc<PathBuf>,
    shown: Arc<str>,
    wait: Duration,
}

impl SqliteFile {
    /// Creates the description of a file. Nothing is opened.
    pub fn new(path: &Path, wait: Duration) -> Self {
        Self { shown: path.display().to_string().into(), path: Arc::new(path.to_owned()), wait }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Converts a failure to an error of the store, with the path of the file.
    pub fn with_place<T>(&self, result: Result<T, SqliteFailure>) -> Result<T, StoreError> {
        result.map_err(|failure| failure.into_store_error(&self.shown))
    }

    pub fn cannot(&self, why: impl ToString) -> SqliteFailure {
        StoreError::Open { place: self.shown.to_string(), why: why.to_string() }.into()
    }
}

/// Opens the file, creates it if it is missing, and converts it to this program's version.
pub fn create(place: &SqliteFile) -> Result<Connection, SqliteFailure> {
    let mut connection = create_if(place, |found| schema::refuse_foreign(found, &place.shown))?;
    schema::prepare(&mut connection, &place.shown, schema::VERSION, schema::CONVERTERS)?;
    Ok(connection)
}

/// Opens the file, and creates it if it is missing, unless `accepts` rejects its content. Creates no table.
pub fn create_if(
    place: &SqliteFile,
    accepts: impl FnOnce(&Connection) -> Result<(), SqliteFailure>,
) -> Result<Connection, SqliteFailure> {
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&*place.path);
    let file = file.map_err(|error| place.cannot(error))?;
    let connection = open(place)?;
    accepts(&connection)?;
    // SQLite gives the files beside it the same mode. This also corrects the mode of an existing file.
    file.set_permissions(Permissions::from_mode(0o600)).map_err(|error| place.cannot(error))?;
    log_ahead(&connection, place.wait)?;
    Ok(connection)
}

/// Opens another connection to an existing file.
pub fn open(place: &SqliteFile) -> Result<Connection, SqliteFailure> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(&*place.path, flags)?;
    connection.busy_timeout(place.wait)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // A foreign database may contain triggers and views. Trust nothing in them.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_PAGES)?;
    connection.pragma_update(None, "journal_size_limit", MAX_LOG_BYTES as i64)?;
    connection.pragma_update(None, "cache_size", -16_384)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Turns the write-ahead log on. SQLite does not wait for other connections when it does that, so this function does.
fn log_ahead(connection: &Connection, wait: Duration) -> Result<(), SqliteFailure> {
    let until = Instant::now() + wait;
    loop {
        let turned = journal_mode(connection);
        let busy = matches!(&turned, Err(rusqlite::Error::SqliteFailure(failure, _))
            if matches!(failure.code, ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked));
        if !busy || Instant::now() >= until {
            return Ok(turned?);
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

fn journal_mode(connection: &Connection) -> rusqlite::Result<()> {
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    if mode != "wal" {
        // Both can only be set before the first table is created.
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
    }
    Ok(())
}

/// Connection for queries, with the codec of its bodies.
pub struct SqliteReader {
    /// Connection to the file.
    pub connection: Connection,
    /// Decoder of stored bodies.
    pub codec: BodyCodec,
}

impl SqliteReader {
    /// Creates a reader that knows only the built-in dictionary.
    pub fn new(connection: Connection) -> Self {
        Self { connection, codec: BodyCodec::new() }
    }
}

/// Loads the dictionaries that were created since the last time.
pub fn learn(connection: &Connection, codec: &mut BodyCodec) -> Result<(), SqliteFailure> {
    let mut select = connection.prepare_cached("SELECT number, bytes FROM dictionaries WHERE number > ?1")?;
    let mut rows = select.query([codec.latest() as i64])?;
    while let Some(row) = rows.next()? {
        let number: i64 = row.get(0)?;
        codec.learn(number as u64, row.get(1)?);
    }
    Ok(())
}
