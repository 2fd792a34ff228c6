//! Files in the folder `auth` of the data folder, such as keys and users. Only the owner may read them, and a lock lets
//! one process change them at a time.

use signalbox_seal::keys::files::{KeyStorageError, lock_folder, save_private};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Name of the folder in the data folder.
pub(crate) const FOLDER: &str = "auth";
/// Maximum size of a file in bytes.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Reason why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthFileError {
    /// The file cannot be read.
    #[error("{}: {why}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
    /// The file cannot be written.
    #[error(transparent)]
    Write(#[from] KeyStorageError),
}

/// Identity of a file's contents, which changes whenever another file replaces it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStamp {
    modified: SystemTime,
    /// Inode change time in seconds and nanoseconds. It changes even if the new file has an older modification time.
    changed: (i64, i64),
    length: u64,
    number: u64,
}

/// Path of one such file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AuthFile(PathBuf);

impl AuthFile {
    /// Returns the file of this name in this data folder. Creates nothing.
    pub(crate) fn of(data_dir: &Path, name: &str) -> Self {
        Self(data_dir.join(FOLDER).join(name))
    }

    /// Returns the file at this path, to be followed like one in the folder.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the file's stamp, or `None` if there is no file. A different stamp means that it must be read again.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        let about = std::fs::metadata(&self.0).ok()?;
        let changed = (about.ctime(), about.ctime_nsec());
        Some(FileStamp { modified: about.modified().ok()?, changed, length: about.len(), number: about.ino() })
    }

    /// Returns the text of the file, or `None` if there is no file.
    pub(crate) fn read(&self) -> Result<Option<String>, AuthFileError> {
        let failed = |why| AuthFileError::Read { path: self.0.clone(), why };
        let file = match File::open(&self.0) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed)?,
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
        Ok(Some(text))
    }

    /// Writes the text that `change` returns, under a lock against other processes. If `change` fails, nothing is
    /// written.
    pub(crate) fn change<T, E>(&self, change: impl FnOnce() -> Result<(String, T), E>) -> Result<T, E>
    where
        E: From<AuthFileError>,
    {
        let folder = self.0.parent().unwrap_or(&self.0);
        let _lock = lock_folder(folder).map_err(AuthFileError::from)?;
        let (text, changed) = change()?;
        save_private(&self.0, text.as_bytes()).map_err(AuthFileError::from)?;
        Ok(changed)
    }
}
