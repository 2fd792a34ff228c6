//! Token store: an encrypted file in the data folder, with a key that lies beside it or is printed by a program.

use crate::client_identity::ClientIdentity;
use crate::secret_source::{SecretError, SecretSource};
use crate::token_request::TokenSet;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use signalbox_seal::keys::files::{KeyStorageError, lock_folder, save_private};
use signalbox_seal::{AEAD_KEY_BYTES, AeadKey};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tokio::sync::OnceCell;

/// Folder of the store in the data folder.
const FOLDER: &str = "oauth";
/// File with the encrypted tokens.
const TOKENS: &str = "tokens.sealed";
/// Key file, if no program prints the key.
const KEY: &str = "tokens.key";
/// Bound data of the encryption.
const BOUND: &[u8] = b"signalbox oauth tokens 1";
/// Maximum size of the encrypted file, in bytes.
const MAX_FILE: u64 = 64 * 1024 * 1024;

/// Error of the token store.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// A file cannot be written.
    #[error(transparent)]
    Write(#[from] KeyStorageError),
    /// A file cannot be read.
    #[error("{} cannot be used: {why}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        why: io::Error,
    },
    /// The key cannot be read.
    #[error("the key of the token store cannot be had: {0}")]
    Key(SecretError),
    /// The key is malformed.
    #[error("the key of the token store is not 32 bytes in base64")]
    BadKey,
    /// The file was encrypted under another key, or was modified.
    #[error("{} cannot be opened with this key; to sign in anew, remove it", .0.display())]
    Sealed(PathBuf),
}

/// Contents of the token store.
#[derive(Clone, Default, Debug, Serialize, Deserialize)]
#[serde(default)]
pub struct VaultContents {
    /// Registered clients, by issuer and redirect URI.
    pub clients: Vec<ClientIdentity>,
    /// Tokens by backend and subject.
    pub tokens: BTreeMap<String, BTreeMap<String, TokenSet>>,
    /// First issuer that each backend used.
    pub issuers: BTreeMap<String, String>,
    /// Scopes that a server requires and that are not granted yet, by backend and subject.
    pub wanted: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    /// Port of the last loopback listener, which registrations name.
    pub redirect_port: Option<u16>,
}

/// Token store of a data folder. Several processes may share it.
#[derive(Debug)]
pub struct Vault {
    folder: PathBuf,
    key_command: Vec<String>,
    /// Read once: the program may prompt a person for it.
    key: OnceCell<AeadKey>,
}

impl Vault {
    /// Opens the store of this data folder. Creates nothing. `key_command`, if any, prints the key in base64.
    #[must_use]
    pub fn of(data_dir: &Path, key_command: Vec<String>) -> Self {
        Self { folder: data_dir.join(FOLDER), key_command, key: OnceCell::new() }
    }

    /// Reads the contents.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub async fn read(&self) -> Result<VaultContents, VaultError> {
        if !self.file().exists() {
            return Ok(VaultContents::default());
        }
        self.open(self.key().await?)
    }

    /// Changes the contents under a lock against other processes.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn change<T>(&self, change: impl FnOnce(&mut VaultContents) -> T) -> Result<T, VaultError> {
        let key = self.key().await?;
        let _lock = lock_folder(&self.folder)?;
        let mut kept = if self.file().exists() { self.open(key)? } else { VaultContents::default() };
        let result = change(&mut kept);
        let text = serde_json::to_vec(&kept).unwrap_or_default();
        let sealed = key.seal(BOUND, text).ok_or(VaultError::BadKey)?;
        save_private(&self.file(), &sealed)?;
        Ok(result)
    }

    /// Removes all tokens of a subject. Returns the backends that they were for. Writes nothing if there are none.
    ///
    /// # Errors
    /// If the store cannot be read or written.
    pub async fn forget_subject(&self, subject: &str) -> Result<Vec<String>, VaultError> {
        let has_any = |kept: &VaultContents| {
            kept.tokens.values().any(|all| all.contains_key(subject))
                || kept.wanted.values().any(|all| all.contains_key(subject))
        };
        if !has_any(&self.read().await?) {
            return Ok(Vec::new());
        }
        let forget = |kept: &mut VaultContents| {
            kept.wanted.values_mut().for_each(|all| drop(all.remove(subject)));
            let held = kept.tokens.iter_mut().filter_map(|(backend, all)| all.remove(subject).map(|_| backend.clone()));
            held.collect()
        };
        self.change(forget).await
    }

    /// Returns the time of the last change by any process.
    #[must_use]
    pub fn changed(&self) -> Option<SystemTime> {
        self.file().metadata().and_then(|file| file.modified()).ok()
    }

    fn file(&self) -> PathBuf {
        self.folder.join(TOKENS)
    }

    fn open(&self, key: &AeadKey) -> Result<VaultContents, VaultError> {
        let path = self.file();
        let sealed = read_file(&path, MAX_FILE)?;
        let text = key.open(BOUND, &sealed).ok_or_else(|| VaultError::Sealed(path.clone()))?;
        serde_json::from_slice(&text).map_err(|_| VaultError::Sealed(path))
    }

    async fn key(&self) -> Result<&AeadKey, VaultError> {
        self.key.get_or_try_init(|| self.read_key()).await
    }

    async fn read_key(&self) -> Result<AeadKey, VaultError> {
        let text = match self.key_command.is_empty() {
            true => self.key_file()?,
            false => {
                let printed = SecretSource::Command(self.key_command.clone()).read().await;
                printed.map_err(VaultError::Key)?.expose().to_owned()
            }
        };
        let bytes = STANDARD.decode(text.trim()).map_err(|_| VaultError::BadKey)?;
        let bytes: [u8; AEAD_KEY_BYTES] = bytes.try_into().map_err(|_| VaultError::BadKey)?;
        AeadKey::new(&bytes).map_err(|_| VaultError::BadKey)
    }

    /// Reads the key file, and creates it if necessary. Of several concurrent processes, one creates it.
    fn key_file(&self) -> Result<String, VaultError> {
        let path = self.folder.join(KEY);
        if !path.exists() {
            let _lock = lock_folder(&self.folder)?;
            if !path.exists() {
                let mut bytes = [0; AEAD_KEY_BYTES];
                getrandom::fill(&mut bytes).map_err(|_| VaultError::BadKey)?;
                save_private(&path, format!("{}\n", STANDARD.encode(bytes)).as_bytes())?;
            }
        }
        let bytes = read_file(&path, 1024)?;
        String::from_utf8(bytes).map_err(|_| VaultError::BadKey)
    }
}

fn read_file(path: &Path, most: u64) -> Result<Vec<u8>, VaultError> {
    let bad = |why| VaultError::Io { path: path.to_owned(), why };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)).map_err(bad)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret_text::SecretText;
    use std::os::unix::fs::PermissionsExt as _;

    fn token(access: &str) -> TokenSet {
        TokenSet {
            issuer: "https://as.example".to_owned(),
            client_id: "me".to_owned(),
            client_auth: crate::client_identity::ClientAuth::None,
            token_endpoint: "https://as.example/token".to_owned(),
            resource: "https://a.example/mcp".to_owned(),
            access: SecretText::new(access),
            refresh: None,
            given: 0,
            expires: None,
            scopes: Vec::new(),
        }
    }

    #[tokio::test]
    async fn tokens_are_sealed_on_disk_and_only_their_key_opens_them() {
        let folder = tempfile::tempdir().unwrap();
        let vault = Vault::of(folder.path(), Vec::new());
        assert!(vault.read().await.unwrap().tokens.is_empty());
        let keep = |kept: &mut VaultContents| {
            kept.tokens.entry("b".to_owned()).or_default().insert("*".to_owned(), token("made-up-token-7"));
        };
        vault.change(keep).await.unwrap();
        assert_eq!(vault.read().await.unwrap().tokens["b"]["*"].access.expose(), "made-up-token-7");
        for name in [TOKENS, KEY] {
            let path = folder.path().join(FOLDER).join(name);
            let text = std::fs::read(&path).unwrap();
            assert!(!text.windows(7).any(|part| part == b"made-up"), "{name} holds the token in clear");
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        let other = STANDARD.encode([7; 32]);
        let other = Vault::of(folder.path(), vec!["echo".to_owned(), other]);
        assert!(matches!(other.read().await, Err(VaultError::Sealed(_))));
        let bad = Vault::of(folder.path(), vec!["echo".to_owned(), "short".to_owned()]);
        assert!(matches!(bad.read().await, Err(VaultError::BadKey)));
    }
}
