//! The governed dialect: the tool protocol of clients that use `tools/invoke` instead of `initialize`.
//!
//! Its messages are translated at both ends of the front machine. Everything between sees plain MCP: the same catalog,
//! the same interceptors, the same limits, the same records.
//!
//! ```text
//! tools/list {category, trust_level} ──► request ──► tools/list ──► … ──► list of tools ──► listing ──► tools with their labels
//! tools/invoke {tool_id, …}          ──► request ──► tools/call ──► … ──► its result    ──► answer  ──► {status, data, …}
//! tools/validate {tool_id, …}        ──► validation: permissions, policies and constraints, without a call
//! tools/register {…}                 ──► registration: checked, and refused
//!                                                        … ──► a fault or an error      ──► error   ──► -32601 with its data
//! ```
//!
//! Invariants:
//!
//! - A client's claims about itself are not trusted: [`security_context`] compares them with the caller's identity and
//!   refuses false ones.
//! - Translations are pure functions of bytes. Parameters and data pass unchanged.
//! - A failure is a [`Fault`](crate::Fault) or an error of the tool; only [`error`] gives it the dialect's form.

pub mod answer;
pub mod error;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
pub mod listing;
pub mod registration;
pub mod request;
pub mod security_context;
pub mod validation;

use crate::audit_id::AuditRun;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::standing::TrustLevel;
use crate::tool_label::LabelSource;
use signalbox_wire::{Envelope, meta, method};
use validation::{AccessConstraint, ToolUse};

/// WebSocket subprotocol of the dialect.
pub const SUBPROTOCOL: &str = "signalbox.governed";
/// Method that calls a tool.
pub const INVOKE: &str = "tools/invoke";
/// Method that asks if a call of a tool would be allowed.
pub const VALIDATE: &str = "tools/validate";
/// Method that registers a tool.
pub const REGISTER: &str = "tools/register";
/// Version of the dialect, given to backends as the client's version.
pub const VERSION: &str = "1.0.0";

/// Returns true for a method that the dialect has and MCP does not.
pub(crate) fn is_own(name: &str) -> bool {
    matches!(name, INVOKE | VALIDATE | REGISTER)
}

/// Request of a client of the dialect, as far as its answer depends on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DialectRequest {
    /// List the tools that match a filter.
    List {
        /// Only tools of this category.
        category: Option<Box<str>>,
        /// Only tools of this trust level.
        trust: Option<TrustLevel>,
    },
    /// Call a tool with parameters.
    Invoke {
        /// Listed name of the tool.
        tool_id: Box<str>,
        /// Version that the tool must have.
        version: Option<Box<str>>,
    },
    /// Validate a call of a tool.
    Validate,
    /// Register a tool, which is not served yet.
    Register,
    /// A method that the dialect does not have.
    Other,
}

impl DialectRequest {
    /// Returns the `message` of an error for this request.
    #[must_use]
    pub fn failed(&self) -> &'static str {
        match self {
            Self::List { .. } => "Tool discovery failed",
            Self::Invoke { .. } => "Tool execution failed",
            Self::Validate => "Tool validation failed",
            Self::Register => "Tool registration failed",
            Self::Other => "Request failed",
        }
    }
}

/// Returns true if a message can only be of the dialect: by its method, or by members of its params that MCP does not
/// have. A message that names an MCP revision is MCP.
#[must_use]
pub fn is_spoken(message: &Envelope) -> bool {
    match message.method() {
        Some(INVOKE | VALIDATE | REGISTER) => message.param_meta(meta::PROTOCOL_VERSION).is_none(),
        Some(method::TOOLS_LIST) => {
            let filters = message.param("category").is_some() || message.param("trust_level").is_some();
            filters && message.param_meta(meta::PROTOCOL_VERSION).is_none()
        }
        _ => false,
    }
}

/// Source of the permissions of callers.
pub trait PermissionSource: Send + Sync {
    /// Returns true if the caller has this permission, such as `read:filesystem`.
    fn has(&self, caller: &Caller, permission: &str) -> bool;

    /// Validates the use of a tool: the permissions of the caller, then policies, then constraints (G-13). Returns the
    /// constraints under which a call is allowed.
    ///
    /// # Errors
    /// Returns the fault with which a call would be refused.
    fn validate(&self, usage: &ToolUse<'_>) -> Result<Vec<AccessConstraint>, Fault>;
}

/// Permissions from the scopes of a credential. A credential without scopes has all permissions.
#[derive(Copy, Clone, Debug, Default)]
pub struct ScopePermissions;

impl PermissionSource for ScopePermissions {
    fn has(&self, caller: &Caller, permission: &str) -> bool {
        let scopes = caller.identity().standing.as_ref().and_then(|standing| standing.scopes.as_ref());
        scopes.is_none_or(|scopes| scopes.iter().any(|scope| **scope == *permission))
    }

    /// Scopes include no policies and impose no constraints.
    fn validate(&self, _: &ToolUse<'_>) -> Result<Vec<AccessConstraint>, Fault> {
        Ok(Vec::new())
    }
}

/// Ports that the translation of one session uses.
#[derive(Copy, Clone)]
pub struct DialectPorts<'a> {
    /// Source of the labels of tools.
    pub labels: &'a dyn LabelSource,
    /// Source of the permissions of callers.
    pub permissions: &'a dyn PermissionSource,
    /// Run of the process, for audit ids.
    pub audit_run: AuditRun,
    /// Id of the session; a request over HTTP has none.
    pub session: Option<&'a str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::{Identity, Principal, Proof};
    use crate::standing::Standing;
    use std::sync::Arc;

    /// Proves G-4, G-5 and G-6.
    #[test]
    fn the_dialect_is_told_by_its_methods_and_members() {
        let spoken = |method: &str, params: &str| {
            let text = format!(r#"{{"jsonrpc":"2.0","id":"1","method":"{method}","params":{params}}}"#);
            is_spoken(&Envelope::parse(text.into()).unwrap())
        };
        assert!(spoken("tools/invoke", "{}") && spoken("tools/register", "{}") && spoken("tools/validate", "{}"));
        assert!(spoken("tools/list", r#"{"category":"x"}"#) && spoken("tools/list", r#"{"trust_level":"verified"}"#));
        assert!(!spoken("tools/list", r#"{"cursor":"x"}"#) && !spoken("tools/call", r#"{"category":"x"}"#));
        let described = r#"{"category":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#;
        assert!(!spoken("tools/list", described) && !spoken("tools/invoke", described));
    }

    /// Proves G-17.
    #[test]
    fn scopes_are_permissions_where_there_are_any() {
        let caller = |scopes: Option<Vec<Box<str>>>| {
            let anonymous = Caller::of(Principal::named("ada"), Proof::ApiKey, "http");
            let standing = Some(Arc::new(Standing { scopes, ..Standing::default() }));
            Caller::new(Identity { standing, ..anonymous.identity().clone() })
        };
        let has = |caller: &Caller| ScopePermissions.has(caller, "read:filesystem");
        assert!(has(&Caller::anonymous("http")) && has(&caller(None)));
        assert!(has(&caller(Some(vec!["read:filesystem".into()]))) && !has(&caller(Some(vec!["read".into()]))));
    }
}
