//! Describes, for `status`, what the bridge does for a backend and what it cannot do.

use signalbox_wire::{Era, Revision};

/// What is bridged for one backend.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    /// Which clients need the bridge; empty if none do.
    pub clients: &'static str,
    /// What is carried over.
    pub carried: Vec<&'static str>,
    /// What is not, each with its reason.
    pub lost: Vec<&'static str>,
}

/// How a backend can be reached.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Reached {
    /// The revision agreed with it.
    pub revision: Revision,
    /// It speaks the era of that revision only.
    pub one_era: bool,
    /// Its questions come on the stream of the call they belong to, which a pipe does not have.
    pub streams: bool,
    /// It makes tasks.
    pub tasks: bool,
}

/// What is bridged for such a backend.
#[must_use]
pub fn report(reached: Reached) -> Report {
    match reached.revision.era() {
        _ if !reached.one_era => Report::default(),
        Era::Legacy => for_new_clients(reached),
        Era::Modern => for_old_clients(reached),
    }
}

fn for_new_clients(reached: Reached) -> Report {
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
    Report { clients: "2026-07-28", carried, lost }
}

fn for_old_clients(reached: Reached) -> Report {
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
    Report { clients: "2024-11-05 to 2025-11-25", carried, lost }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_backend_of_one_era_needs_the_bridge() {
        let reached = Reached { revision: Revision::V2025_03_26, one_era: true, streams: false, tasks: false };
        let old = report(reached);
        assert_eq!(old.clients, "2026-07-28");
        assert!(!old.carried.iter().any(|what| what.contains("elicitation")), "2025-03-26 has none");
        assert!(old.lost.iter().any(|what| what.contains("share the pipe")));
        assert_eq!(report(Reached { one_era: false, ..reached }), Report::default());
        let new = report(Reached { revision: Revision::LATEST, ..reached });
        assert_eq!(new.clients, "2024-11-05 to 2025-11-25");
    }
}
