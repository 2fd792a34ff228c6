//! Error of conversion, preparation and verification of messages.

use crate::canonical::EncodeError;
use crate::hop::HopError;
use crate::profile::UnknownProfile;
use crate::signature::BadSignature;
use crate::signing_key::KeyError;

/// Reason why a message cannot be converted, prepared for signing or verified.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The bytes are not a message of this package.
    #[error("not a protobuf message of signalbox.v1: {0}")]
    Decode(#[from] prost::DecodeError),
    /// A message or a part of it is too large.
    #[error("{what} has {bytes} bytes; {limit} are allowed")]
    TooLarge {
        /// Name of the part that is too large.
        what: &'static str,
        /// Size of that part, in bytes.
        bytes: usize,
        /// Maximum size of that part, in bytes.
        limit: usize,
    },
    /// A required field is missing.
    #[error("the field `{0}` is missing")]
    MissingField(&'static str),
    /// A value of a `google.protobuf.Struct` has no kind.
    #[error("a value of `{0}` is empty")]
    EmptyValue(&'static str),
    /// A number is not representable in a `google.protobuf.Struct`.
    #[error("the number {0} does not survive in a google.protobuf.Struct, whose numbers are doubles")]
    NumberLost(String),
    /// The JSON is not an object, as a structure requires.
    #[error("not a JSON object")]
    NotAnObject,
    /// A time outside of the years 1677 to 2262, or with nanoseconds of a second or more.
    #[error("the moment in `{0}` cannot be counted in nanoseconds")]
    TimeOutOfRange(&'static str),
    /// The message is signed for another domain.
    #[error("the message is for the domain {found:?}, not for `{expected}`")]
    WrongDomain {
        /// Domain that was expected.
        expected: &'static str,
        /// Domain of the message.
        found: String,
    },
    /// The canonical profile of the message is unknown.
    #[error(transparent)]
    UnknownProfile(#[from] UnknownProfile),
    /// A part of the message has no canonical form.
    #[error(transparent)]
    Canonical(#[from] EncodeError),
    /// A JSON message is not JSON-RPC.
    #[error("not a JSON-RPC message: {0}")]
    NotJsonRpc(String),
    /// The public key cannot be used.
    #[error("the key cannot be used: {0}")]
    InvalidKey(#[from] KeyError),
    /// The algorithm of the signature is not supported.
    #[error("signatures by {0:?} are not supported; Ed25519 is")]
    UnsupportedAlgorithm(String),
    /// The name was changed in transit, and no trusted gateway has signed the change.
    #[error("the name was changed on the way: {0}")]
    Renamed(#[from] HopError),
    /// The signature is malformed or wrong.
    #[error("{0}")]
    Signature(BadSignature),
}

impl From<BadSignature> for MessageError {
    fn from(error: BadSignature) -> Self {
        match error {
            BadSignature::UnsupportedAlgorithm(name) => Self::UnsupportedAlgorithm(name),
            other => Self::Signature(other),
        }
    }
}
