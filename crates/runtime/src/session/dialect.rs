//! The governed dialect in sessions: who speaks it, and the ports that it is served with.

use super::Session;
use crate::gateway::Gateway;
use signalbox_engine::audit_id::AuditRun;
use signalbox_engine::dialect::DialectPorts;
use signalbox_engine::front::Mode;

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
