//! Signing key of this gateway, read or created at the first use.

use crate::seal_folder::SealFolder;
use signalbox_seal::SigningKey;
use std::sync::OnceLock;

#[derive(Debug)]
pub struct OwnKey {
    folder: SealFolder,
    key: OnceLock<Option<SigningKey>>,
}

impl OwnKey {
    /// Returns the signing key of this folder, not yet loaded.
    #[must_use]
    pub fn new(folder: &SealFolder) -> Self {
        Self { folder: folder.clone(), key: OnceLock::new() }
    }

    /// Returns the key, or `None` if it can be neither read nor created, which is logged once.
    pub fn get(&self) -> Option<&SigningKey> {
        let load = || match self.folder.signing_key() {
            Ok(key) => Some(key),
            Err(error) => {
                tracing::error!(%error, "this gateway cannot sign");
                None
            }
        };
        self.key.get_or_init(load).as_ref()
    }
}
