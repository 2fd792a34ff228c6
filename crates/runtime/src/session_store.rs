//! Legacy sessions that outlive the process: one small file in the data folder for what each client declared.
//!
//! A file is named after the SHA-256 of the session id, so that a reader of the folder cannot use the session. It is
//! written after `initialize`, touched while the session is used, and removed when the session ends, but not when the
//! process does. The files are read at start; a session is reopened when its owner returns with its id, and removed
//! after the session timeout otherwise.
//!
//! One thread writes, so that a removal never overtakes the write before it and no call waits for the disk.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::log_level::LogLevel;
use signalbox_engine::{ClientProfile, Principal};
use signalbox_seal::{hex, sha256};
use signalbox_wire::{Era, Revision};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

/// Maximum number of sessions that are stored for the next process.
pub const MAX_STORED: usize = 10_000;
/// Maximum size of a stored session in bytes. A client that declares more must start over after a restart.
pub const MAX_STORED_BYTES: usize = 32 << 10;
/// Maximum number of changes that wait to be written. Further ones are dropped and counted.
const MAX_WAITING: usize = 4 * MAX_STORED;
/// Time limit at shutdown for writing the last changes.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// File format of a session. Contains nothing that grants access.
#[derive(Debug, Serialize, Deserialize)]
struct StoredSession {
    principal: Box<str>,
    revision: Box<str>,
    capabilities: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    level: Option<Box<str>>,
}

/// Declarations of the client of a session.
pub(crate) struct DeclaredClient {
    pub client: Arc<ClientProfile>,
    pub level: Option<LogLevel>,
}

/// A session of an earlier process that its client has not resumed.
struct Dormant {
    stored: StoredSession,
    used: SystemTime,
}

/// A change of the folder.
enum Change {
    Write(String, Vec<u8>),
    Touch(String, SystemTime),
    Remove(String),
    Flush(mpsc::Sender<()>),
}

/// Sessions stored in the data folder, and the thread that writes them.
pub struct SessionStore {
    dormant: Mutex<HashMap<String, Dormant>>,
    changes: SyncSender<Change>,
}

impl SessionStore {
    /// Opens a folder, which is created if missing. Removes the sessions in it that were idle for longer than
    /// `timeout`.
    ///
    /// # Errors
    /// If the folder cannot be used.
    pub fn open(folder: PathBuf, timeout: Duration) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let dormant = read_folder(&folder, timeout)?;
        let (changes, waiting) = mpsc::sync_channel(MAX_WAITING);
        std::thread::Builder::new().name("sessions".to_owned()).spawn(move || write_changes(&folder, &waiting))?;
        Ok(Self { dormant: Mutex::new(dormant), changes })
    }

    /// Returns the number of sessions not resumed: all, and those of one principal.
    pub(crate) fn dormant_of(&self, principal: &Principal) -> (usize, usize) {
        let dormant = self.dormant.lock().unpoisoned();
        (dormant.len(), dormant.values().filter(|one| *one.stored.principal == *principal.as_str()).count())
    }

    /// Removes the least recently used session of this principal, if it has been idle for at least `idle`.
    pub(crate) fn forget_idlest(&self, principal: &Principal, idle: Duration, now: SystemTime) -> bool {
        let mut dormant = self.dormant.lock().unpoisoned();
        let own = dormant.iter().filter(|(_, one)| *one.stored.principal == *principal.as_str());
        let least = own.min_by_key(|(_, one)| one.used).map(|(name, one)| (name.clone(), one.used));
        let is_idle = |used: SystemTime| now.duration_since(used).is_ok_and(|since| since >= idle);
        let Some((name, _)) = least.filter(|(_, used)| is_idle(*used)) else { return false };
        dormant.remove(&name);
        self.change(Change::Remove(name));
        true
    }

    /// Removes the sessions for which `is_gone` returns true, given the name of the principal and the last use.
    pub(crate) fn forget(&self, is_gone: impl Fn(&str, SystemTime) -> bool) {
        let mut dormant = self.dormant.lock().unpoisoned();
        for (name, _) in dormant.extract_if(|_, one| is_gone(&one.stored.principal, one.used)) {
            self.change(Change::Remove(name));
        }
    }

    /// Calls `open` with what the client of a session of this principal declared, or `None` if there is no such
    /// session. The session is not dormant any more if `open` returns one. Two concurrent requests do not open it
    /// twice.
    ///
    /// # Errors
    /// Those of `open`.
    pub(crate) fn resume<T, E>(
        &self,
        external: &str,
        principal: &Principal,
        timeout: Duration,
        open: impl FnOnce(Option<DeclaredClient>) -> Result<Option<T>, E>,
    ) -> Result<Option<T>, E> {
        let (name, now) = (name_of(external), SystemTime::now());
        let mut dormant = self.dormant.lock().unpoisoned();
        let fits = |one: &&Dormant| {
            *one.stored.principal == *principal.as_str()
                && now.duration_since(one.used).map_or(true, |idle| idle <= timeout)
        };
        let opened = open(dormant.get(&name).filter(fits).and_then(|one| one.stored.declared()))?;
        if opened.is_some() && dormant.remove(&name).is_some() {
            self.change(Change::Touch(name, now));
        }
        Ok(opened)
    }

    /// Stores what the client of a session has declared, unless that is too large. Returns false if the change is
    /// dropped.
    pub(crate) fn write(&self, external: &str, principal: &Principal, declared: &DeclaredClient) -> bool {
        let stored = StoredSession::of(principal, &declared.client, declared.level);
        let bytes = stored.and_then(|one| serde_json::to_vec(&one).ok());
        let Some(bytes) = bytes.filter(|bytes| bytes.len() <= MAX_STORED_BYTES) else { return true };
        self.change(Change::Write(name_of(external), bytes))
    }

    /// Records the last use of a session.
    pub(crate) fn touch(&self, external: &str, used: SystemTime) {
        self.change(Change::Touch(name_of(external), used));
    }

    /// Removes a session that has ended. Returns false if the change is dropped.
    pub(crate) fn remove(&self, external: &str) -> bool {
        self.change(Change::Remove(name_of(external)))
    }

    /// Waits until all changes so far are written.
    pub(crate) async fn flush(&self) {
        let (done, written) = mpsc::channel();
        if self.change(Change::Flush(done)) {
            let _ = tokio::task::spawn_blocking(move || written.recv_timeout(LAST_WORDS)).await;
        }
    }

    /// Queues a change for the writer. Returns false if the queue is full.
    fn change(&self, change: Change) -> bool {
        self.changes.try_send(change).is_ok()
    }

    /// Removes the sessions that have been idle for longer than `timeout`.
    pub(crate) fn sweep(&self, timeout: Duration, now: SystemTime) {
        let over = |one: &Dormant| now.duration_since(one.used).is_ok_and(|idle| idle > timeout);
        let mut dormant = self.dormant.lock().unpoisoned();
        for (name, _) in dormant.extract_if(|_, one| over(one)) {
            self.change(Change::Remove(name));
        }
    }
}

impl StoredSession {
    fn of(principal: &Principal, client: &ClientProfile, level: Option<LogLevel>) -> Option<Self> {
        let raw = |bytes: &[u8]| serde_json::from_slice::<Box<RawValue>>(bytes).ok();
        Some(Self {
            principal: principal.as_str().into(),
            revision: client.revision.as_str().into(),
            capabilities: raw(&client.capabilities)?,
            client: client.info.as_deref().and_then(raw),
            level: level.map(|level| level.as_str().into()),
        })
    }

    /// Returns what the client has declared.
    fn declared(&self) -> Option<DeclaredClient> {
        let bytes = |raw: &RawValue| bytes::Bytes::copy_from_slice(raw.get().as_bytes());
        let revision = Revision::parse(&self.revision).filter(|revision| revision.era() == Era::Legacy)?;
        let client = ClientProfile::new(revision, bytes(&self.capabilities), self.client.as_deref().map(bytes));
        Some(DeclaredClient { client: Arc::new(client), level: self.level.as_deref().and_then(LogLevel::parse) })
    }
}

fn name_of(external: &str) -> String {
    hex(&sha256(external.as_bytes()))
}

/// Reads the stored sessions and removes expired ones. Leaves foreign files alone.
fn read_folder(folder: &Path, timeout: Duration) -> io::Result<HashMap<String, Dormant>> {
    let mut found = HashMap::new();
    let now = SystemTime::now();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let ours = name.len() == 64 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        let Some(used) = entry.metadata().ok().filter(|_| ours).and_then(|data| data.modified().ok()) else { continue };
        let over = now.duration_since(used).is_ok_and(|idle| idle > timeout);
        let read = || fs::read(entry.path()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let stored = if over || found.len() >= MAX_STORED { None } else { read() };
        match stored {
            Some(stored) => drop(found.insert(name, Dormant { stored, used })),
            None => fs::remove_file(entry.path())?,
        }
    }
    Ok(found)
}

/// Applies changes until all senders are dropped.
fn write_changes(folder: &Path, changes: &Receiver<Change>) {
    for change in changes {
        let done = match change {
            Change::Write(name, bytes) => write(folder, &name, &bytes),
            Change::Touch(name, used) => touch(&folder.join(name), used),
            Change::Remove(name) => remove(&folder.join(name)),
            Change::Flush(done) => {
                let _ = done.send(());
                Ok(())
            }
        };
        if let Err(error) = done {
            tracing::warn!(%error, folder = %folder.display(), "a session may not survive a restart");
        }
    }
}

/// Writes a temporary file and renames it, so that a crash leaves either the old file or the new one.
fn write(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let fresh = folder.join(format!("{}.new", std::process::id()));
    remove(&fresh)?;
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(bytes)?;
    fs::rename(&fresh, folder.join(name))
}

fn touch(file: &Path, used: SystemTime) -> io::Result<()> {
    match File::options().write(true).open(file) {
        Ok(file) => file.set_modified(used),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(principal: &str) -> Vec<u8> {
        format!(r#"{{"principal":"{principal}","revision":"2025-11-25","capabilities":{{}}}}"#).into_bytes()
    }

    #[test]
    fn what_is_stored_is_read_again_and_what_is_over_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (kept, old, garbage) = (name_of("kept"), name_of("old"), name_of("garbage"));
        write(folder.path(), &kept, &stored("user:ada")).unwrap();
        write(folder.path(), &old, &stored("user:ada")).unwrap();
        touch(&folder.path().join(&old), SystemTime::now() - Duration::from_secs(100)).unwrap();
        write(folder.path(), &garbage, b"{").unwrap();
        fs::write(folder.path().join("notes.txt"), "mine").unwrap();
        let found = read_folder(folder.path(), Duration::from_secs(60)).unwrap();
        assert_eq!(found.keys().collect::<Vec<_>>(), [&kept]);
        let DeclaredClient { client, level } = found[&kept].stored.declared().unwrap();
        assert_eq!((client.revision, level), (Revision::V2025_11_25, None));
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 2, "the session that is good, and a file that is not ours");
    }

    #[test]
    fn a_file_tells_nobody_the_id_of_its_session() {
        let client = ClientProfile::new(Revision::V2025_06_18, bytes::Bytes::from_static(br#"{"roots":{}}"#), None);
        let one = StoredSession::of(&Principal::named("user:ada"), &client, LogLevel::parse("warning")).unwrap();
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(
            text,
            r#"{"principal":"user:ada","revision":"2025-06-18","capabilities":{"roots":{}},"level":"warning"}"#
        );
        assert!(!name_of("the-id").contains("the-id"));
    }

    #[test]
    fn changes_are_made_in_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let store = SessionStore::open(folder.path().join("sessions"), Duration::from_secs(60)).unwrap();
        for number in 0..50 {
            assert!(store.change(Change::Write(name_of(&number.to_string()), stored("user:ada"))));
            assert!(store.change(Change::Remove(name_of(&number.to_string()))));
        }
        assert!(store.change(Change::Write(name_of("last"), stored("user:ada"))));
        let (done, written) = mpsc::channel();
        assert!(store.change(Change::Flush(done)));
        written.recv_timeout(Duration::from_secs(20)).unwrap();
        let left: Vec<_> =
            fs::read_dir(folder.path().join("sessions")).unwrap().map(|one| one.unwrap().file_name()).collect();
        assert_eq!(left, [&*name_of("last")]);
    }
}
