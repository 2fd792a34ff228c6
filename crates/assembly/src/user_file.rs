//! The file of local users in the data folder. It holds hashes of passwords, and only its owner may read it.

use crate::key_file::FOLDER;
use signalbox_authorization::{LocalUsers, UserError};
use signalbox_seal::keys::files::{FileError, lock_folder, save_private};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The largest file that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserFileFault {
    /// The system refuses.
    #[error("{}: {why}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        why: io::Error,
    },
    /// It is damaged.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// How.
        why: UserError,
    },
    /// What was to be changed cannot be.
    #[error(transparent)]
    User(#[from] UserError),
    /// It cannot be written.
    #[error(transparent)]
    Write(#[from] FileError),
}

/// Where the local users of a data folder are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserFile(PathBuf);

impl UserFile {
    /// The users of this data folder. Nothing is made.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(data_dir.join(FOLDER).join("users.json"))
    }

    /// When it was last written, if it is there; a change means that it has to be read again.
    #[must_use]
    pub fn stamp(&self) -> Option<(SystemTime, u64)> {
        let about = std::fs::metadata(&self.0).ok()?;
        Some((about.modified().ok()?, about.len()))
    }

    /// The users; none if there is no file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(&self) -> Result<LocalUsers, UserFileFault> {
        let failed = |why| UserFileFault::Io { path: self.0.clone(), why };
        let file = match File::open(&self.0) {
            Err(why) if why.kind() == io::ErrorKind::NotFound => return Ok(LocalUsers::default()),
            other => other.map_err(failed)?,
        };
        let mut text = String::new();
        file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
        LocalUsers::parse(&text).map_err(|why| UserFileFault::Damaged { path: self.0.clone(), why })
    }

    /// Changes the users while no other process does. Nothing is written if the change fails.
    ///
    /// # Errors
    /// If they can be neither read nor written, or the change fails.
    pub fn change<T>(&self, change: impl FnOnce(&mut LocalUsers) -> Result<T, UserError>) -> Result<T, UserFileFault> {
        let _lock = lock_folder(self.0.parent().unwrap_or(&self.0))?;
        let mut users = self.load()?;
        let changed = change(&mut users)?;
        save_private(&self.0, users.to_text()?.as_bytes())?;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn users_are_kept_for_their_owner_only_and_a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = UserFile::of(folder.path());
        assert_eq!(file.load().unwrap(), LocalUsers::default());
        file.change(|users| users.set("ada", "a long password", &[1; 16], 0)).unwrap();
        assert!(file.load().unwrap().knows("ada"));
        assert_eq!(std::fs::metadata(&file.0).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(file.change(|users| users.set("ada", "short", &[1; 16], 0)).is_err());
        std::fs::write(&file.0, "{").unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.contains("users.json") && error.contains("damaged"), "{error}");
    }
}
