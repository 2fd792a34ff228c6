//! Validates calls of the governed dialect in the order of G-13: permissions of the caller, policies, constraints.

use crate::answer_redaction::AnswerRedaction;
use signalbox_engine::dialect::PermissionSource;
use signalbox_engine::dialect::validation::{AccessConstraint, ToolUse};
use signalbox_engine::{Caller, Fault};
use signalbox_govern::{ConstraintCheck, Permissions, ScopeCheck};
use std::sync::Arc;

/// Checks that decide without a call. Limits, rules and consent are left out, because they have side effects.
pub(crate) struct PermissionValidator {
    pub permissions: Arc<Permissions>,
    pub scopes: Arc<ScopeCheck>,
    pub constraints: Arc<ConstraintCheck>,
    pub redaction: Arc<AnswerRedaction>,
}

impl PermissionSource for PermissionValidator {
    fn has(&self, caller: &Caller, permission: &str) -> bool {
        self.permissions.has(caller, permission)
    }

    fn validate(&self, usage: &ToolUse<'_>) -> Result<Vec<AccessConstraint>, Fault> {
        if let Some(fault) = self.scopes.refusal(usage.caller, &usage.entry) {
            return Err(fault);
        }
        let mut constraints = self.permissions.validate(usage)?;
        constraints.extend(self.constraints.on_call(usage.caller, &usage.entry, usage.parameters, usage.unix_ms)?);
        constraints.extend(self.redaction.on_call(usage.caller, &usage.entry));
        Ok(constraints)
    }
}
