//! Trusted keys of a running process, which follow their file.

use crate::auth_file::{AuthFile, FileStamp};
use crate::seal_folder::SealFolder;
use arc_swap::ArcSwap;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::standing::{Credential, Revocation};
use signalbox_seal::{KeyRole, KeySet, TrustError, TrustedKey};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Maximum delay after which a change of the file is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// Roles of the keys that sign requests.
const SIGNERS: [KeyRole; 2] = [KeyRole::Client, KeyRole::Gateway];

/// Keys that are trusted now.
#[derive(Debug)]
pub struct TrustedKeys {
    folder: SealFolder,
    file: AuthFile,
    keys: ArcSwap<KeySet>,
    looked: Mutex<(Option<Instant>, Option<FileStamp>)>,
    used: Mutex<HashMap<String, UsedKey>>,
}

/// Key that identified a caller, with its credential.
#[derive(Debug)]
struct UsedKey {
    key: TrustedKey,
    credential: Credential,
    revocation: Revocation,
}

impl TrustedKeys {
    /// Returns the keys of this folder, read at the first use.
    #[must_use]
    pub fn new(folder: &SealFolder) -> Self {
        let file = AuthFile::at(folder.key_set_file());
        let (keys, looked, used) = (ArcSwap::default(), Mutex::default(), Mutex::default());
        Self { folder: folder.clone(), file, keys, looked, used }
    }

    /// Returns the keys, read again if their file has changed. An unreadable file changes nothing.
    pub fn now(&self) -> Arc<KeySet> {
        self.look(LOOK_EVERY)
    }

    /// Returns the credential of this key, which lasts as long as the key is trusted, or `None` for an unknown key.
    pub fn credential(&self, id: &str) -> Option<Credential> {
        let key = self.keys.load().get(id)?.clone();
        let mut used = self.used.lock().unpoisoned();
        let used = used.entry(id.to_owned()).or_insert_with(|| {
            let (credential, revocation) = Credential::new(&format!("seal/{id}"), None);
            UsedKey { key, credential, revocation }
        });
        Some(used.credential.clone())
    }

    /// Reads the keys again if their file has changed, and ends the credentials of keys that are not trusted at `now`,
    /// in seconds since 1970.
    pub fn end_untrusted(&self, now: i64) {
        let keys = self.look(Duration::ZERO);
        self.used.lock().unpoisoned().retain(|id, used| {
            let is_same = |key: &TrustedKey| key.key == used.key.key && key.name == used.key.name;
            match keys.trusted(id, &SIGNERS, now) {
                Ok(key) if is_same(key) => return true,
                Err(TrustError::Expired(_)) => used.revocation.expire(),
                Ok(_) | Err(_) => used.revocation.revoke(),
            }
            false
        });
    }

    fn look(&self, every: Duration) -> Arc<KeySet> {
        let mut looked = self.looked.lock().unpoisoned();
        if looked.0.is_none_or(|at| at.elapsed() >= every) {
            looked.0 = Some(Instant::now());
            let stamp = self.file.stamp();
            if stamp != looked.1 {
                match self.folder.key_set() {
                    Ok(keys) => {
                        self.keys.store(Arc::new(keys));
                        looked.1 = stamp;
                    }
                    Err(error) => tracing::error!(%error, "the trusted keys stay as they were"),
                }
            }
        }
        drop(looked);
        self.keys.load_full()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seal_folder::SealFolderError;
    use signalbox_seal::{KeyRole, SigningKey, TrustedKey};

    #[tokio::test]
    async fn a_key_that_is_added_while_the_process_runs_is_trusted_soon() {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let keys = TrustedKeys::new(&folder);
        assert_eq!(keys.now().iter().count(), 0);
        let ada = SigningKey::generate().unwrap();
        let trusted = TrustedKey::new(ada.verifying_key().clone(), "ada", &[KeyRole::Client]);
        folder.change_key_set(|keys| keys.add(trusted).map_err(SealFolderError::from)).unwrap();
        tokio::time::sleep(LOOK_EVERY).await;
        assert!(keys.now().get(ada.id()).is_some());
        std::fs::write(folder.key_set_file(), "no TOML").unwrap();
        tokio::time::sleep(LOOK_EVERY).await;
        assert!(keys.now().get(ada.id()).is_some(), "a broken file changes nothing");
    }

    #[test]
    fn the_credential_of_a_key_ends_when_the_key_is_trusted_no_more() {
        let data = tempfile::tempdir().unwrap();
        let folder = SealFolder::of(data.path());
        let keys = TrustedKeys::new(&folder);
        let key = |id: &str| SigningKey::generate().unwrap().named(id).unwrap().verifying_key().clone();
        for id in ["revoked", "expired", "removed", "renamed", "rotated", "good"] {
            let mut trusted = TrustedKey::new(key(id), "ada", &[KeyRole::Client]);
            trusted.valid_until = (id == "expired").then_some(10);
            folder.change_key_set(|keys| keys.add(trusted).map_err(SealFolderError::from)).unwrap();
        }
        keys.end_untrusted(5);
        let credentials = ["revoked", "expired", "removed", "renamed", "rotated", "good"].map(|id| {
            assert_eq!(keys.credential(id), keys.credential(id));
            keys.credential(id).unwrap()
        });
        let faults = || credentials.clone().map(|credential| credential.fault(0));
        keys.end_untrusted(9);
        assert_eq!(faults(), [None; 6]);
        folder
            .change_key_set(|keys| {
                keys.revoke("revoked", 9).unwrap();
                keys.rotate("rotated", key("next"), 9, 1_000).unwrap();
                keys.remove("removed");
                let mut renamed = keys.get("renamed").unwrap().clone();
                keys.remove("renamed");
                renamed.name = "eve".to_owned();
                keys.add(renamed).map_err(SealFolderError::from)
            })
            .unwrap();
        keys.end_untrusted(10);
        let (revoked, expired) = (Some("revoked"), Some("expired"));
        assert_eq!(faults(), [revoked, expired, revoked, revoked, None, None]);
        assert_eq!(keys.credential("unknown"), None);
    }
}
