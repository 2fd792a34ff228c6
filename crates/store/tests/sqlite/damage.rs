//! Damaged files.

use crate::make::{all, call, keep};
use signalbox_engine::record::{Entry, Query, StoreError, TapeStore};
use signalbox_store::SqliteStore;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn filled(folder: &TempDir) -> PathBuf {
    let path = folder.path().join("tapes.db");
    let entries: Vec<Entry> = (0..200).flat_map(|n| call(5 * n + 1, n + 1, "echo", "success", 5)).collect();
    let store = SqliteStore::open(&path).unwrap();
    keep(&store, "t", &entries);
    drop(store);
    path
}

/// Everything that can be asked. What is wrong is told; nothing panics.
fn ask(path: &Path) -> Result<(), StoreError> {
    let store = SqliteStore::open(path)?;
    store.tapes()?;
    store.find(&all())?;
    store.find(&Query { text: Some("answer".into()), newest_first: true, ..all() })?;
    store.find(&Query { outcome: Some("success".into()), ..all() })?;
    store.stats(None)?;
    store.sessions("t")?;
    Ok(())
}

#[test]
fn what_is_no_database_is_damaged_and_one_is_told_what_to_do() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("tapes.db");
    std::fs::write(&path, "this was never a database, ".repeat(500)).unwrap();
    let error = SqliteStore::open(&path).map(|_| ()).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
    let told = error.to_string();
    assert!(told.contains("`signalbox tape export`") && told.contains("move the file away"), "{told}");
}

#[test]
fn a_file_that_lost_its_second_half_is_damaged() {
    let folder = TempDir::new().unwrap();
    let path = filled(&folder);
    let whole = std::fs::read(&path).unwrap();
    std::fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = ask(&path).unwrap_err();
    assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
}

#[test]
fn whatever_is_overwritten_is_told_or_does_not_matter() {
    let folder = TempDir::new().unwrap();
    let path = filled(&folder);
    let whole = std::fs::read(&path).unwrap();
    let mut damaged = 0;
    for round in 0..60usize {
        let mut torn = whole.clone();
        let from = 100 + round * (whole.len() - 400) / 60;
        for (place, byte) in torn[from..from + 150].iter_mut().enumerate() {
            *byte = (place * 37 + round * 11) as u8;
        }
        for beside in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{beside}", path.display()));
        }
        std::fs::write(&path, &torn).unwrap();
        damaged += usize::from(matches!(ask(&path), Err(StoreError::Damaged { .. })));
    }
    assert!(damaged > 10, "{damaged} of 60");
}
