//! Keys that sign tokens of the authorization server: the current one, and the former one while tokens signed by it are
//! valid.
//!
//! ```text
//! auth/server.key          signs                    auth/server.former.key   signed before, and still verifies
//! ```
//!
//! The modification times of the files tell the age of the current key and the time at which the former one was
//! replaced.

use crate::authorization::AuthServerError;
use signalbox_config::auth_server::AuthServer;
use signalbox_oauth_server::TokenSigner;
use signalbox_seal::SigningKey;
use signalbox_seal::keys::files::{load_signing_key, save_signing_key};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Signing keys of one data folder.
pub(crate) struct SigningKeys {
    current: PathBuf,
    former: PathBuf,
    /// Age at which the key is replaced, if ever.
    lifetime: Option<Duration>,
    /// Lifetime of tokens, for which a former key still verifies.
    tokens: Duration,
}

impl SigningKeys {
    /// Returns the keys of this folder.
    pub fn of(folder: &Path, server: &AuthServer) -> Self {
        Self {
            current: folder.join("server.key"),
            former: folder.join("server.former.key"),
            lifetime: server.key_lifetime,
            tokens: server.access_lifetime,
        }
    }

    /// Returns the signer for this moment, and creates the key at the first start.
    ///
    /// # Errors
    /// If a key cannot be read or created.
    pub fn load(&self, now: SystemTime) -> Result<TokenSigner, AuthServerError> {
        if !self.current.exists() {
            save_signing_key(&self.current, &SigningKey::generate()?)?;
        }
        let signer = TokenSigner::new(&load_signing_key(&self.current)?.to_seed()?)?;
        match age(&self.former, now).filter(|age| *age < self.tokens) {
            None => Ok(signer),
            Some(_) => Ok(signer.after(TokenSigner::new(&load_signing_key(&self.former)?.to_seed()?)?)),
        }
    }

    /// Returns the next signer if the key is due for replacement, or if no token of the former key is valid any more.
    /// Callers must not run it concurrently.
    ///
    /// # Errors
    /// If a key cannot be read or created. The previous signer is then still good.
    pub fn renewed(&self, now: SystemTime) -> Result<Option<TokenSigner>, AuthServerError> {
        let former = age(&self.former, now);
        if let (Some(lifetime), Some(own)) = (self.lifetime, age(&self.current, now))
            && own >= lifetime
        {
            // A crash between the two writes leaves the same key twice.
            save_signing_key(&self.former, &load_signing_key(&self.current)?)?;
            save_signing_key(&self.current, &SigningKey::generate()?)?;
            tracing::info!("tokens of the authorization server are signed with another key from now on");
        } else if former.is_some_and(|age| age >= self.tokens) {
            let failed = |why| AuthServerError::Io { path: self.former.clone(), why };
            std::fs::remove_file(&self.former).map_err(failed)?;
        } else {
            return Ok(None);
        }
        self.load(SystemTime::now().max(now)).map(Some)
    }
}

/// Returns the time since a file was written, or `None` if there is no file.
fn age(path: &Path, now: SystemTime) -> Option<Duration> {
    let written = std::fs::metadata(path).ok()?.modified().ok()?;
    Some(now.duration_since(written).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn kids(signer: &TokenSigner) -> Vec<String> {
        let keys = signer.key_set();
        let kids = keys["keys"].as_array().into_iter().flatten();
        kids.filter_map(|key| key["kid"].as_str().map(str::to_owned)).collect()
    }

    fn keys(folder: &Path, lifetime: Option<u64>) -> SigningKeys {
        SigningKeys {
            current: folder.join("server.key"),
            former: folder.join("server.former.key"),
            lifetime: lifetime.map(Duration::from_secs),
            tokens: Duration::from_secs(600),
        }
    }

    #[test]
    fn the_next_key_signs_and_the_former_verifies_until_its_tokens_are_over() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys(folder.path(), Some(3_600));
        let (start, after) = (SystemTime::now(), |seconds| SystemTime::now() + Duration::from_secs(seconds));
        let first = kids(&keys.load(start).unwrap());
        assert!(keys.renewed(after(3_000)).unwrap().is_none(), "it is not time yet");
        let old = SystemTime::now() - Duration::from_secs(3_601);
        std::fs::File::options().write(true).open(&keys.current).unwrap().set_modified(old).unwrap();
        let second = kids(&keys.renewed(SystemTime::now()).unwrap().unwrap());
        assert_eq!((second.len(), &second[1]), (2, &first[0]));
        assert_ne!(second[0], first[0]);
        assert!(keys.renewed(after(500)).unwrap().is_none());
        assert_eq!(kids(&keys.load(after(500)).unwrap()), second, "the next process knows both");
        assert_eq!(kids(&keys.renewed(after(601)).unwrap().unwrap()), second[..1]);
        assert!(!keys.former.exists());
    }

    #[test]
    fn without_a_lifetime_a_key_stays() {
        let folder = tempfile::tempdir().unwrap();
        let keys = keys(folder.path(), None);
        let first = keys.load(SystemTime::now()).unwrap().key_set();
        let later = SystemTime::now() + Duration::from_secs(1 << 40);
        assert!(keys.renewed(later).unwrap().is_none());
        assert_eq!(keys.load(later).unwrap().key_set(), first);
        assert_ne!(first, Value::Null);
    }
}
