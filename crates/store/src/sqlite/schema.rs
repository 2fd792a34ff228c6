//! The tables, and the conversion of files of older versions.

use super::row::{ASIDE, MAX_SEQ, key, seq_of};
use super::{SqliteFailure, notifications};
use rusqlite::{Connection, OptionalExtension, Transaction, TransactionBehavior};
use signalbox_engine::record::StoreError;

/// Version of the tables below.
pub const VERSION: u32 = 3;

/// Conversion from version `n` to `n + 1`.
pub type Converter = (u32, fn(&Transaction<'_>) -> rusqlite::Result<()>);

/// Every conversion, in order. Each runs in a transaction of its own.
pub const CONVERTERS: &[Converter] = &[(1, to_version_2), (2, to_version_3)];

/// Duration, in nanoseconds, from which exchanges are in the index of slow ones.
pub const SLOW: u64 = 100_000_000;

/// SQL that creates the tables. The index merges many parts at once, and after large deletions, because each merge
/// costs as much as the whole index.
const TABLES: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value ANY) STRICT, WITHOUT ROWID;

CREATE TABLE tapes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    target TEXT NOT NULL,
    started INTEGER NOT NULL,
    ended INTEGER,
    program TEXT NOT NULL,
    redaction TEXT NOT NULL,
    sampling TEXT NOT NULL,
    hidden_since INTEGER,
    entries INTEGER NOT NULL DEFAULT 0,
    first_at INTEGER,
    last_at INTEGER,
    last_seq INTEGER NOT NULL DEFAULT 0,
    disordered INTEGER NOT NULL DEFAULT 0,
    indexed INTEGER NOT NULL DEFAULT 0,
    requests INTEGER NOT NULL DEFAULT 0,
    notifications INTEGER NOT NULL DEFAULT 0,
    results INTEGER NOT NULL DEFAULT 0,
    errors INTEGER NOT NULL DEFAULT 0,
    raws INTEGER NOT NULL DEFAULT 0,
    gaps INTEGER NOT NULL DEFAULT 0,
    passed INTEGER NOT NULL DEFAULT 0,
    kept INTEGER NOT NULL DEFAULT 0,
    parent TEXT,
    seal BLOB,
    aside INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE sessions (
    tape INTEGER NOT NULL,
    number INTEGER NOT NULL,
    external TEXT,
    client TEXT,
    client_version TEXT,
    revision TEXT,
    transport TEXT NOT NULL,
    began INTEGER NOT NULL,
    ended INTEGER,
    proof TEXT,
    address TEXT,
    claims BLOB,
    PRIMARY KEY (tape, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE notifications (
    tape INTEGER NOT NULL,
    method INTEGER NOT NULL,
    came INTEGER NOT NULL,
    went INTEGER NOT NULL,
    PRIMARY KEY (tape, method)
) STRICT, WITHOUT ROWID;

CREATE TABLE names (
    id INTEGER PRIMARY KEY,
    tape INTEGER NOT NULL,
    role TEXT NOT NULL,
    name TEXT NOT NULL,
    UNIQUE (tape, role, name)
) STRICT;

CREATE TABLE tape_entries (
    id INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    session INTEGER,
    exchange INTEGER,
    principal INTEGER NOT NULL,
    what INTEGER NOT NULL,
    method INTEGER,
    subject INTEGER,
    backend INTEGER,
    error_code INTEGER,
    length INTEGER,
    form INTEGER NOT NULL,
    body BLOB NOT NULL,
    extra BLOB
) STRICT;

CREATE TABLE exchanges (
    tape INTEGER NOT NULL,
    exchange INTEGER NOT NULL,
    first INTEGER NOT NULL,
    last INTEGER NOT NULL,
    method INTEGER,
    subject INTEGER,
    outcome INTEGER,
    well INTEGER,
    took INTEGER,
    bytes_in INTEGER,
    bytes_out INTEGER,
    PRIMARY KEY (tape, exchange)
) STRICT, WITHOUT ROWID;
CREATE INDEX exchanges_unwell ON exchanges (tape, outcome) WHERE well = 0;
CREATE INDEX exchanges_slow ON exchanges (tape, took) WHERE took >= 100000000;

CREATE TABLE far_references (
    tape INTEGER NOT NULL,
    base INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    PRIMARY KEY (tape, base, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE dictionaries (number INTEGER PRIMARY KEY, bytes BLOB NOT NULL) STRICT;

CREATE VIRTUAL TABLE tape_search USING fts5 (
    words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
INSERT INTO tape_search (tape_search, rank) VALUES ('automerge', 16);
INSERT INTO tape_search (tape_search, rank) VALUES ('crisismerge', 32);
INSERT INTO tape_search (tape_search, rank) VALUES ('deletemerge', 40);
";

/// Creates the tables, or checks their version and converts them.
pub fn prepare(
    connection: &mut Connection,
    place: &str,
    known: u32,
    converters: &[Converter],
) -> Result<(), SqliteFailure> {
    let mut version = match version(connection)? {
        Some(version) => version,
        None => make(connection, place)?,
    };
    if version > known {
        return Err(StoreError::Future { place: place.to_owned(), found: version, known }.into());
    }
    while version < known {
        version = convert(connection, place, converters)?;
    }
    Ok(())
}

/// Rejects a database that has other tables but not ours.
pub fn refuse_foreign(connection: &Connection, place: &str) -> Result<(), SqliteFailure> {
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if tables > 0 && version(connection)?.is_none() {
        let why = "it is a database of another program".to_owned();
        return Err(StoreError::Open { place: place.to_owned(), why }.into());
    }
    Ok(())
}

/// Returns the version of the tables; `None` if there are no tables.
fn version(connection: &Connection) -> rusqlite::Result<Option<u32>> {
    let there = "SELECT 1 FROM sqlite_schema WHERE name = 'meta'";
    if connection.query_row(there, [], |_| Ok(())).optional()?.is_none() {
        return Ok(None);
    }
    connection.query_row("SELECT value FROM meta WHERE key = 'version'", [], |row| row.get(0)).optional()
}

/// Creates the tables, unless another process has done so meanwhile.
fn make(connection: &mut Connection, place: &str) -> Result<u32, SqliteFailure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if let Some(version) = version(&transaction)? {
        return Ok(version);
    }
    refuse_foreign(&transaction, place)?;
    transaction.execute_batch(TABLES)?;
    transaction.execute("INSERT INTO meta (key, value) VALUES ('version', ?1)", [VERSION])?;
    transaction.commit()?;
    Ok(VERSION)
}

/// Runs one conversion in a transaction.
fn convert(connection: &mut Connection, place: &str, converters: &[Converter]) -> Result<u32, SqliteFailure> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let found = version(&transaction)?.unwrap_or(0);
    let Some((_, step)) = converters.iter().find(|(from, _)| *from == found) else {
        let why = format!("it has format version {found}, which this program no longer reads");
        return Err(StoreError::Open { place: place.to_owned(), why }.into());
    };
    step(&transaction)?;
    transaction.execute("UPDATE meta SET value = ?1 WHERE key = 'version'", [found + 1])?;
    transaction.commit()?;
    Ok(found + 1)
}

/// Number of positions counted at a time.
const SLICE: u64 = 100_000;

/// Converts to version 2, which adds columns and counts notifications by method.
pub fn to_version_2(file: &Transaction<'_>) -> rusqlite::Result<()> {
    file.execute_batch(
        "ALTER TABLE tapes ADD COLUMN parent TEXT;
         ALTER TABLE tapes ADD COLUMN seal BLOB;
         ALTER TABLE sessions ADD COLUMN proof TEXT;
         ALTER TABLE sessions ADD COLUMN address TEXT;
         ALTER TABLE sessions ADD COLUMN claims BLOB;
         ALTER TABLE tape_entries ADD COLUMN extra BLOB;
         CREATE TABLE notifications (
             tape INTEGER NOT NULL,
             method INTEGER NOT NULL,
             came INTEGER NOT NULL,
             went INTEGER NOT NULL,
             PRIMARY KEY (tape, method)
         ) STRICT, WITHOUT ROWID;",
    )?;
    let mut select = file.prepare("SELECT number FROM tapes WHERE notifications > 0")?;
    let tapes = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    tapes.into_iter().try_for_each(|tape| count(file, tape))
}

/// Converts to version 3, which records the size of everything besides the bodies of messages.
pub fn to_version_3(file: &Transaction<'_>) -> rusqlite::Result<()> {
    file.execute_batch("ALTER TABLE tapes ADD COLUMN aside INTEGER NOT NULL DEFAULT 0")?;
    let sql = format!(
        "UPDATE tapes SET aside = (SELECT {ASIDE} FROM tape_entries WHERE id BETWEEN ?2 AND ?3) WHERE number = ?1"
    );
    let mut select = file.prepare("SELECT number FROM tapes")?;
    let tapes = select.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<i64>>>()?;
    for tape in tapes {
        file.execute(&sql, [tape, key(tape, 0), key(tape, MAX_SEQ)])?;
    }
    Ok(())
}

fn count(file: &Transaction<'_>, tape: i64) -> rusqlite::Result<()> {
    let mut from = 0;
    loop {
        let sql = "SELECT id FROM tape_entries WHERE id BETWEEN ?1 AND ?2 ORDER BY id LIMIT 1";
        let mut next = file.prepare_cached(sql)?;
        let first: Option<i64> = next.query_row([key(tape, from), key(tape, MAX_SEQ)], |row| row.get(0)).optional()?;
        let Some(first) = first.map(seq_of) else { return Ok(()) };
        from = first + SLICE;
        notifications::keep(&notifications::between(file, tape, first, from)?, file, tape)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of_version(version: u32) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection
            .execute_batch(
                "CREATE TABLE meta (key TEXT PRIMARY KEY, value);
                 CREATE TABLE tapes (id TEXT);
                 INSERT INTO tapes VALUES ('old');",
            )
            .unwrap();
        connection.execute("INSERT INTO meta VALUES ('version', ?1)", [version]).unwrap();
        connection
    }

    const STEPS: &[Converter] = &[
        (1, |file| file.execute_batch("UPDATE tapes SET target = id || '!'")),
        (0, |file| file.execute_batch("ALTER TABLE tapes ADD COLUMN target TEXT")),
    ];

    /// Proves NO-13.
    #[test]
    fn an_old_file_takes_one_step_after_the_other() {
        let mut file = file_of_version(0);
        prepare(&mut file, "x", 2, STEPS).unwrap();
        let target: String = file.query_row("SELECT target FROM tapes", [], |row| row.get(0)).unwrap();
        assert_eq!(target, "old!");
        assert_eq!(version(&file).unwrap(), Some(2));
    }

    #[test]
    fn a_step_that_fails_leaves_the_file_at_the_version_before_it() {
        let mut file = file_of_version(0);
        let steps: &[Converter] =
            &[STEPS[1], (1, |file| file.execute_batch("UPDATE tapes SET id = 'torn'; UPDATE nothing SET x = 1"))];
        assert!(prepare(&mut file, "x", 2, steps).is_err());
        assert_eq!(version(&file).unwrap(), Some(1));
        let id: String = file.query_row("SELECT id FROM tapes", [], |row| row.get(0)).unwrap();
        assert_eq!(id, "old");
        prepare(&mut file, "x", 2, STEPS).unwrap();
        assert_eq!(version(&file).unwrap(), Some(2));
    }

    #[test]
    fn a_version_without_a_step_is_refused_by_name() {
        let error = prepare(&mut file_of_version(0), "x", 1, &[]).unwrap_err().into_store_error("x");
        assert!(error.to_string().contains("format version 0, which this program no longer reads"), "{error}");
    }

    #[test]
    fn a_file_of_the_future_is_refused_and_left_alone() {
        let mut file = file_of_version(9);
        let error = prepare(&mut file, "x", VERSION, CONVERTERS).unwrap_err().into_store_error("x");
        assert_eq!(error, StoreError::Future { place: "x".into(), found: 9, known: VERSION });
        assert_eq!(version(&file).unwrap(), Some(9));
    }

    #[test]
    fn slow_is_what_the_index_says() {
        assert!(TABLES.contains(&format!("WHERE took >= {SLOW};")));
    }
}
