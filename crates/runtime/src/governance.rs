//! Ports for knowledge about tools and callers beyond MCP, used by the governed dialect and for errors.

use crate::gateway::Gateway;
use crate::session::Session;
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::dialect::{DialectPorts, PermissionSource};
use signalbox_engine::front::Mode;
use signalbox_engine::tool_label::{LabelSource, TimeoutSource};
use std::sync::Arc;

/// Sources of governance data.
pub struct Governance {
    pub labels: Arc<dyn LabelSource>,
    pub permissions: Arc<dyn PermissionSource>,
    /// Timeouts of tool calls.
    pub timeouts: Arc<dyn TimeoutSource>,
}

impl Gateway {
    /// True if the governed dialect is served.
    #[must_use]
    pub fn speaks_dialect(&self) -> bool {
        self.governance.is_some()
    }
}

impl Session {
    /// Marks the client as a speaker of the governed dialect, whatever its first message looks like.
    pub fn speak_dialect(&self) {
        self.with_machine(|machine| machine.speak_dialect());
    }

    /// Returns the ports of the dialect for this session, if it is enabled.
    pub(crate) fn dialect(&self, audit_run: AuditRun) -> Option<DialectPorts<'_>> {
        let governance = self.gateway.governance.as_ref()?;
        Some(DialectPorts {
            labels: &*governance.labels,
            permissions: &*governance.permissions,
            audit_run,
            session: Some(&*self.external).filter(|_| self.mode() == Mode::Pipe),
        })
    }
}
