//! Parses certificates and describes their validity.

use super::der;
use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use signalbox_wire::hex::hex;
use signalbox_wire::timestamp;
use std::time::{Duration, SystemTime};

/// Remaining validity below which a warning is shown.
pub const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// Details of a certificate.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CertificateInfo {
    /// Start of its validity, in seconds since 1970.
    pub not_before: i64,
    /// End of its validity, in seconds since 1970.
    pub not_after: i64,
    /// SHA-256 fingerprint in hexadecimal.
    pub fingerprint: String,
}

/// Validity of a certificate at a given time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Validity {
    /// Valid for longer than [`SOON`].
    Good,
    /// Valid for this time only.
    Soon(Duration),
    /// The certificate has expired.
    Expired,
    /// The certificate is not valid yet.
    Future,
}

/// Reason why a certificate cannot be inspected.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InspectError {
    /// The text is not PEM.
    #[error("is not PEM, which begins with `-----BEGIN CERTIFICATE-----`")]
    NotPem,
    /// The text contains no certificate.
    #[error("holds no certificate (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// The certificate cannot be parsed.
    #[error("holds a certificate that cannot be read")]
    Malformed,
}

/// Inspects the first certificate of a PEM file, which is the one presented to the peer.
///
/// # Errors
/// Returns an error if there is no readable certificate.
pub fn inspect(cert_pem: &[u8]) -> Result<CertificateInfo, InspectError> {
    match certificates(cert_pem)?.first() {
        Some(certificate) => CertificateInfo::of(certificate),
        None => Err(InspectError::NoCertificate),
    }
}

/// Parses all certificates of a PEM file; at least one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, InspectError> {
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) if is_pem(pem) => Err(InspectError::NoCertificate),
        Ok(_) | Err(_) => Err(InspectError::NotPem),
    }
}

/// Returns `true` if the text contains the start of a PEM section.
pub(super) fn is_pem(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"-----BEGIN ").is_some()
}

impl CertificateInfo {
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Result<Self, InspectError> {
        let (not_before, not_after) = der::validity(certificate).ok_or(InspectError::Malformed)?;
        Ok(Self { not_before, not_after, fingerprint: fingerprint(certificate) })
    }

    /// Returns the validity at the given time.
    #[must_use]
    pub fn validity(&self, now: SystemTime) -> Validity {
        let now = timestamp::seconds_of(now);
        let left = u64::try_from(self.not_after - now).map(Duration::from_secs);
        match left {
            Err(_) => Validity::Expired,
            Ok(_) if now < self.not_before => Validity::Future,
            Ok(left) if left < SOON => Validity::Soon(left),
            Ok(_) => Validity::Good,
        }
    }

    /// Returns a warning for the operator, if any.
    #[must_use]
    pub fn warning(&self, now: SystemTime) -> Option<String> {
        let until = timestamp::readable(self.not_after);
        match self.validity(now) {
            Validity::Good => None,
            Validity::Soon(left) => {
                Some(format!("the certificate expires in {} days, at {until}; renew it", left.as_secs() / 86_400))
            }
            Validity::Expired => Some(format!("the certificate has expired at {until}; renew it")),
            Validity::Future => Some(format!(
                "the certificate is not valid before {}; look at the clock",
                timestamp::readable(self.not_before)
            )),
        }
    }
}

/// Returns the SHA-256 fingerprint of a certificate in hexadecimal.
pub(super) fn fingerprint(certificate: &[u8]) -> String {
    hex(digest(&SHA256, certificate).as_ref())
}
