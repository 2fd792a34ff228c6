//! The trusted keys of a running process, which follow their file.

use crate::seal_folder::SealFolder;
use arc_swap::ArcSwap;
use signalbox_engine::lock::LockResultExt;
use signalbox_seal::KeySet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// How long a change of the file may go unnoticed.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The keys that are trusted at this moment.
#[derive(Debug)]
pub struct TrustedKeys {
    folder: SealFolder,
    file: PathBuf,
    keys: ArcSwap<KeySet>,
    looked: Mutex<(Option<Instant>, Option<Mark>)>,
}

/// What tells one state of the file from another.
type Mark = (SystemTime, u64);

impl TrustedKeys {
    /// The keys of this folder, read when they are needed.
    #[must_use]
    pub fn new(folder: &SealFolder) -> Self {
        let file = folder.key_set_file();
        Self { folder: folder.clone(), file, keys: ArcSwap::default(), looked: Mutex::default() }
    }

    /// The keys, read again if their file has changed. A file that cannot be read leaves them as they were.
    pub fn now(&self) -> Arc<KeySet> {
        let mut looked = self.looked.lock().unpoisoned();
        if looked.0.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            looked.0 = Some(Instant::now());
            let mark = mark(&self.file);
            if mark != looked.1 {
                match self.folder.key_set() {
                    Ok(keys) => {
                        self.keys.store(Arc::new(keys));
                        looked.1 = mark;
                    }
                    Err(error) => tracing::error!(%error, "the trusted keys stay as they were"),
                }
            }
        }
        drop(looked);
        self.keys.load_full()
    }
}

fn mark(file: &Path) -> Option<Mark> {
    let metadata = std::fs::metadata(file).ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal_folder::SealFolderError;
    use signalbox_seal::{Role, SigningKey, TrustedKey};

    #[tokio::test]
    async fn a_key_that_is_added_while_the_process_runs_is_trusted_soon() {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let keys = TrustedKeys::new(&folder);
        assert_eq!(keys.now().iter().count(), 0);
        let ada = SigningKey::generate().unwrap();
        let trusted = TrustedKey::new(ada.verifying_key().clone(), "ada", &[Role::Client]);
        folder.change_key_set(|keys| keys.add(trusted).map_err(SealFolderError::from)).unwrap();
        tokio::time::sleep(LOOK_EVERY).await;
        assert!(keys.now().get(ada.id()).is_some());
        std::fs::write(folder.key_set_file(), "no TOML").unwrap();
        tokio::time::sleep(LOOK_EVERY).await;
        assert!(keys.now().get(ada.id()).is_some(), "a broken file changes nothing");
    }
}
