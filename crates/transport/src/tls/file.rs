//! Reads files with certificates and keys, and reports what is wrong with them.

use super::inspect::{self, CertificateInfo, InspectError};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum size of a file. The bundle of a whole system is a quarter of it.
const MAX_FILE: u64 = 1024 * 1024;

/// A file that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub struct TlsFileError {
    /// Path of the file.
    pub path: PathBuf,
    /// Problem with the file.
    pub problem: FileProblem,
}

/// Problem with a file. Each message continues after the file's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileProblem {
    /// The file does not exist.
    #[error("does not exist")]
    Missing,
    /// This user may not read the file.
    #[error("may not be read by this user; change its owner or its permissions")]
    Forbidden,
    /// The file cannot be read for another reason.
    #[error("cannot be read ({0})")]
    Unreadable(io::ErrorKind),
    /// The path is a directory, a pipe or a device.
    #[error("is not a regular file")]
    NotAFile,
    /// The file exceeds the maximum size.
    #[error("is larger than {MAX_FILE} bytes")]
    TooLarge,
    /// The file contains no usable certificate.
    #[error(transparent)]
    Certificate(#[from] InspectError),
    /// A certificate is not usable as an authority.
    #[error("holds a certificate that cannot be used to check others ({0})")]
    BadRoot(String),
    /// The file is not PEM.
    #[error("is not PEM, which begins with `-----BEGIN PRIVATE KEY-----`")]
    KeyNotPem,
    /// The file contains no key.
    #[error("holds no private key (`-----BEGIN PRIVATE KEY-----`)")]
    NoKey,
    /// The key is encrypted with a passphrase.
    #[error("holds an encrypted private key; take the passphrase off with `openssl pkey -in OLD -out NEW`")]
    Encrypted,
    /// The key has an unknown type or is too weak.
    #[error("holds a private key that cannot be used ({0}); use RSA of 2048 bits or more, ECDSA or Ed25519")]
    BadKey(String),
    /// The key belongs to another certificate.
    #[error("is not the key of the certificate in {}", .0.display())]
    OtherKey(PathBuf),
    /// Key and certificate do not match for another reason.
    #[error("cannot be used with the certificate in {}: {}", .0.display(), .1)]
    Unfit(PathBuf, String),
}

impl FileProblem {
    pub(super) fn at(self, path: &Path) -> TlsFileError {
        TlsFileError { path: path.to_owned(), problem: self }
    }
}

/// Reads a whole file.
fn read(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let fault = |error: io::Error| {
        let problem = match error.kind() {
            io::ErrorKind::NotFound => FileProblem::Missing,
            io::ErrorKind::PermissionDenied => FileProblem::Forbidden,
            kind => FileProblem::Unreadable(kind),
        };
        problem.at(path)
    };
    // Opening a pipe would wait for its other end.
    if !std::fs::metadata(path).map_err(fault)?.is_file() {
        return Err(FileProblem::NotAFile.at(path));
    }
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes)).map_err(fault)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(FileProblem::TooLarge.at(path));
    }
    Ok(bytes)
}

/// Reads the certificates in a file in their order; at least one.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsFileError> {
    inspect::certificates(&read(path)?).map_err(|error| FileProblem::from(error).at(path))
}

/// Returns the details of the certificates in a file in their order; at least one.
///
/// # Errors
/// Returns the reason why the file cannot be used.
pub fn examine(path: &Path) -> Result<Vec<CertificateInfo>, TlsFileError> {
    let all = certificates(path)?;
    let told: Result<Vec<_>, InspectError> = all.iter().map(CertificateInfo::of).collect();
    told.map_err(|error| FileProblem::from(error).at(path))
}

/// Reads the private key in a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsFileError> {
    let bytes = read(path)?;
    let problem = match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => return Ok(key),
        Err(_) if memchr::memmem::find(&bytes, b"ENCRYPTED").is_some() => FileProblem::Encrypted,
        Err(PemError::NoItemsFound) if inspect::is_pem(&bytes) => FileProblem::NoKey,
        Err(_) => FileProblem::KeyNotPem,
    };
    Err(problem.at(path))
}

/// Returns `true` if every user of this machine can read the file. Group permissions are taken as intended.
#[must_use]
pub fn is_exposed(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

/// Metadata of files when they were read. It differs from a later one if any of the files was written or replaced in
/// between. Symbolic links are followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamp(Vec<Option<FileMetadata>>);

/// Metadata of one file.
#[derive(Clone, PartialEq, Eq, Debug)]
struct FileMetadata {
    place: (u64, u64),
    length: u64,
    written: Option<SystemTime>,
}

impl Stamp {
    /// Reads the metadata of the files.
    pub(super) fn of<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        let look = |file: &Path| {
            let found = std::fs::metadata(file).ok()?;
            Some(FileMetadata {
                place: (found.dev(), found.ino()),
                length: found.len(),
                written: found.modified().ok(),
            })
        };
        Self(files.into_iter().map(look).collect())
    }
}
