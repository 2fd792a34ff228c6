//! File of the local users in the data folder. It holds hashes of their passwords.

use crate::auth_file::{AuthFile, AuthFileError, FileStamp};
use signalbox_oauth_server::{LocalUsers, UserError};
use std::path::{Path, PathBuf};

/// Reason why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UserFileFault {
    /// The file can be neither read nor written.
    #[error(transparent)]
    File(#[from] AuthFileError),
    /// The file is damaged.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Error in its content.
        why: UserError,
    },
    /// The change is not possible.
    #[error(transparent)]
    User(#[from] UserError),
}

/// File of the local users of a data folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UserFile(AuthFile);

impl UserFile {
    /// Returns the file of this data folder. Creates nothing.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(AuthFile::of(data_dir, "users.json"))
    }

    /// Returns the file's stamp, or `None` if there is no file. A different stamp means that it must be read again.
    #[must_use]
    pub fn stamp(&self) -> Option<FileStamp> {
        self.0.stamp()
    }

    /// Reads the users; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn load(&self) -> Result<LocalUsers, UserFileFault> {
        let Some(text) = self.0.read()? else { return Ok(LocalUsers::default()) };
        LocalUsers::parse(&text).map_err(|why| UserFileFault::Damaged { path: self.0.path().to_owned(), why })
    }

    /// Changes the users under a lock against other processes. If `change` fails, nothing is written.
    ///
    /// # Errors
    /// If the file can be neither read nor written, or `change` fails.
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
