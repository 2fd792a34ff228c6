//! The five categories of faults (G-20), and each kind in the words of the governed dialect.

use super::{Fault, FaultKind};
use signalbox_wire::codes;

/// Category of a fault (G-20).
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum FaultCategory {
    /// The message is not acceptable.
    Protocol,
    /// The caller may not do this, or not now.
    Security,
    /// The tool or its backend failed.
    Tool,
    /// The parameters are wrong.
    Validation,
    /// The gateway failed or has no room.
    System,
}

impl FaultCategory {
    /// All categories, in declaration order.
    pub const ALL: [Self; 5] = [Self::Protocol, Self::Security, Self::Tool, Self::Validation, Self::System];

    /// Returns the `error_type` of the dialect.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Protocol => "protocol_error",
            Self::Security => "security_error",
            Self::Tool => "tool_error",
            Self::Validation => "validation_error",
            Self::System => "system_error",
        }
    }

    /// Returns the category that an `error_type` names.
    #[must_use]
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|category| category.word() == word)
    }

    /// Returns the sentence shown to an untrusted caller instead of the fault's message.
    #[must_use]
    pub fn sentence(self) -> &'static str {
        match self {
            Self::Protocol => "The message is not accepted",
            Self::Security => "The request is not permitted",
            Self::Tool => "The tool failed",
            Self::Validation => "The parameters are not valid",
            Self::System => "The gateway cannot serve the request now",
        }
    }
}

impl FaultKind {
    /// Returns the category of the fault.
    #[must_use]
    pub fn category(self) -> FaultCategory {
        use FaultKind as K;
        match self {
            K::Parse
            | K::InvalidRequest
            | K::MethodNotFound
            | K::MissingFields
            | K::NotInitialized
            | K::SessionClosed
            | K::DuplicateId
            | K::HeaderMismatch
            | K::UnsupportedVersion
            | K::MissingCapability
            | K::NotBridged => FaultCategory::Protocol,
            K::InvalidSecurityContext
            | K::RateLimited
            | K::SignInNeeded
            | K::UrlElicitationRequired
            | K::Refused
            | K::Unauthenticated
            | K::InsufficientScope
            | K::Denied
            | K::Killed
            | K::Quarantined
            | K::Signature(_)
            | K::HoldExpired => FaultCategory::Security,
            K::InvalidParams | K::InvalidArguments | K::WrongToolVersion => FaultCategory::Validation,
            K::UnknownTool
            | K::UnknownPrompt
            | K::ResourceNotFound
            | K::BackendDied
            | K::BackendDown
            | K::BreakerOpen
            | K::EraRefused
            | K::BackendGarbage
            | K::BackendRefused
            | K::TimedOut => FaultCategory::Tool,
            K::Overloaded | K::Draining | K::NotRecorded | K::Internal | K::NotServed => FaultCategory::System,
        }
    }

    /// Returns the violated rule as a word, for security faults (G-9).
    #[must_use]
    pub fn violation(self) -> Option<&'static str> {
        use FaultKind as K;
        match self {
            K::Unauthenticated | K::SignInNeeded | K::UrlElicitationRequired | K::Signature(_) => {
                Some("authentication_failed")
            }
            K::InsufficientScope | K::Denied => Some("unauthorized_access"),
            K::InvalidSecurityContext => Some("invalid_security_context"),
            K::RateLimited => Some("rate_limit_exceeded"),
            _ if self.category() == FaultCategory::Security => Some("policy_violation"),
            _ => None,
        }
    }

    /// Returns the problem and a suggestion for the caller, in words that reveal nothing internal.
    #[must_use]
    pub fn advice(self) -> (&'static str, &'static str) {
        use FaultKind as K;
        match self {
            K::Parse | K::InvalidRequest => ("The message is not a request", "Send one JSON-RPC 2.0 request"),
            K::MethodNotFound => ("The method is not served", "Use a method that is served"),
            K::InvalidParams => ("The parameters do not fit the method", "Correct the parameters and ask again"),
            K::InvalidArguments => ("The arguments do not fit the tool", "Correct the arguments and ask again"),
            K::MissingFields => ("Required members are missing", "Add the members that are named and ask again"),
            K::InvalidSecurityContext => (
                "The security context is not that of the caller",
                "Leave `security_context` out, or name only what is the caller's own",
            ),
            K::WrongToolVersion => ("The tool has another version", "Ask for the tool's version, or for none"),
            K::NotServed => ("This is not served in this version", "Have the operator configure the tool"),
            K::UnknownTool | K::UnknownPrompt | K::ResourceNotFound => {
                ("There is nothing of this name", "Ask for a name that the list has")
            }
            K::NotInitialized | K::SessionClosed => ("There is no session", "Open a session first"),
            K::DuplicateId => ("The id is in use", "Give each request an id of its own"),
            K::HeaderMismatch => ("Headers and body do not agree", "Send headers that say what the body says"),
            K::UnsupportedVersion => ("The protocol version is not served", "Use a version that is served"),
            K::MissingCapability | K::NotBridged => {
                ("Client and tool do not share this feature", "Use a client that has the feature")
            }
            K::BackendDied | K::BackendGarbage | K::BackendRefused => {
                ("The tool's server failed during the call", "Look whether the call had an effect before repeating it")
            }
            K::BackendDown | K::BreakerOpen | K::EraRefused => ("The tool's server is not there", "Try again later"),
            K::TimedOut => ("The tool did not answer in time", "Ask for less at once, or try again later"),
            K::Overloaded | K::Draining => ("The gateway has no room for the request now", "Try again later"),
            K::RateLimited => ("A limit of requests is used up", "Wait as long as `retryAfter` says, in seconds"),
            K::SignInNeeded | K::UrlElicitationRequired => {
                ("The tool's server wants the caller to sign in", "Open the address and sign in")
            }
            K::Denied => ("The caller may not do this", "Ask the operator for permission"),
            K::Killed | K::Quarantined => ("It is switched off", "Use something else, or ask the operator"),
            K::Refused | K::HoldExpired => ("A policy refuses the request", "Ask the operator for permission"),
            K::Unauthenticated | K::Signature(_) => ("The caller is not proved", "Prove who calls and ask again"),
            K::InsufficientScope => ("The credential does not permit this", "Use a credential that has the scope"),
            K::NotRecorded | K::Internal => ("The gateway failed", "Tell the operator"),
        }
    }
}

impl Fault {
    /// Returns the `error_code` of the dialect: the words of G-21 and G-22 where they have one, else [`Fault::reason`].
    #[must_use]
    pub fn dialect_word(&self) -> &'static str {
        use FaultKind as K;
        let names = |member: &str| self.data.iter().any(|(name, _)| *name == member);
        match self.kind {
            K::Parse | K::InvalidRequest | K::DuplicateId => "invalid_message",
            K::MethodNotFound => "invalid_method",
            K::InvalidParams | K::InvalidArguments => "invalid_parameters",
            K::UnknownTool => "tool_not_found",
            K::Unauthenticated | K::SignInNeeded | K::UrlElicitationRequired => "authentication_failed",
            // A policy or constraint decided against a caller that lacks no permission.
            K::Denied if names("policy") && !names("permission") => "policy_violation",
            K::InsufficientScope | K::Denied => "permission_denied",
            K::RateLimited => "rate_limit_exceeded",
            K::Refused => "policy_violation",
            K::TimedOut => "execution_timeout",
            _ => self.reason(),
        }
    }

    /// Returns the dialect's code: -32601 for everything that could be read as a request.
    #[must_use]
    pub fn dialect_code(&self) -> i64 {
        match self.kind {
            FaultKind::Parse => codes::PARSE_ERROR,
            FaultKind::InvalidRequest => codes::INVALID_REQUEST,
            _ => codes::METHOD_NOT_FOUND,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A permission that is lacking is named so; what a policy or constraint denies violates a policy.
    /// Proves G-14 and G-22.
    #[test]
    fn denials_are_of_a_permission_or_of_a_policy() {
        let denied = || Fault::new(FaultKind::Denied, "");
        assert_eq!(denied().dialect_word(), "permission_denied");
        assert_eq!(denied().with_str("policy", "constraint:files/*").dialect_word(), "policy_violation");
        let lacking = denied().with_str("policy", "role:reader").with_str("permission", "tools.execute");
        assert_eq!(lacking.dialect_word(), "permission_denied");
    }

    /// Every named error is in its family, under its name.
    /// Proves G-20, G-21 and G-22.
    #[test]
    fn the_errors_of_the_dialect_are_in_their_families() {
        use FaultKind as K;
        for (kind, family, word) in [
            (K::InvalidRequest, "protocol_error", "invalid_message"),
            (K::UnsupportedVersion, "protocol_error", "unsupported_version"),
            (K::MissingFields, "protocol_error", "missing_fields"),
            (K::MethodNotFound, "protocol_error", "invalid_method"),
            (K::Unauthenticated, "security_error", "authentication_failed"),
            (K::InsufficientScope, "security_error", "permission_denied"),
            (K::RateLimited, "security_error", "rate_limit_exceeded"),
            (K::Refused, "security_error", "policy_violation"),
            (K::InvalidSecurityContext, "security_error", "invalid_security_context"),
            (K::UnknownTool, "tool_error", "tool_not_found"),
            (K::InvalidParams, "validation_error", "invalid_parameters"),
            (K::InvalidArguments, "validation_error", "invalid_parameters"),
            (K::Internal, "system_error", "internal"),
        ] {
            let fault = Fault::new(kind, "");
            assert_eq!((kind.category().word(), fault.dialect_word()), (family, word));
            assert_eq!(kind.violation().is_some(), family == "security_error", "{kind:?}");
            assert_eq!(FaultCategory::of(family), Some(kind.category()));
        }
    }
}
