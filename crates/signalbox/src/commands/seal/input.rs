//! Input of `seal sign` and `seal verify`: files and standard input, read within bounds.

use super::SealFailure;
use crate::failure::Failure;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use signalbox_seal::keys::read_verifying_key;
use signalbox_seal::{Domain, VerifyingKey};
use signalbox_wire::{Envelope, Kind, Limits};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum size of a file to sign or verify, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;
/// File argument that means standard input.
const STDIN: &str = "-";

/// Detached signature of a file, as JSON. The signature is hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FileSignature {
    /// Id of the key that signed.
    pub key_id: String,
    /// `Ed25519`, in upper or lower case.
    pub algorithm: String,
    /// Canonical form that was signed.
    pub profile: String,
    /// Domain of the signature.
    pub domain: String,
    /// Signature, in hexadecimal digits.
    pub signature: String,
}

/// Reads a file or standard input, up to [`LARGEST`] bytes.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error| Failure::File { path: path.to_owned(), error };
    let mut content = Vec::new();
    let source: Box<dyn Read> =
        if is_stdin(path) { Box::new(io::stdin()) } else { Box::new(File::open(path).map_err(failed)?) };
    source.take(LARGEST + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > LARGEST {
        return Err(failed(io::Error::other(format!("larger than {LARGEST} bytes"))));
    }
    Ok(content)
}

pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new(STDIN)
}

/// Returns the default domain of a file: that of a message for messages, otherwise that of a log entry.
pub(super) fn domain_of(content: &[u8]) -> Domain {
    let message = Envelope::read(Bytes::copy_from_slice(content), &Limits::default());
    match message.map(|message| message.kind()) {
        Ok(Kind::Request | Kind::Notification) => Domain::Request,
        Ok(Kind::Response | Kind::Error) => Domain::Response,
        Err(_) => Domain::Audit,
    }
}

/// Returns the path of a file's detached signature.
pub(super) fn signature_path(file: &Path, given: Option<&PathBuf>) -> Result<PathBuf, SealFailure> {
    match given {
        Some(path) => Ok(path.clone()),
        None if is_stdin(file) => Err(SealFailure::NoSignatureFile),
        None => {
            let mut name = file.as_os_str().to_owned();
            name.push(".sig");
            Ok(name.into())
        }
    }
}

/// Reads a public key, given as hexadecimal digits or as a file.
pub(super) fn public_key(given: &str) -> Result<VerifyingKey, Failure> {
    let bad = |why| SealFailure::Public { what: given.to_owned(), why };
    if let Ok(key) = VerifyingKey::from_hex(given) {
        return Ok(key);
    }
    let content = read(Path::new(given))?;
    Ok(read_verifying_key(&content).map_err(bad)?)
}
