//! Stores seen nonces on disk, so that a message is not accepted again after a restart or by another process of the
//! same data folder.
//!
//! A nonce is kept until its message would be refused for its age. Nonces that expire within the same ten minutes share
//! a file, and an expired file is deleted as a whole. Each line is `UNTIL HASH KEY`, with the SHA-256 of the nonce,
//! because a nonce may be any text. Every access holds a lock and first reads what other processes appended. The end of
//! the process loses nothing; a power cut may lose what was not yet flushed, which happens once a second.

use super::group_flush::{DirtyFlag, GroupFlush};
use rustix::fs::{FlockOperation, flock};
use signalbox_engine::lock::LockResultExt;
use signalbox_seal::{NonceMemory, NonceVerdict, hex, sha256};
use std::collections::{BTreeMap, HashMap};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Period that one file covers, in milliseconds.
const SLOT: u64 = 10 * 60 * 1000;
const LOCK: &str = "lock";
/// Maximum number of files that are read. Files of a wrong clock are left alone.
const MAX_SLOTS: usize = 1_000;

/// Nonce memory of one data folder.
#[derive(Debug)]
pub struct NonceFiles {
    folder: PathBuf,
    room: usize,
    open: Mutex<Option<OpenFiles>>,
    flush: GroupFlush,
}

/// Files, opened at the first use.
#[derive(Debug)]
struct OpenFiles {
    lock: File,
    slots: BTreeMap<u64, Slot>,
}

/// Contents of one file.
#[derive(Debug)]
struct Slot {
    file: File,
    dirty: DirtyFlag,
    /// Offset up to which the file has been read.
    read: u64,
    /// Nonces with their expiry, by key.
    seen: HashMap<Box<str>, HashMap<Box<str>, u64>>,
}

impl NonceFiles {
    /// Creates the memory for this folder, with at most `room` nonces per key. The folder is created at the first use.
    #[must_use]
    pub fn new(folder: PathBuf, room: usize) -> Self {
        Self { folder, room, open: Mutex::default(), flush: GroupFlush::default() }
    }

    fn open(&self) -> io::Result<OpenFiles> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let lock = options().open(self.folder.join(LOCK))?;
        let mut slots = BTreeMap::new();
        for entry in fs::read_dir(&self.folder)?.take(MAX_SLOTS) {
            let name = entry?.file_name();
            if let Some(number) = name.to_str().and_then(|name| name.parse().ok()) {
                slots.insert(number, Slot::open(&self.folder, number)?);
            }
        }
        Ok(OpenFiles { lock, slots })
    }

    /// Runs `ask` on the files under a lock against other processes.
    fn locked<T>(&self, ask: impl FnOnce(&mut BTreeMap<u64, Slot>) -> io::Result<T>) -> io::Result<T> {
        let mut open = self.open.lock().unpoisoned();
        let OpenFiles { lock, slots } = match &mut *open {
            Some(files) => files,
            closed => closed.insert(self.open()?),
        };
        flock(&*lock, FlockOperation::LockExclusive)?;
        let answer = ask(slots);
        flock(&*lock, FlockOperation::Unlock)?;
        answer
    }

    fn look_locked(
        &self,
        slots: &mut BTreeMap<u64, Slot>,
        key_id: &str,
        nonce: &str,
        now: u64,
        until: u64,
    ) -> io::Result<NonceVerdict> {
        let current = slots.split_off(&(now / SLOT));
        for (number, _) in std::mem::replace(slots, current) {
            let _ = fs::remove_file(self.folder.join(number.to_string()));
        }
        // Other processes may have created files for later periods.
        for number in [now / SLOT, now / SLOT + 1, until / SLOT] {
            if let std::collections::btree_map::Entry::Vacant(place) = slots.entry(number) {
                place.insert(Slot::open(&self.folder, number)?);
            }
        }
        if is_in(slots, key_id, nonce, now)? {
            return Ok(NonceVerdict::Replayed);
        }
        let of_key: usize = slots.values().filter_map(|slot| slot.seen.get(key_id)).map(HashMap::len).sum();
        if of_key >= self.room {
            return Ok(NonceVerdict::Full);
        }
        if let Some(slot) = slots.get_mut(&(until / SLOT)) {
            slot.add(key_id, nonce, until)?;
            self.flush.written(&slot.file, || self.folder.join((until / SLOT).to_string()), &slot.dirty)?;
        }
        Ok(NonceVerdict::New)
    }
}

/// Returns `true` if one of these files has the nonce, including what other processes appended.
fn is_in(slots: &mut BTreeMap<u64, Slot>, key_id: &str, nonce: &str, now: u64) -> io::Result<bool> {
    for slot in slots.values_mut() {
        slot.catch_up()?;
        let until = slot.seen.get(key_id).and_then(|seen| seen.get(nonce));
        if until.is_some_and(|until| *until >= now) {
            return Ok(true);
        }
    }
    Ok(false)
}

impl NonceMemory for NonceFiles {
    fn is_remembered(&self, key_id: &str, nonce: &str, now: u64) -> bool {
        let nonce = hex(&sha256(nonce.as_bytes()));
        // `remember` reports unreadable files and refuses the message.
        self.locked(|slots| is_in(slots, key_id, &nonce, now)).unwrap_or(false)
    }

    fn remember(&self, key_id: &str, nonce: &str, now: u64, until: u64) -> NonceVerdict {
        let nonce = hex(&sha256(nonce.as_bytes()));
        // Refuse a message whose nonce cannot be stored, because a replay could not be detected.
        let looked = self.locked(|slots| self.look_locked(slots, key_id, &nonce, now, until));
        looked.unwrap_or_else(|error| {
            tracing::error!(folder = %self.folder.display(), %error, "nonces cannot be kept");
            NonceVerdict::Full
        })
    }
}

impl Slot {
    fn open(folder: &Path, number: u64) -> io::Result<Self> {
        let file = options().append(true).open(folder.join(number.to_string()))?;
        Ok(Self { file, dirty: DirtyFlag::default(), read: 0, seen: HashMap::new() })
    }

    /// Reads the lines that other processes appended.
    fn catch_up(&mut self) -> io::Result<()> {
        let length = self.file.metadata()?.len();
        if length <= self.read {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(self.read))?;
        let mut text = Vec::new();
        io::Read::take(&mut self.file, length - self.read).read_to_end(&mut text)?;
        self.read = length;
        for line in String::from_utf8_lossy(&text).lines() {
            // Skip a line that a crash cut off: its message was never accepted.
            let mut parts = line.splitn(3, ' ');
            if let (Some(Ok(until)), Some(nonce), Some(key)) =
                (parts.next().map(str::parse), parts.next(), parts.next())
            {
                self.seen.entry(key.into()).or_default().insert(nonce.into(), until);
            }
        }
        Ok(())
    }

    fn add(&mut self, key_id: &str, nonce: &str, until: u64) -> io::Result<()> {
        // The newline comes first, so that it ends a line that a crash cut off.
        let line = format!("\n{until} {nonce} {key_id}");
        self.file.write_all(line.as_bytes())?;
        self.read += line.len() as u64;
        self.seen.entry(key_id.into()).or_default().insert(nonce.into(), until);
        Ok(())
    }
}

fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use NonceVerdict::{Full, New, Replayed};

    #[test]
    fn a_nonce_is_remembered_over_restarts_and_between_processes() {
        let folder = tempfile::tempdir().unwrap();
        let open = || NonceFiles::new(folder.path().to_owned(), 3);
        let (one, other) = (open(), open());
        assert_eq!(one.remember("ada", "a", 0, 1_000), New);
        assert_eq!(one.remember("ada", "a", 500, 9_000), Replayed);
        assert_eq!(other.remember("ada", "a", 500, SLOT + 1), Replayed, "seen by another process");
        assert_eq!(other.remember("ada", "b", 500, SLOT + 1), New);
        assert_eq!(one.remember("ada", "b", 600, 1_000), Replayed, "whatever its expiry says");
        assert_eq!([one.is_remembered("ada", "b", 600), one.is_remembered("ada", "c", 600)], [true, false]);
        assert_eq!(one.remember("eve", "a", 500, 1_000), New, "every key has nonces of its own");
        assert_eq!(open().remember("ada", "a", 1_000, 1_000), Replayed);
        assert_eq!(open().remember("ada", "c", 1_000, 1_000), New);
        assert_eq!(open().remember("ada", "d", 1_000, 1_000), Full);
        assert_eq!(one.remember("ada", "d", SLOT, 2 * SLOT), New, "room is made when a file's time is over");
        let mut left: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["1", "2", LOCK]);
    }

    #[test]
    fn nonces_are_flushed_together_and_again() {
        let folder = tempfile::tempdir().unwrap();
        let files = NonceFiles::new(folder.path().to_owned(), 300);
        for round in 0..2 {
            for number in 0..100 {
                assert_eq!(files.remember("ada", &format!("{round}-{number}"), 0, 1_000), New);
            }
            let dirty = || files.open.lock().unwrap().as_ref().unwrap().slots[&0].dirty.is_set();
            assert!(dirty(), "round {round}");
            let begun = std::time::Instant::now();
            while dirty() {
                assert!(begun.elapsed() < 10 * crate::seal::group_flush::FLUSH_EVERY, "round {round}");
                std::thread::park_timeout(std::time::Duration::from_millis(20));
            }
        }
    }

    #[test]
    fn half_a_line_is_no_nonce() {
        let folder = tempfile::tempdir().unwrap();
        let open = || NonceFiles::new(folder.path().to_owned(), 3);
        assert_eq!(open().remember("ada", "nonce-1\n1000 x eve", 0, 1_000), New);
        let file = folder.path().join("0");
        let whole = fs::read(&file).unwrap();
        fs::write(&file, [&whole[..], b"\n1000 abc"].concat()).unwrap();
        assert_eq!(open().remember("ada", "nonce-2", 0, 1_000), New);
        assert_eq!(open().remember("ada", "nonce-1\n1000 x eve", 0, 1_000), Replayed);
        assert_eq!(open().remember("ada", "nonce-2", 0, 1_000), Replayed);
    }
}
