//! Key files on disk. Private ones are readable by their owner only, and every file is written atomically.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use super::key_file::{KeyFileError, read_signing_key, write_pem};
use super::key_set_file::{KeySetError, read_key_set, write_key_set};
use crate::key_set::KeySet;
use crate::signing_key::{KeyError, SigningKey};

/// Maximum size of a key file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// Error when a key file cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum KeyStorageError {
    /// An I/O operation failed.
    #[error("{}: {why}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        why: io::Error,
    },
    /// A private key is readable by others than its owner.
    #[error("{}: others than its owner may read this private key (mode {mode:03o}); `chmod 600` it", path.display())]
    TooOpen {
        /// Path of the file.
        path: PathBuf,
        /// Permission bits of the file.
        mode: u32,
    },
    /// The file is too large for a key file.
    #[error("{}: larger than {MAX_BYTES} bytes", path.display())]
    TooLarge {
        /// Path of the file.
        path: PathBuf,
    },
    /// The file is not a private key.
    #[error("{}: {why}", path.display())]
    Key {
        /// Path of the file.
        path: PathBuf,
        /// Reason why it is not one.
        why: KeyFileError,
    },
    /// The file is not a set of trusted keys.
    #[error("{}: {why}", path.display())]
    KeySet {
        /// Path of the file.
        path: PathBuf,
        /// Reason why it is not one.
        why: KeySetError,
    },
}

/// Reads a private key.
///
/// # Errors
/// If the file is not a private key, or is readable by others than its owner.
pub fn load_signing_key(path: &Path) -> Result<SigningKey, KeyStorageError> {
    let content = read(path, true)?;
    read_signing_key(&content).map_err(|why| KeyStorageError::Key { path: path.to_owned(), why })
}

/// Writes a private key as PEM, readable by its owner only.
///
/// # Errors
/// If the file cannot be written.
pub fn save_signing_key(path: &Path, key: &SigningKey) -> Result<(), KeyStorageError> {
    let failed = |why: KeyError| KeyStorageError::Key { path: path.to_owned(), why: why.into() };
    write(path, write_pem(key).map_err(failed)?.as_bytes())
}

/// Reads the trusted keys. Returns an empty set if the file does not exist.
///
/// # Errors
/// If the file cannot be read.
pub fn load_key_set(path: &Path) -> Result<KeySet, KeyStorageError> {
    let content = match read(path, false) {
        Err(KeyStorageError::Io { why, .. }) if why.kind() == io::ErrorKind::NotFound => return Ok(KeySet::new()),
        other => other?,
    };
    let failed = |why| KeyStorageError::KeySet { path: path.to_owned(), why };
    let text = String::from_utf8(content).map_err(|_| failed(KeySetError::Toml("not UTF-8".to_owned())))?;
    read_key_set(&text).map_err(failed)
}

/// Writes the trusted keys.
///
/// # Errors
/// If the file cannot be written.
pub fn save_key_set(path: &Path, keys: &KeySet) -> Result<(), KeyStorageError> {
    let text = write_key_set(keys).map_err(|why| KeyStorageError::KeySet { path: path.to_owned(), why })?;
    write(path, text.as_bytes())
}

/// Locks a folder's private files against other processes, until the returned file is dropped. Waits for the lock, and
/// creates the folder if necessary.
///
/// # Errors
/// If the lock file cannot be opened or locked.
pub fn lock_folder(folder: &Path) -> Result<File, KeyStorageError> {
    let path = folder.join("lock");
    let file = lock_file(&path)?;
    file.lock().map_err(|why| KeyStorageError::Io { path, why })?;
    Ok(file)
}

/// Tries to lock a private file, until the returned file is dropped. Creates the file and its folder if necessary.
/// Returns `None` if another process holds the lock.
///
/// # Errors
/// If the file cannot be opened or locked.
pub fn try_lock(path: &Path) -> Result<Option<File>, KeyStorageError> {
    let file = lock_file(path)?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(why)) => Err(KeyStorageError::Io { path: path.to_owned(), why }),
    }
}

fn lock_file(path: &Path) -> Result<File, KeyStorageError> {
    make_private_folder(path.parent().unwrap_or(path))
        .and_then(|()| private_options().create(true).open(path))
        .map_err(|why| KeyStorageError::Io { path: path.to_owned(), why })
}

fn read(path: &Path, private: bool) -> Result<Vec<u8>, KeyStorageError> {
    let failed = |why| KeyStorageError::Io { path: path.to_owned(), why };
    let file = File::open(path).map_err(failed)?;
    if private {
        check_mode(path, &file)?;
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > MAX_BYTES {
        return Err(KeyStorageError::TooLarge { path: path.to_owned() });
    }
    Ok(content)
}

#[cfg(unix)]
fn check_mode(path: &Path, file: &File) -> Result<(), KeyStorageError> {
    use std::os::unix::fs::PermissionsExt as _;
    let mode =
        file.metadata().map_err(|why| KeyStorageError::Io { path: path.to_owned(), why })?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 { Ok(()) } else { Err(KeyStorageError::TooOpen { path: path.to_owned(), mode }) }
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &File) -> Result<(), KeyStorageError> {
    Ok(())
}

/// Writes a file that only its owner may read, such as a key in another form than PEM.
///
/// # Errors
/// If the file cannot be written.
pub fn save_private(path: &Path, content: &[u8]) -> Result<(), KeyStorageError> {
    write(path, content)
}

/// Writes a new file and renames it over the old one, so that a crash leaves one of the two intact.
fn write(path: &Path, content: &[u8]) -> Result<(), KeyStorageError> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let beside = path.with_file_name(format!(".{name}.{}.new", std::process::id()));
    let written = write_new(&beside, content).and_then(|()| fs::rename(&beside, path));
    written.map_err(|why| {
        let _ = fs::remove_file(&beside);
        KeyStorageError::Io { path: path.to_owned(), why }
    })
}

fn write_new(path: &Path, content: &[u8]) -> io::Result<()> {
    // A process with the same id may have left it behind when it crashed.
    let _ = fs::remove_file(path);
    let mut file = private_options().create_new(true).open(path)?;
    file.write_all(content)?;
    file.sync_all()
}

/// Returns options to open a file for writing. A file that this creates is readable by its owner only.
fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

fn make_private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key_set::{KeyRole, TrustedKey};

    #[cfg(unix)]
    #[test]
    fn a_private_key_is_kept_for_its_owner_only() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key.pem");
        let key = SigningKey::generate().unwrap();
        fs::write(&path, "an older file").unwrap();
        save_signing_key(&path, &key).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(load_signing_key(&path).unwrap().id(), key.id());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        let error = load_signing_key(&path).unwrap_err().to_string();
        assert!(error.ends_with("(mode 640); `chmod 600` it"), "{error}");
    }

    #[test]
    fn trusted_keys_are_read_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trusted.toml");
        assert_eq!(load_key_set(&path).unwrap(), KeySet::new());
        let mut keys = KeySet::new();
        let key = SigningKey::generate().unwrap();
        keys.add(TrustedKey::new(key.verifying_key().clone(), "ada", &[KeyRole::Client])).unwrap();
        save_key_set(&path, &keys).unwrap();
        assert_eq!(load_key_set(&path).unwrap(), keys);
        fs::write(&path, "key = 1").unwrap();
        assert!(matches!(load_key_set(&path), Err(KeyStorageError::KeySet { .. })));
        assert!(matches!(load_key_set(&folder.path().join("no/folder")), Ok(keys) if keys == KeySet::new()));
        assert!(save_key_set(&folder.path().join("no/folder"), &keys).is_err());
    }
}
