//! A disk that is full.

use crate::make::{all, places, request, tape};
use signalbox_engine::record::{Entry, StoreError, TapeStore};
use signalbox_store::SqliteStore;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// A small disk of its own.
struct Disk(TempDir);

impl Disk {
    /// None if that is not allowed.
    fn new() -> Option<Self> {
        let folder = TempDir::new().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=3m", "tmpfs"]).arg(folder.path()).output();
        mounted.is_ok_and(|mounted| mounted.status.success()).then(|| Self(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.path()).status();
    }
}

/// Text that hardly becomes smaller.
fn noise(seq: u64) -> Entry {
    let mut state = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let text: String = (0..4_000)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            char::from(b'!' + (state % 90) as u8)
        })
        .collect();
    request(seq, &text)
}

// A limit of the file's pages proves the same if nothing can be mounted: see the tests of the writer.
#[test]
fn a_full_disk_is_told_and_the_batch_is_kept_when_there_is_room_again() {
    let Some(disk) = Disk::new() else { return eprintln!("SKIP full disk: only root may mount one") };
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![1; 1 << 20]).unwrap();
    let path = disk.path().join("tapes.db");
    let store = SqliteStore::open(&path).unwrap();
    let mut writer = store.begin(&tape("t", 1)).unwrap();
    let mut seq = 0;
    let (batch, error) = loop {
        let batch: Vec<Entry> = (1..=20).map(|n| noise(seq + n)).collect();
        match writer.append(&batch, false) {
            Ok(()) => seq += 20,
            Err(error) => break (batch, error),
        }
        assert!(seq < 10_000, "the disk never became full");
    };
    assert_eq!(error, StoreError::Full(path.display().to_string()));
    assert_eq!(places(&store, &all()), (1..=seq).collect::<Vec<_>>(), "nothing of the batch, all before it");
    std::fs::remove_file(&ballast).unwrap();
    writer.append(&batch, false).unwrap();
    assert_eq!(places(&store, &all()), (1..=seq + 20).collect::<Vec<_>>());
}
