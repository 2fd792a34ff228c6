//! Errors of `signalbox seal`.

use signalbox_assembly::seal_folder::SealFolderError;
use signalbox_seal::canonical::EncodeError;
use signalbox_seal::keys::files::KeyStorageError;
use signalbox_seal::keys::{KeyFileError, PublicKeyError};
use signalbox_seal::signed_json::SignError;
use signalbox_seal::{KeyConflict, KeyError, RotateError, TrustError};

/// Error of a command about keys or signatures.
#[derive(Debug, thiserror::Error)]
pub enum SealFailure {
    /// The keys of the data folder cannot be used.
    #[error(transparent)]
    Folder(#[from] SealFolderError),
    /// A key file cannot be read or written.
    #[error(transparent)]
    File(#[from] KeyStorageError),
    /// The content is not a private key.
    #[error(transparent)]
    Private(#[from] KeyFileError),
    /// The content is not a public key.
    #[error("{what}: {why}")]
    Public {
        /// File or text that was given.
        what: String,
        /// Reason that it is not a key.
        why: PublicKeyError,
    },
    /// A key cannot be used.
    #[error(transparent)]
    Key(#[from] KeyError),
    /// The key exists already.
    #[error(transparent)]
    Conflict(#[from] KeyConflict),
    /// The key is not in the set of trusted keys.
    #[error(transparent)]
    Unknown(#[from] TrustError),
    /// A key cannot be rotated.
    #[error(transparent)]
    Rotate(#[from] RotateError),
    /// The data folder has no private half of the key.
    #[error("the private half of the key {0:?} is not in the data folder")]
    NoPrivate(String),
    /// A private key would be printed on standard output.
    #[error("a private key is written to a file only; name one with -o FILE")]
    NotPrinted,
    /// Signatures of this domain cannot be made from files.
    #[error("signatures for `{0}` are made by gateways, not from files")]
    Domain(&'static str),
    /// A message cannot be signed.
    #[error(transparent)]
    Sign(#[from] SignError),
    /// A file has no canonical form.
    #[error("the file cannot be signed: {0}")]
    Encode(#[from] EncodeError),
    /// Input from standard input has no default path for its signature.
    #[error("name the file of the signature: -o FILE to sign, --signature FILE to verify")]
    NoSignatureFile,
    /// The system has no random numbers.
    #[error("the system gives no randomness: {0}")]
    Random(getrandom::Error),
}
