//! What the gateway knows of tools and callers besides MCP, for the governed dialect and for errors.

use crate::gateway::Gateway;
use crate::session::Session;
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::dialect::{DialectPorts, PermissionSource};
use signalbox_engine::front::Mode;
use signalbox_engine::tool_label::{LabelSource, TimeoutSource};
use std::sync::Arc;

/// Who knows it.
pub struct Governance {
    /// What tools are labelled with.
    pub labels: Arc<dyn LabelSource>,
    /// What callers are permitted to do.
    pub permissions: Arc<dyn PermissionSource>,
    /// How long calls of tools may take.
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
    /// The client speaks the governed dialect, whatever its first message looks like.
    pub fn speak_dialect(&self) {
        self.with_machine(|machine| machine.speak_dialect());
    }

    /// What the dialect of this session looks at, where it is served.
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
