//! Keys in the data folder: the installation's own signing key, and the set of keys that it trusts.

use signalbox_seal::keys::files::{
    KeyStorageError, load_key_set, load_signing_key, lock_folder, save_key_set, save_signing_key,
};
use signalbox_seal::{KeyConflict, KeyError, KeyRole, KeySet, SigningKey, TrustedKey};
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Name of the folder in the data folder.
const FOLDER: &str = "seal";
/// Name of the private key's file.
const SIGNING_KEY: &str = "signing.key";
/// Name of the trusted keys' file.
const KEY_SET: &str = "keys.toml";
/// Name of the folder of other private keys.
const PRIVATE_KEYS: &str = "private";
/// Name of the folder of seen nonces.
const NONCES: &str = "nonces";
/// Name of the file with other recorders' signed heads.
const ANCHORS: &str = "anchors.jsonl";
/// Name of the own key in the set of trusted keys.
const OWN_NAME: &str = "gateway";

/// Reason why the keys of a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SealFolderError {
    /// A key file cannot be read or written.
    #[error(transparent)]
    File(#[from] KeyStorageError),
    /// A key cannot be generated.
    #[error("cannot make a signing key: {0}")]
    Key(#[from] KeyError),
    /// The new key conflicts with a trusted one.
    #[error(transparent)]
    Conflict(#[from] KeyConflict),
    /// A folder cannot be created.
    #[error("{}: {why}", path.display())]
    Io {
        /// Path of the folder.
        path: PathBuf,
        /// Error of the system.
        why: io::Error,
    },
}

/// Folder of the keys in a data folder.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SealFolder(PathBuf);

impl SealFolder {
    /// Returns the folder of this data folder. Creates nothing.
    #[must_use]
    pub fn of(data_dir: &Path) -> Self {
        Self(data_dir.join(FOLDER))
    }

    /// Returns the file of the private key.
    #[must_use]
    pub fn signing_key_file(&self) -> PathBuf {
        self.0.join(SIGNING_KEY)
    }

    /// Returns the file of another private key that is kept here.
    #[must_use]
    pub fn private_key_file(&self, id: &str) -> PathBuf {
        self.0.join(PRIVATE_KEYS).join(format!("{id}.key"))
    }

    /// Creates the folder of the private keys.
    ///
    /// # Errors
    /// If it cannot be created.
    pub fn make_private(&self) -> Result<(), SealFolderError> {
        let path = self.0.join(PRIVATE_KEYS);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|why| SealFolderError::Io { path, why })
    }

    /// Returns the folder of seen nonces.
    #[must_use]
    pub fn nonce_folder(&self) -> PathBuf {
        self.0.join(NONCES)
    }

    /// Returns the file of the signed heads that were anchored here.
    #[must_use]
    pub fn anchor_file(&self) -> PathBuf {
        self.0.join(ANCHORS)
    }

    /// Returns the file of the trusted keys.
    #[must_use]
    pub fn key_set_file(&self) -> PathBuf {
        self.0.join(KEY_SET)
    }

    /// Returns the private key, which is created and trusted if there is none yet. If several processes ask at once,
    /// one creates it.
    ///
    /// # Errors
    /// If the key can be neither read nor created.
    pub fn signing_key(&self) -> Result<SigningKey, SealFolderError> {
        if self.signing_key_file().exists() {
            return self.load_signing_key();
        }
        let _lock = lock_folder(&self.0)?;
        if self.signing_key_file().exists() {
            return self.load_signing_key();
        }
        let key = SigningKey::generate()?;
        // The trust comes first: a crash in between leaves a trusted key without a private key, never an untrusted key
        // in use.
        let mut keys = self.key_set()?;
        keys.add(TrustedKey::new(key.verifying_key().clone(), OWN_NAME, &[KeyRole::Gateway, KeyRole::Recorder]))?;
        save_key_set(&self.key_set_file(), &keys)?;
        save_signing_key(&self.signing_key_file(), &key)?;
        Ok(key)
    }

    /// Reads the private key, and names it by its id in the set of trusted keys, which its file does not hold.
    fn load_signing_key(&self) -> Result<SigningKey, SealFolderError> {
        let key = load_signing_key(&self.signing_key_file())?;
        let keys = self.key_set()?;
        match keys.iter().find(|known| known.key == *key.verifying_key()) {
            Some(known) => Ok(key.named(known.key.id())?),
            None => Ok(key),
        }
    }

    /// Reads the trusted keys; none if there is no file.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn key_set(&self) -> Result<KeySet, KeyStorageError> {
        load_key_set(&self.key_set_file())
    }

    /// Changes the trusted keys under a lock against other processes.
    ///
    /// # Errors
    /// If the keys can be neither read nor written, or `change` fails. They are then unchanged.
    pub fn change_key_set<T, E: From<SealFolderError>>(
        &self,
        change: impl FnOnce(&mut KeySet) -> Result<T, E>,
    ) -> Result<T, E> {
        let _lock = lock_folder(&self.0).map_err(SealFolderError::from)?;
        let mut keys = self.key_set().map_err(SealFolderError::from)?;
        let changed = change(&mut keys)?;
        save_key_set(&self.key_set_file(), &keys).map_err(SealFolderError::from)?;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn of_many_that_ask_at_once_one_makes_the_key_and_it_is_trusted() {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let ids: Vec<String> = std::thread::scope(|scope| {
            let ask = || folder.signing_key().unwrap().id().to_owned();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(ask)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        assert_eq!(folder.signing_key_file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(data.path().join("seal").metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let keys = folder.key_set().unwrap();
        assert_eq!(keys.iter().map(|key| key.key.id()).collect::<Vec<_>>(), [&ids[0]]);
        assert!(keys.trusted(&ids[0], &[KeyRole::Recorder], 1_790_000_000).is_ok());
    }

    #[test]
    fn the_signing_key_has_the_id_that_it_is_trusted_with() {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let west = SigningKey::generate().unwrap().named("west").unwrap();
        let trusted = TrustedKey::new(west.verifying_key().clone(), "west", &[KeyRole::Gateway]);
        folder.change_key_set(|keys| keys.add(trusted).map_err(SealFolderError::from)).unwrap();
        save_signing_key(&folder.signing_key_file(), &west).unwrap();
        assert_eq!(folder.signing_key().unwrap().id(), "west");
    }

    #[test]
    fn a_set_that_was_there_before_the_key_is_kept() {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let other = SigningKey::generate().unwrap();
        let trusted = TrustedKey::new(other.verifying_key().clone(), "ada", &[KeyRole::Client]);
        folder.change_key_set(|keys| keys.add(trusted).map_err(SealFolderError::from)).unwrap();
        let own = folder.signing_key().unwrap();
        let keys = folder.key_set().unwrap();
        assert!(keys.get(other.id()).is_some() && keys.get(own.id()).is_some());
    }
}
