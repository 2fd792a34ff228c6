//! Which refusals are violations of security (G-22, G-27), and how severe they are.

use crate::event::RiskLevel;
use signalbox_engine::{Absence, Unreached};

/// A violation.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Its name.
    pub kind: &'static str,
    /// How severe it is: high, or critical.
    pub severity: RiskLevel,
}

/// Refusals of what somebody has forged, or repeats: no honest client sends that.
const FORGED: [&str; 7] =
    ["tampered", "replayed", "wrong_domain", "revoked_key", "other_request", "renamed", "anchor_conflict"];
/// Refusals of signatures that may be a mistake.
const UNSIGNED: [&str; 12] = [
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
    "anchor_owner",
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

/// Reason of a refusal that the caller was told of as an unknown name.
pub const HIDDEN: &str = "hidden";

/// Reason of a refusal of an entry or a caller that is switched off, where the caller was told of an unknown name.
pub const KILLED: &str = "killed";

/// The reason that the caller was not told, if it asked for an entry that it must not know of.
#[must_use]
pub fn reason_of_absence(unreached: Option<&Unreached>) -> Option<&'static str> {
    match unreached?.absence {
        Absence::Hidden => Some(HIDDEN),
        Absence::SwitchedOff => Some(KILLED),
        Absence::NotSought | Absence::Unknown | Absence::UnknownToLimited => None,
    }
}

/// True if a switch comes before the permissions that hide the entry.
#[must_use]
pub fn is_switched_off(unreached: Option<&Unreached>) -> bool {
    unreached.is_some_and(|unreached| unreached.absence == Absence::SwitchedOff)
}

/// The violation behind a request that has no route: a hidden entry, or a guess by a caller who may not use everything. An
/// unknown name is a plain mistake where nothing is withheld.
#[must_use]
pub fn of_absence(unreached: Option<&Unreached>) -> Option<Violation> {
    match unreached?.absence {
        Absence::Hidden | Absence::UnknownToLimited => {
            Some(Violation { kind: "permission_denied", severity: RiskLevel::High })
        }
        Absence::SwitchedOff => of(KILLED),
        Absence::NotSought | Absence::Unknown => None,
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
            | "missing_fields"
            | "wrong_tool_version"
            | "not_served"
            | "not_bridged"
            | "request_without_id"
            | "unknown_tool"
            | "unknown_prompt"
            | "resource_not_found"
            | "not_initialized"
            | "duplicate_id"
            | "header_mismatch"
            | "unsupported_version"
            | "missing_capability"
            | "backend_garbage"
            | "session_closed"
    )
}
