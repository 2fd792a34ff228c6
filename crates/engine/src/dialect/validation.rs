//! `tools/validate`: the decision if a call would be allowed, and under which constraints (G-13). No tool is called.

use super::error::write_optional;
use super::listing;
use crate::caller::Caller;
use crate::catalog::EntryRef;
use crate::fault::{ErrorDetail, Fault, without_places};
use crate::standing::TrustLevel;
use signalbox_wire::json;
use std::sync::Arc;

/// Use of a tool to validate.
#[derive(Copy, Clone)]
pub struct ToolUse<'a> {
    /// Caller that would make the call.
    pub caller: &'a Caller,
    /// The tool, as its backend lists it.
    pub entry: EntryRef<'a>,
    /// The caller's name for the tool.
    pub tool_id: &'a str,
    /// Parameters of the call, a JSON object.
    pub parameters: &'a [u8],
    /// Time of the request, in milliseconds since 1970.
    pub unix_ms: u64,
}

impl ToolUse<'_> {
    /// Returns the fault for a tool that the caller may not know of.
    #[must_use]
    pub fn unknown(&self) -> Fault {
        Fault::unknown(self.entry.kind, self.tool_id)
    }
}

/// Kind of a constraint.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum ConstraintKind {
    /// Paths in the parameters must lie within folders.
    Folders,
    /// Parts of the result are removed.
    Redaction,
    /// A person must agree first.
    Consent,
}

impl ConstraintKind {
    fn word(self) -> &'static str {
        match self {
            Self::Folders => "folders",
            Self::Redaction => "redaction",
            Self::Consent => "consent",
        }
    }

    fn sentence(self) -> &'static str {
        match self {
            Self::Folders => "paths must lie within certain folders",
            Self::Redaction => "parts are taken out of the result",
            Self::Consent => "a person must agree first",
        }
    }
}

/// Constraint on a call that is allowed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AccessConstraint {
    /// Kind of the constraint.
    pub kind: ConstraintKind,
    /// Constraint, role or policy that imposes it.
    pub policy: Option<Arc<str>>,
    /// The constraint as a sentence.
    pub detail: String,
}

impl AccessConstraint {
    /// Returns the constraint in the detail that this trust level may see: no more than a fault would show (G-24).
    #[must_use]
    pub fn told(self, detail: ErrorDetail, trust: TrustLevel) -> Self {
        match (detail, trust) {
            (ErrorDetail::Full, _) | (_, TrustLevel::System) => self,
            (ErrorDetail::ByTrust, TrustLevel::Verified) => {
                Self { detail: without_places(&self.detail).into_owned(), ..self }
            }
            (ErrorDetail::ByTrust, TrustLevel::Community | TrustLevel::Untrusted) => {
                Self { policy: None, detail: self.kind.sentence().to_owned(), ..self }
            }
        }
    }
}

/// Members of the result's `audit_context`.
#[derive(Copy, Clone, Debug)]
pub struct AuditContext<'a> {
    /// Id of the request in the audit log.
    pub audit_id: &'a str,
    /// Principal of the caller.
    pub user: &'a str,
    /// Id of the session; a request over HTTP has none.
    pub session: Option<&'a str>,
    /// Permissions in the label of the tool.
    pub permissions: &'a [Box<str>],
}

/// Builds the result for a call that would be allowed.
#[must_use]
pub fn granted(tool_id: &str, constraints: &[AccessConstraint], audit: &AuditContext<'_>) -> Vec<u8> {
    let mut out = br#"{"tool_id":"#.to_vec();
    json::write_quoted(&mut out, tool_id);
    out.extend_from_slice(br#","granted":true,"constraints":["#);
    for (at, one) in constraints.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(br#"{"type":"#);
        json::write_quoted(&mut out, one.kind.word());
        out.extend_from_slice(br#","policy":"#);
        write_optional(&mut out, one.policy.as_deref());
        out.extend_from_slice(br#","detail":"#);
        json::write_quoted(&mut out, &one.detail);
        out.push(b'}');
    }
    out.extend_from_slice(br#"],"audit_context":{"audit_id":"#);
    json::write_quoted(&mut out, audit.audit_id);
    out.extend_from_slice(br#","user_id":"#);
    json::write_quoted(&mut out, audit.user);
    out.extend_from_slice(br#","session_id":"#);
    write_optional(&mut out, audit.session);
    out.extend_from_slice(br#","permissions":"#);
    out.extend_from_slice(&listing::texts(audit.permissions));
    out.extend_from_slice(b"}}");
    out
}
