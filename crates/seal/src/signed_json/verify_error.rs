//! Error of verification of a JSON message.

use crate::canonical::EncodeError;
use crate::hop::HopError;
use crate::key_set::TrustError;
use crate::profile::Profile;
use crate::time_window::WrongTime;

/// Reason why the signature of a JSON message is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VerifyError {
    /// The message carries no signature.
    #[error("the message carries no signature")]
    Missing,
    /// The signature is malformed.
    #[error("the signature cannot be read: {0}")]
    Malformed(String),
    /// The algorithm of the signature is not supported.
    #[error("signatures by {0:?} are not supported; Ed25519 is")]
    UnsupportedAlgorithm(String),
    /// The canonical profile of the signature is unknown.
    #[error("no canonical profile is called {0:?}")]
    UnsupportedProfile(String),
    /// The verifier does not accept the canonical profile of the signature.
    #[error("signatures over `{0}` are not accepted")]
    ProfileNotAccepted(Profile),
    /// The signature was made for another domain.
    #[error("the signature is for the domain {found:?}, not for `{expected}`")]
    WrongDomain {
        /// Domain that was expected.
        expected: &'static str,
        /// Domain of the signature.
        found: String,
    },
    /// The key is not within its validity, or has another role.
    #[error(transparent)]
    Untrusted(TrustError),
    /// The key was revoked.
    #[error("the key {0:?} was revoked")]
    RevokedKey(String),
    /// The key is unknown.
    #[error("the key {0:?} is not known")]
    UnknownKey(String),
    /// The message has expired, or was signed too long ago.
    #[error("the message is no longer valid: {0}")]
    Expired(WrongTime),
    /// The time of signing is in the future.
    #[error("the message says that it was signed in the future")]
    FromTheFuture,
    /// The message has no canonical form, so it cannot have been signed.
    #[error("the message cannot have been signed: {0}")]
    NoCanonicalForm(#[from] EncodeError),
    /// The message was changed after it was signed, or signed with another key.
    #[error("the message was changed after it was signed, or signed with another key")]
    Tampered,
    /// The name was changed in transit, and no trusted gateway has signed the change.
    #[error("the name was changed on the way: {0}")]
    Renamed(#[from] HopError),
    /// The message was seen before.
    #[error("the message was seen before")]
    Replayed,
    /// The key has so many recent messages that a replay could not be detected.
    #[error("too many recent messages of the key {0:?} are remembered; none is accepted until some expire")]
    TooManyNonces(String),
    /// The response answers another request.
    #[error("the response is signed as the answer to another request")]
    OtherRequest,
}

impl VerifyError {
    /// Returns a short code for metrics and error data.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Missing => "signature_missing",
            Self::Malformed(_) => "signature_malformed",
            Self::UnsupportedAlgorithm(_) => "unsupported_algorithm",
            Self::UnsupportedProfile(_) | Self::ProfileNotAccepted(_) => "unsupported_profile",
            Self::WrongDomain { .. } => "wrong_domain",
            Self::Untrusted(_) => "key_not_trusted",
            Self::RevokedKey(_) => "revoked_key",
            Self::UnknownKey(_) => "unknown_key",
            Self::Expired(_) => "expired",
            Self::FromTheFuture => "from_the_future",
            Self::NoCanonicalForm(_) => "no_canonical_form",
            Self::Tampered => "tampered",
            Self::Renamed(_) => "renamed",
            Self::Replayed => "replayed",
            Self::TooManyNonces(_) => "too_many_nonces",
            Self::OtherRequest => "other_request",
        }
    }
}

impl From<TrustError> for VerifyError {
    fn from(why: TrustError) -> Self {
        match why {
            TrustError::Revoked(id) => Self::RevokedKey(id),
            TrustError::Unknown(id) => Self::UnknownKey(id),
            other => Self::Untrusted(other),
        }
    }
}

impl From<WrongTime> for VerifyError {
    fn from(why: WrongTime) -> Self {
        match why {
            WrongTime::FromTheFuture => Self::FromTheFuture,
            other => Self::Expired(other),
        }
    }
}
