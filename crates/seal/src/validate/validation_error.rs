//! Errors of request validation.

use crate::hop::HopError;
use crate::key_set::TrustError;
use crate::message_error::MessageError;
use crate::profile::Profile;
use crate::time_window::WrongTime;

/// Reason why a request is rejected, by the stage that found it.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ValidationError {
    /// The request is incomplete, or its time is wrong.
    #[error("syntax: {0}")]
    Syntax(#[from] SyntaxError),
    /// The permissions of the request do not match its purpose.
    #[error("semantics: {0}")]
    Semantics(#[from] SemanticsError),
    /// The request does not prove the identity of its sender.
    #[error("security: {0}")]
    Security(#[from] SecurityError),
}

impl ValidationError {
    /// Returns a short code for metrics and error data.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Syntax(error) => error.reason(),
            Self::Semantics(_) => "purpose_not_allowed",
            Self::Security(error) => error.reason(),
        }
    }
}

impl SyntaxError {
    fn reason(&self) -> &'static str {
        match self {
            Self::Missing("signature") => "signature_missing",
            Self::Missing(_) => "field_missing",
            Self::Time(WrongTime::FromTheFuture) => "from_the_future",
            Self::Time(_) => "expired",
            Self::PurposeExpired => "purpose_expired",
            Self::Field(error) => message_reason(error),
        }
    }
}

impl SecurityError {
    fn reason(&self) -> &'static str {
        match self {
            Self::Unsigned => "signature_missing",
            Self::Untrusted(TrustError::Unknown(_)) => "unknown_key",
            Self::Untrusted(TrustError::Revoked(_)) => "revoked_key",
            Self::Untrusted(_) => "key_not_trusted",
            Self::ProfileNotAccepted(_) => "unsupported_profile",
            Self::OtherIdentity => "other_identity",
            Self::Tampered => "tampered",
            Self::Renamed(_) => "renamed",
            Self::Replayed => "replayed",
            Self::TooManyNonces => "too_many_nonces",
            Self::Message(error) => message_reason(error),
        }
    }
}

fn message_reason(error: &MessageError) -> &'static str {
    match error {
        MessageError::UnsupportedAlgorithm(_) => "unsupported_algorithm",
        MessageError::WrongDomain { .. } => "wrong_domain",
        MessageError::UnknownProfile(_) => "unsupported_profile",
        MessageError::Canonical(_) => "no_canonical_form",
        _ => "signature_malformed",
    }
}

/// A request that is incomplete, or whose time is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SyntaxError {
    /// A field is missing or empty.
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    /// The request is too old, from the future, or expired.
    #[error("the time of the request is wrong: {0}")]
    Time(#[from] WrongTime),
    /// The purpose of the request has expired.
    #[error("the purpose has expired")]
    PurposeExpired,
    /// A field is malformed.
    #[error(transparent)]
    Field(#[from] MessageError),
}

/// A request whose permissions do not match its purpose.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SemanticsError {
    /// The purpose category is missing or unknown.
    #[error("the purpose has no category")]
    NoCategory,
    /// The action is missing or unknown.
    #[error("permission {0} names no action")]
    NoAction(usize),
    /// The purpose category does not allow the action.
    #[error("permission {at}: a purpose of the category {category} does not allow {action}")]
    ActionNotAllowed {
        /// Index of the permission, from 1.
        at: usize,
        /// Category of the purpose.
        category: &'static str,
        /// Name of the action.
        action: &'static str,
    },
    /// The purpose does not involve the resource.
    #[error("permission {at}: the purpose does not involve {resource:?}")]
    ResourceNotInvolved {
        /// Index of the permission, from 1.
        at: usize,
        /// Identifier of the resource.
        resource: String,
    },
    /// The frequency of the permission exceeds the maximum.
    #[error("permission {at}: {found} times per hour are more than {most}")]
    TooFrequent {
        /// Index of the permission, from 1.
        at: usize,
        /// Requested uses per hour.
        found: u32,
        /// Maximum uses per hour.
        most: u32,
    },
    /// The scope is unknown.
    #[error("permission {at}: {found:?} is no scope; `personal`, `aggregated` and `anonymized` are")]
    UnknownScope {
        /// Index of the permission, from 1.
        at: usize,
        /// Scope that the permission requests.
        found: String,
    },
}

/// A request that does not prove the identity of its sender.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SecurityError {
    /// The request has no signature.
    #[error("the request is not signed")]
    Unsigned,
    /// The key is unknown, revoked, not within its validity, or has another role.
    #[error(transparent)]
    Untrusted(#[from] TrustError),
    /// The validator does not accept the canonical profile of the request.
    #[error("signatures over `{0}` are not accepted")]
    ProfileNotAccepted(Profile),
    /// The request names another public key than the one that signed it.
    #[error("the identity in the request has another key than the signature")]
    OtherIdentity,
    /// The request was changed after it was signed.
    #[error("the request was changed after it was signed, or signed with another key")]
    Tampered,
    /// The name was changed in transit, and no trusted gateway has signed the change.
    #[error("the name was changed on the way: {0}")]
    Renamed(#[from] HopError),
    /// The request was seen before.
    #[error("the request was seen before")]
    Replayed,
    /// The key has so many recent requests that a replay could not be detected.
    #[error("too many recent requests of this key are remembered")]
    TooManyNonces,
    /// The signed bytes cannot be computed, or the signature is malformed.
    #[error(transparent)]
    Message(#[from] MessageError),
}
