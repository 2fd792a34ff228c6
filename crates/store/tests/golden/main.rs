//! Stores that version 1 wrote are opened by the program of today, and show what version 1 showed of them.
//!
//! `version-1.db` and `version-1.sql` were written by the code of version 1, and the texts beside them by its reading
//! side. A later version converts the stores; the texts stay as they are. One thing was changed in the text of the
//! PostgreSQL store: entries of a tape whose clock went backwards come in the order of the tape, as they always did
//! from a SQLite store.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "all of this is a test, its helpers too")]

#[path = "../suite/postgres_server.rs"]
#[allow(dead_code, reason = "the suite uses more of it")]
mod postgres_server;
mod show;

use postgres_server::PostgresServer;
use signalbox_store::{PostgresStore, SqliteStore};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Compares line by line, so that a failure tells the first one that differs.
fn compare(shown: &str, name: &str) {
    let expected = std::fs::read_to_string(golden(name)).unwrap();
    for (number, (shown, expected)) in shown.lines().zip(expected.lines()).enumerate() {
        assert_eq!(shown, expected, "line {} of {name}", number + 1);
    }
    assert_eq!(shown.lines().count(), expected.lines().count(), "lines of {name}");
}

#[test]
fn a_sqlite_store_of_version_1_shows_the_same() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("tapes.db");
    std::fs::copy(golden("version-1.db"), &file).unwrap();
    for time in ["first", "second"] {
        let store = SqliteStore::open(&file).unwrap_or_else(|error| panic!("the {time} time: {error}"));
        compare(&show::all(&store), "version-1.sqlite.txt");
    }
}

#[test]
fn a_postgres_store_of_version_1_shows_the_same() {
    let Some(server) = PostgresServer::start() else { return };
    let url = server.database();
    let dump = std::fs::read_to_string(golden("version-1.sql")).unwrap();
    postgres::Client::connect(&url, postgres::NoTls).unwrap().batch_execute(&dump).unwrap();
    for time in ["first", "second"] {
        let store = PostgresStore::open(&url).unwrap_or_else(|error| panic!("the {time} time: {error}"));
        compare(&show::all(&store), "version-1.postgres.txt");
    }
}
