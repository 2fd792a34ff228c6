//! Classification of rejections as security violations (G-22, G-27), with their severity.

use crate::event::RiskLevel;
use signalbox_engine::{Absence, RefusedSubject};

/// Security violation, as recorded and alerted.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Violation {
    /// Name of the violation in records.
    pub kind: &'static str,
    /// Severity: high or critical.
    pub severity: RiskLevel,
}

/// Rejections of forged or replayed messages. An honest client sends none.
const FORGED: [&str; 7] =
    ["tampered", "replayed", "wrong_domain", "revoked_key", "other_request", "renamed", "anchor_conflict"];
/// Rejections of signatures that may be due to a mistake.
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

/// Returns the violation behind a rejection with this reason; `None` if it is not one.
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

/// Reason of a rejection that the caller saw as an unknown name.
pub const HIDDEN: &str = "hidden";

/// Reason for rejecting an entry or a caller that is switched off. The caller saw an unknown name.
pub const KILLED: &str = "killed";

/// Returns the reason withheld from the caller, if it asked for an entry that is hidden from it.
#[must_use]
pub fn reason_of_absence(unreached: Option<&RefusedSubject>) -> Option<&'static str> {
    match unreached?.absence {
        Absence::Hidden => Some(HIDDEN),
        Absence::SwitchedOff => Some(KILLED),
        Absence::NotSought | Absence::Unknown | Absence::UnknownToLimited => None,
    }
}

/// Returns true if a switch precedes the permissions that hide the entry.
#[must_use]
pub fn is_switched_off(unreached: Option<&RefusedSubject>) -> bool {
    unreached.is_some_and(|unreached| unreached.absence == Absence::SwitchedOff)
}

/// Returns the violation behind a request without a route: a hidden entry, or a guess by a caller with limited
/// permissions. An unknown name is a plain mistake if nothing is hidden from the caller.
#[must_use]
pub fn of_absence(unreached: Option<&RefusedSubject>) -> Option<Violation> {
    match unreached?.absence {
        Absence::Hidden | Absence::UnknownToLimited => {
            Some(Violation { kind: "permission_denied", severity: RiskLevel::High })
        }
        Absence::SwitchedOff => of(KILLED),
        Absence::NotSought | Absence::Unknown => None,
    }
}

/// Returns true if a fault with this reason is due to a malformed message.
#[must_use]
pub fn is_protocol_error(reason: &str) -> bool {
    matches!(
        reason,
        "parse_error"
            | "parse"
            | "invalid_request"
            | "method_not_found"
            | "invalid_params"
            | "invalid_arguments"
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
