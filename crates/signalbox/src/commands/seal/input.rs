//! What is signed and checked: messages and other JSON, from files and standard input.

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

/// Most bytes of a file that is signed or checked.
const LARGEST: u64 = 64 * 1024 * 1024;
/// Standard input, in the place of a file.
const STDIN: &str = "-";

/// A signature that stands beside its file. Signatures are hexadecimal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct FileSignature {
    /// The id of the key.
    pub key_id: String,
    /// `Ed25519`, in whatever case.
    pub algorithm: String,
    /// The canonical form that is signed.
    pub profile: String,
    /// What the signature is for.
    pub domain: String,
    /// The signature.
    pub signature: String,
}

/// A file, or standard input, within bounds.
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

/// What a file can be signed for: messages as what they are, anything else as an entry of a log unless somebody says more.
pub(super) fn domain_of(content: &[u8]) -> Domain {
    let message = Envelope::read(Bytes::copy_from_slice(content), &Limits::default());
    match message.map(|message| message.kind()) {
        Ok(Kind::Request | Kind::Notification) => Domain::Request,
        Ok(Kind::Response | Kind::Error) => Domain::Response,
        Err(_) => Domain::Audit,
    }
}

/// Where the signature of a file stands.
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

/// A public key from its digits or from a file.
pub(super) fn public_key(given: &str) -> Result<VerifyingKey, Failure> {
    let bad = |why| SealFailure::Public { what: given.to_owned(), why };
    if let Ok(key) = VerifyingKey::from_hex(given) {
        return Ok(key);
    }
    let content = read(Path::new(given))?;
    Ok(read_verifying_key(&content).map_err(bad)?)
}
