//! Authentication, authorization and limits: who a caller is, what it may see and use, and how often it may call.
//!
//! This crate only decides. It opens no file or socket and reads no clock: keys and key sets are passed as text, times
//! as arguments. `signalbox_assembly` reads the files and fetches the key sets.
//!
//! ```text
//! Authorization: Bearer sbx_…  ─► KeyAuthenticator    ─► ApiKeys      ─┐
//! Authorization: Bearer a.b.c  ─► TokenAuthenticator  ─► TokenIssuers ─┼─► Directory ─► Identity with its Standing
//! client certificate           ─► CertificateAuthenticator            ─┘
//! ```
//!
//! # Invariants
//!
//! - An invalid credential ends the authentication: no other method is tried after it.
//! - The algorithm of a signature is that of the key, never the one that the token claims.
//! - Secrets are compared in constant time and appear in no error and no `Debug` output.
//! - A verified token is cached until it expires. Revoking its key, its id or its subject reaches every copy.

pub mod api_keys;
pub mod call_budgets;
pub mod call_limits;
pub mod certificates;
pub mod constraints;
pub mod day_counts;
pub mod decision_point;
pub mod directory;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod jwks;
pub mod key_authenticator;
pub mod path_bounds;
pub mod permissions;
pub mod policy;
pub mod resource;
mod running_calls;
pub mod scope_check;
pub mod subject_pattern;
pub mod token;
pub mod token_authenticator;
pub mod tool_labels;
pub mod verified_tokens;

pub use api_keys::{ApiKey, ApiKeyFileError, ApiKeySecret, ApiKeys, NewKey};
pub use call_budgets::CallBudgets;
pub use call_limits::CallLimits;
pub use certificates::{CertificateAuthenticator, CertificateRule};
pub use constraints::ConstraintCheck;
pub use day_counts::DayCounts;
pub use decision_point::DecisionPoint;
pub use directory::{Directory, Grant};
pub use jwks::{JsonWebKeySet, JsonWebKeySetError};
pub use key_authenticator::{KeyAuthenticator, SharedKeys};
pub use permissions::{PermissionSet, Permissions};
pub use policy::Policies;
pub use resource::ProtectedResource;
pub use scope_check::ScopeCheck;
pub use subject_pattern::{SubjectPattern, SubjectPatternError};
pub use token::{IssuerRules, TokenError, TokenIssuer};
pub use token_authenticator::TokenAuthenticator;
pub use tool_labels::{ToolLabel, ToolLabels};

use signalbox_engine::authenticator::Arrival;
use signalbox_engine::{Fault, FaultKind};

/// Returns the token of an `Authorization: Bearer` header, if there is one.
pub(crate) fn bearer<'a>(arrival: &Arrival<'a>) -> Option<&'a [u8]> {
    let value = (arrival.header)("authorization")?;
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// Creates the fault for a credential that the caller presented and that is invalid.
pub(crate) fn invalid(text: &str) -> Fault {
    Fault::new(FaultKind::Unauthenticated, text).with_str("error", "invalid_token")
}
