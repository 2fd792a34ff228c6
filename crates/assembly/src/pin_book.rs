//! Definitions that lists of backends are compared with: those of the lock file, or those that were seen first.

use crate::auth_file::{AuthFile, AuthFileError, FileStamp};
use signalbox_engine::catalog::ViewKey;
use signalbox_engine::lock::LockResultExt as _;
use signalbox_guard::pins::{Approval, BackendPins, LockError, LockFile, MAX_LOCK_FILE, PinnedBackend, ToolDefinition};
use signalbox_runtime::clock::unix_millis;
use signalbox_wire::Era;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// File in the data folder with the definitions that were seen, where there is no lock file.
const SEEN: &str = "seen-tools.lock";
/// Author of the entries of that file.
const SEEN_BY: &str = "signalbox";
/// Maximum number of definitions of one tool that are remembered as seen.
const MAX_SEEN: usize = 8;

/// Reason why approved definitions cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PinFileError {
    /// The file cannot be read or written.
    #[error(transparent)]
    File(#[from] AuthFileError),
    /// The content is not that of a lock file.
    #[error("{}: {error}", path.display())]
    Content {
        /// Path of the lock file, or of the file of definitions that were seen.
        path: PathBuf,
        /// Error, with its line in the file.
        error: LockError,
    },
}

/// Reads a lock file. Returns `None` if there is none.
///
/// # Errors
/// If it cannot be read, or does not have the form of a lock file.
pub fn read_lock(path: &Path) -> Result<Option<LockFile>, PinFileError> {
    let Some(text) = AuthFile::at(path.to_owned()).read()? else { return Ok(None) };
    let parsed = LockFile::parse(&text).map_err(|error| PinFileError::Content { path: path.to_owned(), error });
    parsed.map(Some)
}

/// Definitions that a gateway compares lists with: those of the lock file, or without one those that it saw first.
pub(crate) struct PinBook {
    seen: AuthFile,
    state: Mutex<PinState>,
}

struct PinState {
    lock: AuthFile,
    stamp: Option<FileStamp>,
    /// Approvals of the lock file by backend; `None` without one.
    approved: Option<BTreeMap<String, Arc<BackendPins>>>,
    /// Definitions seen first, by backend and era.
    seen: BTreeMap<String, Arc<BackendPins>>,
}

/// Definitions that one list is compared with.
pub(crate) struct PinnedList {
    pins: Arc<BackendPins>,
    is_locked: bool,
    is_first: bool,
}

impl PinnedList {
    /// Returns the definitions in the form that the guard takes.
    pub(crate) fn backend(&self) -> PinnedBackend<'_> {
        PinnedBackend { pins: &self.pins, is_locked: self.is_locked, is_first: self.is_first }
    }
}

/// Returns the name of a backend's entry among the definitions that were seen. A server may describe its tools to each
/// era in another way.
fn seen_key(backend: &str, key: &ViewKey) -> String {
    match key.era {
        Era::Legacy => format!("{backend} (sessions)"),
        Era::Modern => backend.to_owned(),
    }
}

fn by_backend(file: LockFile) -> BTreeMap<String, Arc<BackendPins>> {
    file.backends.into_iter().map(|(name, pins)| (name, Arc::new(pins))).collect()
}

impl PinBook {
    /// Opens the lock file at `lock`, if there is one, and the definitions seen by earlier runs.
    ///
    /// # Errors
    /// If the lock file cannot be used: tools must not be shown without their approvals.
    pub(crate) fn open(lock: &Path, data_dir: &Path) -> Result<Self, PinFileError> {
        let lock = AuthFile::at(lock.to_owned());
        let stamp = lock.stamp();
        let approved = read_lock(lock.path())?.map(by_backend);
        let seen = AuthFile::at(data_dir.join(SEEN));
        let known = read_lock(seen.path()).unwrap_or_else(|error| {
            tracing::warn!(%error, "definitions of tools that were seen before are forgotten");
            None
        });
        let seen_before = known.map(by_backend).unwrap_or_default();
        let state = PinState { lock, stamp, approved, seen: seen_before };
        Ok(Self { seen, state: Mutex::new(state) })
    }

    /// Returns the definitions that a list of this backend is compared with.
    pub(crate) fn of(&self, backend: &str, key: &ViewKey) -> PinnedList {
        let state = self.state.lock().unpoisoned();
        match &state.approved {
            Some(approved) => PinnedList {
                pins: approved.get(backend).cloned().unwrap_or_default(),
                is_locked: true,
                is_first: false,
            },
            None => {
                let known = state.seen.get(&seen_key(backend, key)).cloned();
                let is_first = known.is_none();
                PinnedList { pins: known.unwrap_or_default(), is_locked: false, is_first }
            }
        }
    }

    /// Remembers definitions as seen, and saves them. Blocks.
    pub(crate) fn learn(&self, backend: &str, key: &ViewKey, tools: &[ToolDefinition], instructions: Option<&str>) {
        let mut state = self.state.lock().unpoisoned();
        let entry = seen_key(backend, key);
        let is_known = state.seen.contains_key(&entry);
        if is_known && tools.is_empty() && instructions.is_none() {
            return;
        }
        let now = i64::try_from(unix_millis() / 1_000).unwrap_or(i64::MAX);
        let approval = Approval::new(now, SEEN_BY);
        let pins = Arc::make_mut(state.seen.entry(entry).or_default());
        tools.iter().for_each(|tool| pins.approve_tool(tool, approval.clone()));
        instructions.into_iter().for_each(|text| pins.approve_instructions(text, approval.clone()));
        pins.keep_latest(MAX_SEEN);
        let file =
            LockFile { backends: state.seen.iter().map(|(name, pins)| (name.clone(), (**pins).clone())).collect() };
        drop(state);
        self.save(&file);
    }

    fn save(&self, file: &LockFile) {
        let folder = self.seen.path().parent().unwrap_or(Path::new(""));
        let text = file.to_string();
        // A process without a data folder forgets at its end. So does one whose servers list more than a file holds.
        if !folder.is_dir() || text.len() > MAX_LOCK_FILE {
            return;
        }
        let saved = signalbox_seal::keys::files::save_private(self.seen.path(), text.as_bytes());
        if let Err(error) = saved {
            tracing::warn!(%error, "definitions of tools could not be saved, and will count as seen for the first time");
        }
    }

    /// Follows another path of the lock file.
    pub(crate) fn set_lock(&self, lock: &Path) {
        let mut state = self.state.lock().unpoisoned();
        if state.lock.path() != lock {
            (state.lock, state.stamp) = (AuthFile::at(lock.to_owned()), None);
        }
    }

    /// Returns true if the lock file changed since it was read. Compares stamps only.
    pub(crate) fn has_news(&self) -> bool {
        let state = self.state.lock().unpoisoned();
        state.lock.stamp() != state.stamp
    }

    /// Reads the lock file if it changed. Returns true if other definitions are approved now. A file that is gone or
    /// damaged changes nothing: an accident must approve no tool.
    pub(crate) fn follow(&self) -> bool {
        let (lock, seen) = {
            let state = self.state.lock().unpoisoned();
            (state.lock.clone(), state.stamp)
        };
        let stamp = lock.stamp();
        if stamp == seen {
            return false;
        }
        let read = read_lock(lock.path());
        let mut state = self.state.lock().unpoisoned();
        state.stamp = stamp;
        let shown = lock.path().display();
        match read {
            Ok(Some(file)) => {
                state.approved = Some(by_backend(file));
                return true;
            }
            Ok(None) if state.approved.is_some() => {
                tracing::warn!(file = %shown, "the lock file of tools is gone; its approvals stay in force until the gateway stops");
            }
            Ok(None) => {}
            Err(error) => {
                tracing::error!(%error, "the lock file of tools cannot be used; the approvals before it stay in force")
            }
        }
        false
    }
}

#[cfg(test)]
mod tests;
