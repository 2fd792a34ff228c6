//! The file of local users in the data folder. It holds hashes of passwords.

use crate::auth_file::{AuthFile, AuthFileError, FileStamp};
use signalbox_authorization::{LocalUsers, UserError};
use std::path::{Path, PathBuf};

/// Why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserFileFault {
    /// It can be neither read nor written.
    #[error(transparent)]
    File(#[from] AuthFileError),
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
}

/// Where the local users of a data folder are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserFile(AuthFile);

impl UserFile {
    /// The users of this data folder. Nothing is made.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(AuthFile::of(data_dir, "users.json"))
    }

    /// When it was last written, if it is there; a change means that it has to be read again.
    #[must_use]
    pub fn stamp(&self) -> Option<FileStamp> {
        self.0.stamp()
    }

    /// The users; none if there is no file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn load(&self) -> Result<LocalUsers, UserFileFault> {
        let Some(text) = self.0.read()? else { return Ok(LocalUsers::default()) };
        LocalUsers::parse(&text).map_err(|why| UserFileFault::Damaged { path: self.0.path().to_owned(), why })
    }

    /// Changes the users while no other process does. Nothing is written if the change fails.
    ///
    /// # Errors
    /// If they can be neither read nor written, or the change fails.
    pub fn change<T>(&self, change: impl FnOnce(&mut LocalUsers) -> Result<T, UserError>) -> Result<T, UserFileFault> {
        self.0.change(|| {
            let mut users = self.load()?;
            let changed = change(&mut users)?;
            Ok((users.to_text()?, changed))
        })
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
        assert_eq!(std::fs::metadata(file.0.path()).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(file.change(|users| users.set("ada", "short", &[1; 16], 0)).is_err());
        std::fs::write(file.0.path(), "{").unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.contains("users.json") && error.contains("damaged"), "{error}");
    }
}
