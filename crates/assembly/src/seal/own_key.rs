//! The key with which this gateway signs, read or made when it is needed first.

use crate::seal_folder::SealFolder;
use signalbox_seal::SigningKey;
use std::sync::OnceLock;

/// The key.
#[derive(Debug)]
pub struct OwnKey {
    folder: SealFolder,
    key: OnceLock<Option<SigningKey>>,
}

impl OwnKey {
    /// The signing key of this folder.
    #[must_use]
    pub fn new(folder: &SealFolder) -> Self {
        Self { folder: folder.clone(), key: OnceLock::new() }
    }

    /// The key; none if it can be neither read nor made, which is logged once.
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
