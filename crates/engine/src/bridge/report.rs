//! Report for `status` on the features that the bridge carries for a backend, and those it cannot carry.

use signalbox_wire::{Era, Revision};

/// Bridged features of one backend.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct BridgeReport {
    /// Clients that need the bridge; empty if none do.
    pub clients: &'static str,
    /// Features that are carried over.
    pub carried: Vec<&'static str>,
    /// Features that are not, each with its reason.
    pub lost: Vec<&'static str>,
}

/// Properties of a backend that the report depends on.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct BackendReach {
    /// Revision agreed with the backend.
    pub revision: Revision,
    /// True if the backend speaks only the era of that revision.
    pub one_era: bool,
    /// True if questions come on the stream of the call they belong to. A pipe has no such streams.
    pub streams: bool,
    /// True if the backend creates tasks.
    pub tasks: bool,
}

/// Returns the report for such a backend.
#[must_use]
pub fn report(reached: BackendReach) -> BridgeReport {
    match reached.revision.era() {
        _ if !reached.one_era => BridgeReport::default(),
        Era::Legacy => for_new_clients(reached),
        Era::Modern => for_old_clients(reached),
    }
}

fn for_new_clients(reached: BackendReach) -> BridgeReport {
    let mut carried =
        vec!["sessions", "sampling and roots by parked calls", "subscriptions", "log levels", "cancellation"];
    let mut lost = vec![
        "questions outside a tool call, prompt or read: 2026-07-28 has no carrier for them",
        "state of one client's session: clients of the same principal and capabilities share a session",
    ];
    if reached.revision.elicitation() {
        carried.push("elicitation by parked calls");
    }
    if reached.tasks {
        carried.push("tasks");
    }
    if !reached.streams {
        lost.push("log messages while several calls share the pipe: they do not say whose they are");
    }
    BridgeReport { clients: "2026-07-28", carried, lost }
}

fn for_old_clients(reached: BackendReach) -> BridgeReport {
    let mut carried = vec![
        "initialize and sessions",
        "sampling, elicitation and roots in rounds",
        "subscriptions",
        "log levels",
        "cancellation",
        "resumption of streams",
    ];
    if reached.tasks {
        carried.push("tasks");
    }
    let lost = vec![
        "elicitation for clients before 2025-06-18, by URL before 2025-11-25: they do not know it",
        "choices of several values for clients of 2025-06-18: its forms cannot say them",
        "sampling with tools for clients before 2025-11-25: they do not know it",
        "results that are no object as structured content: they are text for old clients",
    ];
    BridgeReport { clients: "2024-11-05 to 2025-11-25", carried, lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_backend_of_one_era_needs_the_bridge() {
        let reached = BackendReach { revision: Revision::V2025_03_26, one_era: true, streams: false, tasks: false };
        let old = report(reached);
        assert_eq!(old.clients, "2026-07-28");
        assert!(!old.carried.iter().any(|what| what.contains("elicitation")), "2025-03-26 has none");
        assert!(old.lost.iter().any(|what| what.contains("share the pipe")));
        assert_eq!(report(BackendReach { one_era: false, ..reached }), BridgeReport::default());
        let new = report(BackendReach { revision: Revision::LATEST, ..reached });
        assert_eq!(new.clients, "2024-11-05 to 2025-11-25");
    }
}
