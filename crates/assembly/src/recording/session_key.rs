//! Key for the hashes of session ids on tapes. It stays in the data folder and is never part of a tape.

use super::random;
use signalbox_tape::recorder::SessionHash;
use std::fs::OpenOptions;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Name of its file in the data folder.
pub const SESSION_KEY_FILE: &str = "session.key";

/// Returns the hash under the key of this data folder, which is created if necessary.
///
/// # Errors
/// If the key can be neither read nor created.
pub fn session_hash(data_dir: &Path) -> io::Result<SessionHash> {
    let path = data_dir.join(SESSION_KEY_FILE);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(&path),
        read => read,
    }
    .map(|key| SessionHash::new(&key))
}

fn read(path: &Path) -> io::Result<[u8; 32]> {
    let mut key = Vec::new();
    std::fs::File::open(path)?.take(33).read_to_end(&mut key)?;
    let whole = |_| io::Error::new(io::ErrorKind::InvalidData, format!("{} does not hold 32 bytes", path.display()));
    key.try_into().map_err(whole)
}

/// Creates the key file whole or not at all. If several processes do so at once, the first one's key stays.
fn make(path: &Path) -> io::Result<[u8; 32]> {
    let key: [u8; 32] = random()?;
    let unique: [u8; 8] = random()?;
    let beside = path.with_extension(format!("key.{:016x}", u64::from_be_bytes(unique)));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let made = file.write_all(&key).and_then(|()| file.sync_all()).and_then(|()| std::fs::hard_link(&beside, path));
    let _ = std::fs::remove_file(&beside);
    match made {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read(path),
        made => made.map(|()| key),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn the_key_is_made_once_for_its_owner_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let first = session_hash(folder.path()).unwrap().of("id");
        let path = folder.path().join(SESSION_KEY_FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(session_hash(folder.path()).unwrap().of("id"), first);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
        assert_eq!(make(&path).unwrap(), read(&path).unwrap(), "whoever comes second takes the key that is there");
    }

    #[test]
    fn a_key_that_is_no_key_is_said_so() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(SESSION_KEY_FILE), "short").unwrap();
        let error = session_hash(folder.path()).unwrap_err().to_string();
        assert!(error.contains("session.key does not hold 32 bytes"), "{error}");
    }
}
