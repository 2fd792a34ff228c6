//! The file itself: its mode, its version, and who holds it.

use crate::make::{all, call, keep, places, request, tape};
use rusqlite::Connection;
use signalbox_engine::record::{StoreError, TapeStore};
use signalbox_store::SqliteStore;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tempfile::TempDir;

#[test]
fn only_its_owner_can_read_it_and_the_files_beside_it() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tapes.db");
    std::fs::write(&path, "").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    writer.append(&[request(1, "secret")], false).unwrap();
    let mut names = Vec::new();
    for file in std::fs::read_dir(folder.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", file.file_name());
        names.push(file.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["tapes.db", "tapes.db-shm", "tapes.db-wal"]);
}

#[test]
fn a_file_of_the_future_is_refused_by_name_and_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tapes.db");
    keep(&SqliteStore::open(&path).unwrap(), "t", &call(1, 1, "echo", "success", 5));
    let set = |version: u32| {
        let file = Connection::open(&path).unwrap();
        file.execute("UPDATE meta SET value = ?1 WHERE key = 'version'", [version]).unwrap();
    };
    set(9);
    let error = SqliteStore::open(&path).map(|_| ()).unwrap_err();
    assert_eq!(error, StoreError::Future { place: path.display().to_string(), found: 9, known: 3 });
    assert!(error.to_string().ends_with("has format version 9; this program reads versions up to 3"));
    set(3);
    assert_eq!(places(&SqliteStore::open(&path).unwrap(), &all()), [1, 2, 3, 4, 5]);
}

#[test]
fn a_file_of_version_2_learns_how_much_its_tapes_keep() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tapes.db");
    keep(&SqliteStore::open(&path).unwrap(), "t", &call(1, 1, "echo", "success", 5));
    let aside = || -> i64 {
        Connection::open(&path).unwrap().query_row("SELECT aside FROM tapes", [], |row| row.get(0)).unwrap()
    };
    let before = aside();
    assert!(before > 0, "the end of a call is no message");
    Connection::open(&path)
        .unwrap()
        .execute_batch("ALTER TABLE tapes DROP COLUMN aside; UPDATE meta SET value = 2 WHERE key = 'version'")
        .unwrap();
    assert_eq!(places(&SqliteStore::open(&path).unwrap(), &all()), [1, 2, 3, 4, 5]);
    assert_eq!(aside(), before);
}

#[test]
fn a_database_of_another_program_is_left_alone() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("other.db");
    Connection::open(&path)
        .unwrap()
        .execute_batch("CREATE TABLE notes (text); INSERT INTO notes VALUES ('mine')")
        .unwrap();
    let before = std::fs::read(&path).unwrap();
    let error = SqliteStore::open(&path).map(|_| ()).unwrap_err();
    assert!(matches!(&error, StoreError::Open { why, .. } if why == "it is a database of another program"), "{error}");
    let count: i64 =
        Connection::open(&path).unwrap().query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1);
    assert_eq!(std::fs::read(&path).unwrap(), before, "not a byte of it has changed");
}

#[test]
fn a_folder_that_is_not_there_is_told() {
    let error = SqliteStore::open("/nowhere/at/all/tapes.db").map(|_| ()).unwrap_err();
    assert!(matches!(&error, StoreError::Open { place, .. } if place == "/nowhere/at/all/tapes.db"), "{error}");
}

#[test]
fn a_file_that_another_process_holds_is_locked_and_the_batch_may_be_offered_again() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tapes.db");
    let store = SqliteStore::open_waiting(&path, Duration::from_millis(20)).unwrap();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    writer.append(&call(1, 1, "echo", "success", 5), false).unwrap();
    let other = Connection::open(&path).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let batch = call(6, 2, "echo", "success", 5);
    let locked = StoreError::Locked(path.display().to_string());
    assert_eq!(writer.append(&batch, true), Err(locked.clone()));
    assert_eq!(store.begin(&tape("u", 1)).map(|_| ()), Err(locked.clone()));
    assert_eq!(store.remove("t"), Err(locked));
    assert_eq!(places(&store, &all()), [1, 2, 3, 4, 5], "it can be read all the while");
    other.execute_batch("ROLLBACK").unwrap();
    writer.append(&batch, true).unwrap();
    assert_eq!(places(&store, &all()), (1..=10).collect::<Vec<_>>());
}
