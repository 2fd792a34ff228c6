use super::file::{self, FileProblem, TlsFileError};
use super::inspect::CertificateInfo;
use super::provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use rustls::{Error, InconsistentKeys};
use std::path::PathBuf;
use std::sync::Arc;

/// Files of a certificate chain and its private key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PairFiles {
    /// Certificate, followed by its intermediates.
    pub cert_file: PathBuf,
    /// Private key in PEM format.
    pub key_file: PathBuf,
}

/// A certificate chain and its key, as loaded from their files.
pub(super) struct Pair {
    pub certificates: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    pub certified: Arc<CertifiedKey>,
    pub info: CertificateInfo,
}

impl PairFiles {
    /// Reads both files and checks that they match.
    pub(super) fn load(&self) -> Result<Pair, TlsFileError> {
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
            // Some types of keys cannot be compared; a handshake then reports a mismatch.
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

    /// Checks that both files are readable and match.
    ///
    /// # Errors
    /// Returns the file that cannot be used, with the reason.
    pub fn check(&self) -> Result<(), TlsFileError> {
        self.load().map(drop)
    }

    /// Logs warnings for the operator.
    pub(super) fn warn(&self, info: &CertificateInfo) {
        if file::is_exposed(&self.key_file) {
            let file = self.key_file.display();
            tracing::warn!(%file, "every user of this machine can read the private key; set its mode to 0600");
        }
        if let Some(warning) = info.warning(std::time::SystemTime::now()) {
            tracing::warn!(file = %self.cert_file.display(), "{warning}");
        }
    }
}
