//! File of the API keys in the data folder. It holds hashes of the keys.

use crate::auth_file::{AuthFile, AuthFileError, FileStamp};
use signalbox_govern::api_keys::{ApiKeyFileError, ApiKeySecret, ApiKeys, NewKey, RANDOM};
use signalbox_seal::keys::files::{KeyStorageError, save_private};
use std::path::{Path, PathBuf};

/// Name of the file with the first key, in the data folder.
const ADMIN_KEY: &str = "admin.key";

/// Reason why the file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileFault {
    /// The file can be neither read nor written.
    #[error(transparent)]
    File(#[from] AuthFileError),
    /// The file is damaged.
    #[error("{}: {why}", path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Error in its content.
        why: ApiKeyFileError,
    },
    /// The file of the first key cannot be written.
    #[error(transparent)]
    Write(#[from] KeyStorageError),
    /// The system provides no randomness for a key.
    #[error("the system gives no randomness: {0}")]
    Random(getrandom::Error),
}

/// File of the API keys of a data folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeyFile(AuthFile);

impl KeyFile {
    /// Returns the file of this data folder. Creates nothing.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(AuthFile::of(data_dir, "keys.json"))
    }

    /// Returns the file's stamp, or `None` if there is no file. A different stamp means that it must be read again.
    #[must_use]
    pub fn stamp(&self) -> Option<FileStamp> {
        self.0.stamp()
    }

    /// Reads the keys; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read or is damaged.
    pub fn load(&self) -> Result<ApiKeys, KeyFileFault> {
        let Some(text) = self.0.read()? else { return Ok(ApiKeys::default()) };
        ApiKeys::parse(&text).map_err(|why| self.damaged(why))
    }

    /// Changes the keys under a lock against other processes.
    ///
    /// # Errors
    /// If the file can be neither read nor written.
    pub fn change<T>(&self, change: impl FnOnce(&mut ApiKeys) -> T) -> Result<T, KeyFileFault> {
        self.0.change(|| {
            let mut keys = self.load()?;
            let changed = change(&mut keys);
            Ok((keys.to_text().map_err(|why| self.damaged(why))?, changed))
        })
    }

    fn damaged(&self, why: ApiKeyFileError) -> KeyFileFault {
        KeyFileFault::Damaged { path: self.0.path().to_owned(), why }
    }

    /// Creates the first key of a data folder that has none: an administrator's key, which is also written to
    /// `admin.key` there. Returns the key and its file, or `None` if a key exists.
    ///
    /// # Errors
    /// If the key can be neither created nor written.
    pub fn make_admin(&self, data_dir: &Path, now: u64) -> Result<Option<(ApiKeySecret, PathBuf)>, KeyFileFault> {
        if self.load()?.iter().next().is_some() {
            return Ok(None);
        }
        let path = data_dir.join(ADMIN_KEY);
        let mut random = [0; RANDOM];
        getrandom::fill(&mut random).map_err(KeyFileFault::Random)?;
        let (name, roles) = ("admin".to_owned(), vec!["admin".to_owned()]);
        let new = NewKey { subject: "key:admin".to_owned(), name, roles, ..NewKey::default() };
        let (_, secret) = self.change(|keys| keys.add(new, &random, now))?;
        save_private(&path, format!("{}\n", secret.reveal()).as_bytes())?;
        Ok(Some((secret, path)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_first_start_makes_a_key_for_administration_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::of(folder.path());
        let (secret, path) = file.make_admin(folder.path(), 0).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap().trim(), secret.reveal());
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let keys = file.load().unwrap();
        assert_eq!(keys.find(secret.reveal().as_bytes()).unwrap().1.roles, ["admin"]);
        assert!(file.make_admin(folder.path(), 0).unwrap().is_none());
    }

    #[test]
    fn keys_are_kept_for_their_owner_only_and_a_damaged_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::of(folder.path());
        assert_eq!(file.load().unwrap(), ApiKeys::default());
        let new = NewKey { name: "ci".to_owned(), subject: "ci".to_owned(), ..NewKey::default() };
        let (id, _) = file.change(|keys| keys.add(new, &[1; RANDOM], 0)).unwrap();
        assert!(file.load().unwrap().knows(&id));
        let mode = std::fs::metadata(file.0.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(file.make_admin(folder.path(), 0).unwrap().is_none(), "there is a key already");
        std::fs::write(file.0.path(), "{").unwrap();
        let error = file.load().unwrap_err().to_string();
        assert!(error.contains("keys.json") && error.contains("damaged"), "{error}");
    }
}
