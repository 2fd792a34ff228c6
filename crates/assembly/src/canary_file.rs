//! Key of the canaries of a data folder.

use crate::auth_file::{AuthFile, AuthFileError, FileStamp};
use signalbox_engine::lock::LockResultExt as _;
use signalbox_seal::{hex, unhex};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// Name of the file among the credentials of the data folder.
const FILE: &str = "canary.key";

/// Reason why the key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CanaryFileFault {
    /// The file can be neither read nor written.
    #[error(transparent)]
    File(#[from] AuthFileError),
    /// The content is not that of a key.
    #[error("{}: it holds no key of canaries", .0.display())]
    Damaged(PathBuf),
    /// The system provides no randomness for a key.
    #[error("the system gives no randomness: {0}")]
    Random(getrandom::Error),
}

/// File with the key, which a running gateway follows.
pub struct CanaryFile {
    file: AuthFile,
    /// Stamp at the last look; `None` before the first.
    stamp: Mutex<Option<Option<FileStamp>>>,
}

impl CanaryFile {
    /// Returns the file of a data folder. Creates nothing.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self { file: AuthFile::of(data_dir, FILE), stamp: Mutex::default() }
    }

    /// Returns the key, and makes one if there is none.
    ///
    /// # Errors
    /// If the file cannot be read or written, or the system provides no randomness.
    pub fn key(&self) -> Result<[u8; 32], CanaryFileFault> {
        self.file.change(|| {
            if let Some(known) = self.read()? {
                return Ok((hex(&known), known));
            }
            let mut key = [0; 32];
            getrandom::fill(&mut key).map_err(CanaryFileFault::Random)?;
            Ok((hex(&key), key))
        })
    }

    /// Returns true if the file changed since the last look.
    pub(crate) fn has_news(&self) -> bool {
        *self.stamp.lock().unpoisoned() != Some(self.file.stamp())
    }

    /// Returns the key if the file changed since the last look. An unreadable file is logged and changes nothing.
    pub(crate) fn news(&self) -> Option<Option<[u8; 32]>> {
        let now = self.file.stamp();
        let before = self.stamp.lock().unpoisoned().replace(now);
        if before == Some(now) {
            return None;
        }
        self.read().inspect_err(|error| tracing::error!(%error, "canaries are not recognised")).ok()
    }

    /// Reads the key, if there is one.
    ///
    /// # Errors
    /// If the file cannot be read, or holds something else.
    pub fn read(&self) -> Result<Option<[u8; 32]>, CanaryFileFault> {
        let Some(text) = self.file.read()? else { return Ok(None) };
        let key = unhex(text.trim()).and_then(|bytes| bytes.try_into().ok());
        key.map(Some).ok_or_else(|| CanaryFileFault::Damaged(self.file.path().to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_made_once_and_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (gateway, command) = (CanaryFile::of(folder.path()), CanaryFile::of(folder.path()));
        assert_eq!((gateway.news(), gateway.has_news(), gateway.news()), (Some(None), false, None));
        let key = command.key().unwrap();
        assert_eq!(command.key().unwrap(), key);
        assert!(gateway.has_news());
        assert_eq!((gateway.news(), gateway.news()), (Some(Some(key)), None));
        std::fs::write(command.file.path(), "nonsense").unwrap();
        assert!(command.read().is_err() && gateway.news().is_none(), "a damaged file changes nothing");
    }
}
