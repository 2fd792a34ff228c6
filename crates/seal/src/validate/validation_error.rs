//! Why a request may not be acted on.

use crate::hop::HopError;
use crate::key_set::Untrusted;
use crate::message_error::MessageError;
use crate::profile::Profile;
use crate::time_window::WrongTime;

/// Why a request may not be acted on, by the stage in which that was found.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ValidationError {
    /// The request is not whole, or its time is wrong.
    #[error("syntax: {0}")]
    Syntax(#[from] SyntaxError),
    /// The request asks for what does not go together.
    #[error("semantics: {0}")]
    Semantics(#[from] SemanticsError),
    /// The request does not prove who asks.
    #[error("security: {0}")]
    Security(#[from] SecurityError),
}

impl ValidationError {
    /// A short word for it, for metrics and error data.
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
            Self::Untrusted(Untrusted::Unknown(_)) => "unknown_key",
            Self::Untrusted(Untrusted::Revoked(_)) => "revoked_key",
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

/// A request that is not whole, or whose time is wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SyntaxError {
    /// A field is missing or empty.
    #[error("the field `{0}` is missing")]
    Missing(&'static str),
    /// It is too old, from the future, or expired.
    #[error("the time of the request is wrong: {0}")]
    Time(#[from] WrongTime),
    /// The purpose has ended.
    #[error("the purpose has expired")]
    PurposeExpired,
    /// A field cannot be read.
    #[error(transparent)]
    Field(#[from] MessageError),
}

/// A request that asks for what does not go together.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SemanticsError {
    /// The kind of purpose is not said, or unknown.
    #[error("the purpose has no category")]
    NoCategory,
    /// The action is not said, or unknown.
    #[error("permission {0} names no action")]
    NoAction(usize),
    /// The kind of purpose does not allow the action.
    #[error("permission {at}: a purpose of the category {category} does not allow {action}")]
    ActionNotAllowed {
        /// Which permission, counted from 1.
        at: usize,
        /// The kind of purpose.
        category: &'static str,
        /// The action.
        action: &'static str,
    },
    /// The purpose does not involve the resource.
    #[error("permission {at}: the purpose does not involve {resource:?}")]
    ResourceNotInvolved {
        /// Which permission, counted from 1.
        at: usize,
        /// The resource.
        resource: String,
    },
    /// The permission would be used too often.
    #[error("permission {at}: {found} times per hour are more than {most}")]
    TooFrequent {
        /// Which permission, counted from 1.
        at: usize,
        /// How often it would be used.
        found: u32,
        /// How often it may be.
        most: u32,
    },
    /// The scope is unknown.
    #[error("permission {at}: {found:?} is no scope; `personal`, `aggregated` and `anonymized` are")]
    UnknownScope {
        /// Which permission, counted from 1.
        at: usize,
        /// What it says.
        found: String,
    },
}

/// A request that does not prove who asks.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum SecurityError {
    /// There is no signature.
    #[error("the request is not signed")]
    Unsigned,
    /// The key is unknown, revoked, out of its time, or trusted for other things.
    #[error(transparent)]
    Untrusted(#[from] Untrusted),
    /// The request is signed in a canonical form that the validator does not accept.
    #[error("signatures over `{0}` are not accepted")]
    ProfileNotAccepted(Profile),
    /// The request names another public key than the one that signed it.
    #[error("the identity in the request has another key than the signature")]
    OtherIdentity,
    /// The request was changed after it was signed.
    #[error("the request was changed after it was signed, or signed with another key")]
    Tampered,
    /// The name was changed on the way, and no trusted gateway says so.
    #[error("the name was changed on the way: {0}")]
    Renamed(#[from] HopError),
    /// The same request came before.
    #[error("the request was seen before")]
    Replayed,
    /// There are so many recent requests of the key that a replay could not be noticed.
    #[error("too many recent requests of this key are remembered")]
    TooManyNonces,
    /// What is signed cannot be computed, or the signature cannot be one.
    #[error(transparent)]
    Message(#[from] MessageError),
}
