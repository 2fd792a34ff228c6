//! Which refusals are violations of security (G-22, G-27), and how severe they are.

use crate::event::RiskLevel;

/// A violation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Its name.
    pub kind: &'static str,
    /// How severe it is: high, or critical.
    pub severity: RiskLevel,
}

/// Refusals of what somebody has forged, or repeats: no honest client sends that.
const FORGED: [&str; 6] = ["tampered", "replayed", "wrong_domain", "revoked_key", "other_request", "renamed"];
/// Refusals of signatures that may be a mistake.
const UNSIGNED: [&str; 11] = [
    "signature_missing",
    "signature_malformed",
    "unsupported_algorithm",
    "unsupported_profile",
    "key_not_trusted",
    "unknown_key",
    "expired",
    "from_the_future",
    "no_canonical_form",
    "too_many_nonces",
    "other_principal",
];

/// The violation behind a refusal with this reason; `None` if it is none.
#[must_use]
pub fn of(reason: &str) -> Option<Violation> {
    let high = |kind| Some(Violation { kind, severity: RiskLevel::High });
    match reason {
        "unauthenticated" | "revoked" => high("authentication_failed"),
        "insufficient_scope" | "denied" => high("permission_denied"),
        "rate_limited" => high("rate_limit_exceeded"),
        "refused" | "hold_expired" | "killed" | "quarantined" => high("policy_violation"),
        "invalid_security_context" => high("invalid_security_context"),
        forged if FORGED.contains(&forged) => {
            Some(Violation { kind: "invalid_security_context", severity: RiskLevel::Critical })
        }
        unsigned if UNSIGNED.contains(&unsigned) => high("invalid_security_context"),
        _ => None,
    }
}

/// True if a fault with this reason says that the message itself was none that can be served.
#[must_use]
pub fn is_protocol_error(reason: &str) -> bool {
    matches!(
        reason,
        "parse_error"
            | "parse"
            | "invalid_request"
            | "method_not_found"
            | "invalid_params"
            | "not_initialized"
            | "duplicate_id"
            | "header_mismatch"
            | "unsupported_version"
            | "missing_capability"
            | "backend_garbage"
            | "session_closed"
    )
}
