//! Why keys and signatures could not be handled.

use signalbox_assembly::seal_folder::SealFolderError;
use signalbox_seal::canonical::EncodeError;
use signalbox_seal::keys::files::FileError;
use signalbox_seal::keys::{KeyFileError, PublicKeyError};
use signalbox_seal::signed_json::SignError;
use signalbox_seal::{KeyConflict, KeyError, RotateError, Untrusted};

/// Why keys and signatures could not be handled.
#[derive(Debug, thiserror::Error)]
pub enum SealFailure {
    /// The keys of the data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] SealFolderError),
    /// A key file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A text is no private key.
    #[error(transparent)]
    Private(#[from] KeyFileError),
    /// A text is no public key.
    #[error("{what}: {why}")]
    Public {
        /// The file or text.
        what: String,
        /// Why not.
        why: PublicKeyError,
    },
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// A key is there already.
    #[error(transparent)]
    Conflict(#[from] KeyConflict),
    /// A key is not known.
    #[error(transparent)]
    Unknown(#[from] Untrusted),
    /// A key cannot be rotated.
    #[error(transparent)]
    Rotate(#[from] RotateError),
    /// The private half of a key is not here.
    #[error("the private half of the key {0:?} is not in the data folder")]
    NoPrivate(String),
    /// A private key would be printed.
    #[error("a private key is written to a file only; name one with -o FILE")]
    NotPrinted,
    /// A signature of this domain is not made from files.
    #[error("signatures for `{0}` are made by gateways, not from files")]
    Domain(&'static str),
    /// A message cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// A file has no canonical form.
    #[error("the file cannot be signed: {0}")]
    Encode(#[from] EncodeError),
    /// The signature of what comes from standard input has no place.
    #[error("name the file of the signature: -o FILE to sign, --signature FILE to verify")]
    NoSignatureFile,
    /// The system gives no randomness.
    #[error("the system gives no randomness: {0}")]
    Random(getrandom::Error),
}
