//! A file of the folder `auth` in the data folder: keys, users. Only its owner may read it, and one process changes it at a time.

use signalbox_seal::keys::files::{FileError, lock_folder, save_private};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The folder in the data folder.
pub(crate) const FOLDER: &str = "auth";
/// The largest file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum AuthFileError {
    /// It cannot be read.
    #[error("{}: {why}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] FileError),
}

/// What tells that a file has been written since: each time another file is put in its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FileStamp {
    modified: SystemTime,
    /// Seconds and nanoseconds at which the file was put there. It changes even where a file with an older time of writing is.
    changed: (i64, i64),
    length: u64,
    number: u64,
}

/// Where such a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AuthFile(PathBuf);

impl AuthFile {
    /// The file of this name in this data folder. Nothing is made.
    pub(crate) fn of(data_dir: &Path, name: &str) -> Self {
        Self(data_dir.join(FOLDER).join(name))
    }

    /// The file at this path, which is followed like one of the folder.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// When it was last written, if it is there; a change means that it has to be read again.
    pub(crate) fn stamp(&self) -> Option<FileStamp> {
        let about = std::fs::metadata(&self.0).ok()?;
        let changed = (about.ctime(), about.ctime_nsec());
        Some(FileStamp { modified: about.modified().ok()?, changed, length: about.len(), number: about.ino() })
    }

    /// Its text; `None` if there is no file.
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

    /// Writes what `change` makes of the file, while no other process changes it. Nothing is written if that fails.
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
