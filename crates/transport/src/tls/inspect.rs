//! What a certificate says about itself.

use super::der;
use aws_lc_rs::digest::{SHA256, digest};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::{self, PemObject as _};
use signalbox_wire::hex::hex;
use signalbox_wire::timestamp;
use std::time::{Duration, SystemTime};

/// A certificate that ends within this time is worth a warning.
pub const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// What is known of a certificate.
#[derive(Clone, PartialEq, Eq, Debug, serde::Serialize)]
pub struct CertificateInfo {
    /// From when it is good, in seconds since 1970.
    pub not_before: i64,
    /// Until when it is good, in seconds since 1970.
    pub not_after: i64,
    /// The SHA-256 of it, in hexadecimal.
    pub fingerprint: String,
}

/// Whether a certificate is good at a time.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Validity {
    /// For long enough.
    Good,
    /// For so long only.
    Soon(Duration),
    /// No more.
    Expired,
    /// Not yet.
    Future,
}

/// Why nothing can be said of a certificate.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InspectError {
    /// The text is not PEM.
    #[error("is not PEM, which begins with `-----BEGIN CERTIFICATE-----`")]
    NotPem,
    /// There is something else in it.
    #[error("holds no certificate (`-----BEGIN CERTIFICATE-----`)")]
    NoCertificate,
    /// The certificate itself cannot be read.
    #[error("holds a certificate that cannot be read")]
    Malformed,
}

/// Tells about the first certificate of a PEM file, which is the one that is shown to the other side.
///
/// # Errors
/// Where there is none that can be read.
pub fn inspect(cert_pem: &[u8]) -> Result<CertificateInfo, InspectError> {
    match certificates(cert_pem)?.first() {
        Some(certificate) => CertificateInfo::of(certificate),
        None => Err(InspectError::NoCertificate),
    }
}

/// All certificates of a PEM file; at least one.
pub(super) fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, InspectError> {
    let found: Result<Vec<_>, pem::Error> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) if is_pem(pem) => Err(InspectError::NoCertificate),
        Ok(_) | Err(_) => Err(InspectError::NotPem),
    }
}

/// True where something looks like a section.
pub(super) fn is_pem(text: &[u8]) -> bool {
    memchr::memmem::find(text, b"-----BEGIN ").is_some()
}

impl CertificateInfo {
    pub(super) fn of(certificate: &CertificateDer<'_>) -> Result<Self, InspectError> {
        let (not_before, not_after) = der::validity(certificate).ok_or(InspectError::Malformed)?;
        Ok(Self { not_before, not_after, fingerprint: fingerprint(certificate) })
    }

    /// Whether it is good at this time.
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

    /// What its owner should know, if anything.
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

/// The SHA-256 of a certificate, in hexadecimal.
pub(super) fn fingerprint(certificate: &[u8]) -> String {
    hex(digest(&SHA256, certificate).as_ref())
}
