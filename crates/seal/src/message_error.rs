//! Why a message cannot be carried, prepared or checked.

use crate::canonical::EncodeError;
use crate::hop::HopError;
use crate::profile::UnknownProfile;
use crate::signature::BadSignature;
use crate::signing_key::KeyError;

/// Why a message cannot be carried, prepared for signing or checked.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The bytes are no message of this package.
    #[error("not a protobuf message of signalbox.v1: {0}")]
    Decode(#[from] prost::DecodeError),
    /// A message or a part of it is larger than allowed.
    #[error("{what} has {bytes} bytes; {limit} are allowed")]
    TooLarge {
        /// What is too large.
        what: &'static str,
        /// How large it is.
        bytes: usize,
        /// How large it may be.
        limit: usize,
    },
    /// A field is missing without which the message means nothing.
    #[error("the field `{0}` is missing")]
    MissingField(&'static str),
    /// A value of a `google.protobuf.Struct` says nothing.
    #[error("a value of `{0}` is empty")]
    EmptyValue(&'static str),
    /// A number that a `google.protobuf.Struct` cannot hold.
    #[error("the number {0} does not survive in a google.protobuf.Struct, whose numbers are doubles")]
    NumberLost(String),
    /// A structure is made of a JSON object, and this is none.
    #[error("not a JSON object")]
    NotAnObject,
    /// A moment outside of the years 1677 to 2262, or with more than a second of nanoseconds.
    #[error("the moment in `{0}` cannot be counted in nanoseconds")]
    TimeOutOfRange(&'static str),
    /// The message is signed for something else.
    #[error("the message is for the domain {found:?}, not for `{expected}`")]
    WrongDomain {
        /// What it should say.
        expected: &'static str,
        /// What it says.
        found: String,
    },
    /// The message names a canonical form that is not known.
    #[error(transparent)]
    UnknownProfile(#[from] UnknownProfile),
    /// A part of the message has no canonical form.
    #[error(transparent)]
    Canonical(#[from] EncodeError),
    /// A JSON message that is no JSON-RPC.
    #[error("not a JSON-RPC message: {0}")]
    NotJsonRpc(String),
    /// A public key that cannot be used.
    #[error("the key cannot be used: {0}")]
    InvalidKey(#[from] KeyError),
    /// The signature is by an algorithm that is not known here.
    #[error("signatures by {0:?} are not supported; Ed25519 is")]
    UnsupportedAlgorithm(String),
    /// The name was changed on the way, and no trusted gateway says so.
    #[error("the name was changed on the way: {0}")]
    Renamed(#[from] HopError),
    /// The signature cannot be one, or does not fit.
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
