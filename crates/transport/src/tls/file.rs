//! Files that hold certificates and keys, and what can be wrong with them.

use super::inspect::{self, CertificateInfo, InspectError};
use rustls::pki_types::pem::{Error as PemError, PemObject as _};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Most that is read of a file. The bundle of a whole system is a quarter of it.
const MAX_FILE: u64 = 1024 * 1024;

/// A file that cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{} {problem}", path.display())]
pub struct FileError {
    /// Which file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: FileProblem,
}

/// What is wrong with a file. Each goes on after the file's name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileProblem {
    /// It does not exist.
    #[error("does not exist")]
    Missing,
    /// This user may not read it.
    #[error("may not be read by this user; change its owner or its permissions")]
    Forbidden,
    /// It cannot be read for another reason.
    #[error("cannot be read ({0})")]
    Unreadable(io::ErrorKind),
    /// It is a folder, a pipe or a device.
    #[error("is not a regular file")]
    NotAFile,
    /// It is larger than any honest one.
    #[error("is larger than {MAX_FILE} bytes")]
    TooLarge,
    /// There is no usable certificate in it.
    #[error(transparent)]
    Certificate(#[from] InspectError),
    /// A certificate of an authority cannot be used as one.
    #[error("holds a certificate that cannot be used to check others ({0})")]
    BadRoot(String),
    /// It is not PEM.
    #[error("is not PEM, which begins with `-----BEGIN PRIVATE KEY-----`")]
    KeyNotPem,
    /// There is no key in it.
    #[error("holds no private key (`-----BEGIN PRIVATE KEY-----`)")]
    NoKey,
    /// The key needs a passphrase.
    #[error("holds an encrypted private key; take the passphrase off with `openssl pkey -in OLD -out NEW`")]
    Encrypted,
    /// The key is of an unknown kind or too weak.
    #[error("holds a private key that cannot be used ({0}); use RSA of 2048 bits or more, ECDSA or Ed25519")]
    BadKey(String),
    /// The key is another's.
    #[error("is not the key of the certificate in {}", .0.display())]
    OtherKey(PathBuf),
    /// The key and the certificate do not go together for another reason.
    #[error("cannot be used with the certificate in {}: {}", .0.display(), .1)]
    Unfit(PathBuf, String),
}

impl FileProblem {
    pub(super) fn at(self, path: &Path) -> FileError {
        FileError { path: path.to_owned(), problem: self }
    }
}

/// The bytes of a file.
fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    let fault = |error: io::Error| {
        let problem = match error.kind() {
            io::ErrorKind::NotFound => FileProblem::Missing,
            io::ErrorKind::PermissionDenied => FileProblem::Forbidden,
            kind => FileProblem::Unreadable(kind),
        };
        problem.at(path)
    };
    // To open a pipe would wait for its other end.
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

/// The certificates in a file, at least one, in its order.
pub(super) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, FileError> {
    inspect::certificates(&read(path)?).map_err(|error| FileProblem::from(error).at(path))
}

/// What the certificates in a file say about themselves, in its order; at least one.
///
/// # Errors
/// Says why the file cannot be used.
pub fn examine(path: &Path) -> Result<Vec<CertificateInfo>, FileError> {
    let all = certificates(path)?;
    let told: Result<Vec<_>, InspectError> = all.iter().map(CertificateInfo::of).collect();
    told.map_err(|error| FileProblem::from(error).at(path))
}

/// The private key in a file.
pub(super) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, FileError> {
    let bytes = read(path)?;
    let problem = match PrivateKeyDer::from_pem_slice(&bytes) {
        Ok(key) => return Ok(key),
        Err(_) if memchr::memmem::find(&bytes, b"ENCRYPTED").is_some() => FileProblem::Encrypted,
        Err(PemError::NoItemsFound) if inspect::is_pem(&bytes) => FileProblem::NoKey,
        Err(_) => FileProblem::KeyNotPem,
    };
    Err(problem.at(path))
}

/// True where everybody on this machine can read a file. A group that may read keys is somebody's intention.
#[must_use]
pub fn is_exposed(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|found| found.permissions().mode() & 0o004 != 0)
}

/// What files looked like when they were read. Differs from a later one if any of the files was written or replaced in
/// between. Links are followed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Stamp(Vec<Option<Look>>);

/// What one file looked like.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Look {
    place: (u64, u64),
    length: u64,
    written: Option<SystemTime>,
}

impl Stamp {
    /// Looks at the files.
    pub(super) fn of<'a>(files: impl IntoIterator<Item = &'a Path>) -> Self {
        let look = |file: &Path| {
            let found = std::fs::metadata(file).ok()?;
            Some(Look { place: (found.dev(), found.ino()), length: found.len(), written: found.modified().ok() })
        };
        Self(files.into_iter().map(look).collect())
    }
}
