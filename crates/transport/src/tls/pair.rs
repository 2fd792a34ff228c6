use super::file::{self, FileError, FileProblem};
use super::inspect::CertificateInfo;
use super::provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use std::path::PathBuf;
use std::sync::Arc;

/// Where a certificate, with those between it and its authority, and its key are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairFiles {
    /// The certificate first, then what leads to its authority.
    pub cert_file: PathBuf,
    /// The private key.
    pub key_file: PathBuf,
}

/// What was read.
pub(super) struct Pair {
    pub certificates: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub certified: Arc<CertifiedKey>,
    pub info: CertificateInfo,
}

impl PairFiles {
    /// Reads both, and checks that they belong together.
    pub(super) fn load(&self) -> Result<Pair, FileError> {
        let certificates = file::certificates(&self.cert_file)?;
        let key = file::key(&self.key_file)?;
        let info = match certificates.first() {
            Some(first) => CertificateInfo::of(first),
            None => Err(super::InspectError::NoCertificate),
        };
        let info = info.map_err(|error| FileProblem::from(error).at(&self.cert_file))?;
        let signing = provider().key_provider.load_private_key(key.clone_key());
        let signing = signing.map_err(|error| FileProblem::BadKey(error.to_string()).at(&self.key_file))?;
        let certified = CertifiedKey::new(certificates.clone(), signing);
        match certified.keys_match() {
            // Some kinds of keys do not tell; a handshake then says so.
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                return Err(FileProblem::OtherKey(self.cert_file.clone()).at(&self.key_file));
            }
            Err(error) => {
                return Err(FileProblem::Unfit(self.cert_file.clone(), error.to_string()).at(&self.key_file));
            }
        }
        Ok(Pair { certificates, key, certified: Arc::new(certified), info })
    }

    /// Checks that both can be read and belong together.
    ///
    /// # Errors
    /// Says which file cannot be used, and why.
    pub fn check(&self) -> Result<(), FileError> {
        self.load().map(drop)
    }

    /// Says what its owner should know, on the log.
    pub(super) fn warn(&self, info: &CertificateInfo) {
        if file::is_exposed(&self.key_file) {
            let file = self.key_file.display();
            tracing::warn!(%file, "everybody on this machine can read the private key; set its mode to 0600");
        }
        if let Some(warning) = info.warning(std::time::SystemTime::now()) {
            tracing::warn!(file = %self.cert_file.display(), "{warning}");
        }
    }
}
