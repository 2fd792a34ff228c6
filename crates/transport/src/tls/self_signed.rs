//! A generated certificate, to try TLS on this machine.
//!
//! It is signed by an authority that is generated with it and whose key is discarded: a client that trusts the
//! authority trusts this one certificate only. Both are kept, so that they must be trusted only once.

use super::TlsFileError;
use super::inspect::{CertificateInfo, Validity, inspect};
use super::pair::PairFiles;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use signalbox_wire::timestamp;
use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Names that the certificate is valid for.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];
/// Validity of the certificate, in days.
const DAYS: i64 = 365;

/// Reason why the certificate could not be created.
#[derive(Debug, thiserror::Error)]
pub enum SelfSignedError {
    /// The directory or a file in it cannot be written.
    #[error("{} cannot be written: {error}", path.display())]
    Write {
        /// Path of the file or directory.
        path: PathBuf,
        /// Error of the system.
        error: io::Error,
    },
    /// The certificate cannot be generated.
    #[error("a certificate cannot be made: {0}")]
    Make(#[from] rcgen::Error),
    /// The certificate cannot be read back.
    #[error(transparent)]
    File(#[from] TlsFileError),
}

/// A generated certificate, with the authority that a client must trust.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GeneratedCertificate {
    /// Files of the certificate and its key.
    pub pair: PairFiles,
    /// Authority that a client must trust.
    pub ca_file: PathBuf,
    /// Details of the certificate.
    pub info: CertificateInfo,
}

impl GeneratedCertificate {
    /// Loads the certificate kept in this directory, or generates one if there is none with enough validity left.
    ///
    /// # Errors
    /// Returns an error if none can be generated or written.
    pub fn prepare(folder: &Path) -> Result<Self, SelfSignedError> {
        let now = SystemTime::now();
        if let Some(kept) = Self::load(folder).filter(|kept| kept.info.validity(now) == Validity::Good) {
            return Ok(kept);
        }
        make(folder, now)?;
        let (pair, ca_file) = places(folder);
        let info = pair.load()?.info;
        Ok(Self { pair, ca_file, info })
    }

    fn load(folder: &Path) -> Option<Self> {
        let (pair, ca_file) = places(folder);
        let loaded = pair.load().ok()?;
        inspect(&std::fs::read(&ca_file).ok()?).ok()?;
        Some(Self { pair, ca_file, info: loaded.info })
    }
}

fn places(folder: &Path) -> (PairFiles, PathBuf) {
    let pair = PairFiles { cert_file: folder.join("cert.pem"), key_file: folder.join("key.pem") };
    (pair, folder.join("ca.pem"))
}

fn make(folder: &Path, now: SystemTime) -> Result<(), SelfSignedError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| SelfSignedError::Write { path: folder.to_owned(), error })?;
    let mut authority = params(&[], "Signalbox on this machine", now)?;
    authority.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let authority_key = KeyPair::generate()?;
    let root = authority.self_signed(&authority_key)?;
    let issuer = Issuer::new(authority, authority_key);
    let mut server = params(&NAMES, "localhost", now)?;
    server.use_authority_key_identifier_extension = true;
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let key = KeyPair::generate()?;
    let certificate = server.signed_by(&key, &issuer)?;
    let (pair, ca_file) = places(folder);
    write(&pair.key_file, &key.serialize_pem())?;
    write(&pair.cert_file, &certificate.pem())?;
    write(&ca_file, &root.pem())
}

fn params(names: &[&str], name: &str, now: SystemTime) -> Result<CertificateParams, rcgen::Error> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    let today = now.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs() / 86_400).unwrap_or(0));
    // Allow for clocks that differ a little, also between a machine and its containers.
    let midnight = |days: i64| {
        let date = timestamp::date_of_day(days);
        rcgen::date_time_ymd(date.year, date.month, date.day)
    };
    (params.not_before, params.not_after) = (midnight(today - 1), midnight(today + DAYS));
    Ok(params)
}

/// Writes a file atomically, readable only for its owner.
fn write(path: &Path, text: &str) -> Result<(), SelfSignedError> {
    let fault = |error| SelfSignedError::Write { path: path.to_owned(), error };
    let unfinished = path.with_extension(format!("{}.part", std::process::id()));
    let _ = std::fs::remove_file(&unfinished);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unfinished).map_err(fault)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(fault)?;
    std::fs::rename(&unfinished, path).map_err(fault)
}
