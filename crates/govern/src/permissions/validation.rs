//! Permission queries of the governed dialect: single permissions, and everything that a call needs.

use super::call_check::denial_fault;
use super::{Access, Permissions};
use crate::policy::Circumstances;
use signalbox_engine::dialect::PermissionSource;
use signalbox_engine::dialect::validation::{AccessConstraint, ConstraintKind, ToolUse};
use signalbox_engine::{Caller, Fault};

impl PermissionSource for Permissions {
    fn has(&self, caller: &Caller, permission: &str) -> bool {
        let set = self.set.load();
        if self.grants.load().breaks_glass(caller.principal().as_str()) {
            return true;
        }
        set.has_permission(caller, permission)
    }

    /// Checks switches, roles and policies. A call that needs consent is allowed under that constraint.
    fn validate(&self, usage: &ToolUse<'_>) -> Result<Vec<AccessConstraint>, Fault> {
        if let Some(fault) = self.stops(usage.caller, &usage.entry) {
            return Err(fault);
        }
        let set = self.set.load();
        let address = usage.caller.identity().address.map(|address| address.ip());
        let around = Circumstances { unix_ms: usage.unix_ms, address };
        match self.access(usage.caller, &usage.entry, Some(usage.parameters), &around) {
            Access::Closed => Err(usage.unknown()),
            _ if set.shadow => Ok(Vec::new()),
            Access::Usable(_) => Ok(Vec::new()),
            Access::AfterAsking(asking) => Ok(vec![AccessConstraint {
                kind: ConstraintKind::Consent,
                policy: asking.grounds.policy,
                detail: asking.grounds.reason,
            }]),
            Access::Denied(denial) => Err(denial_fault(&denial)),
            Access::Hidden(denial) if set.reveal => Err(denial_fault(&denial)),
            Access::Hidden(_) => Err(usage.unknown()),
        }
    }
}
