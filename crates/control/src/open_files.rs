//! Limit of open files, and the number of connections that it allows.

use crate::doctor::finding::Finding;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::Value;
use signalbox_transport::file_budget::FileBudget;
use signalbox_transport::http_back::BACKEND_PLACES;

/// Soft limit that is enough for the default maximum of connections on both sides.
pub const WANTED: u64 = 65_536;

/// Raises the soft limit towards the hard one. The usual 1024 is too low for a few hundred clients, each of which needs
/// a connection and often another one to a backend. A failure is only logged.
pub fn raise_limit(max_connections: usize) {
    let limit = getrlimit(Resource::Nofile);
    let wanted = raised(limit.maximum, max_connections);
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(files = wanted, "the limit of open files is raised"),
        Err(error) => tracing::warn!(%error, files = limit.current, "the limit of open files cannot be raised"),
    }
}

/// Returns the soft limit to set at start.
fn raised(maximum: Option<u64>, max_connections: usize) -> u64 {
    let wanted = WANTED.max(FileBudget::least_files(max_connections));
    maximum.map_or(wanted, |maximum| maximum.min(wanted))
}

/// Returns the connections that the limit of this process allows if `max_connections` clients are configured.
#[must_use]
pub fn budget(max_connections: usize) -> FileBudget {
    FileBudget::of(getrlimit(Resource::Nofile).current, max_connections)
}

/// Divides the open files of this process between clients and backends. Warns if clients get less than configured.
#[must_use]
pub fn divide(max_connections: usize) -> FileBudget {
    let budget = budget(max_connections);
    BACKEND_PLACES.set_most(budget.backends);
    if budget.clients.most < max_connections {
        tracing::warn!(
            max_connections,
            places = budget.clients.most,
            files = getrlimit(Resource::Nofile).current,
            needed = FileBudget::least_files(max_connections),
            "the limit of open files is too low for `gateway.max_connections`: there are fewer places for connections"
        );
    }
    budget
}

const CHECK: &str = "open files";
/// Name of the limit in the status of a process.
pub(crate) const SHOWN_AS: &str = "open files";

/// Compares the limit of a running gateway, or else of this process, with the configured connections.
pub(crate) fn check_limit(max_connections: usize, running: &[Value]) -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let own = limit.current.map(|current| current.max(raised(limit.maximum, max_connections)));
    let of_gateway = running.iter().filter(|status| status["command"] == "serve").find_map(shown_limit);
    match of_gateway {
        Some(files) => judge(Some(files), max_connections, "the running gateway"),
        None => judge(own, max_connections, "a gateway that is started from here"),
    }
}

fn shown_limit(status: &Value) -> Option<u64> {
    let limits = status["limits"].as_array()?;
    limits.iter().find(|limit| limit["what"] == SHOWN_AS)?["bound"].as_u64()
}

fn judge(files: Option<u64>, max_connections: usize, of: &str) -> Finding {
    let Some(allowed) = files else { return Finding::ok(CHECK, "the system sets no limit") };
    let budget = FileBudget::of(files, max_connections);
    let places = budget.clients.most;
    if places >= max_connections {
        let text = format!("{allowed} allowed for {of}, enough for {max_connections} connections of clients");
        return Finding::ok(CHECK, text);
    }
    Finding::warning(
        CHECK,
        format!(
            "{allowed} allowed for {of}, which leaves {places} places for the {max_connections} connections of clients"
        ),
        format!(
            "raise the limit to {} (`ulimit -Hn`, or `LimitNOFILE=` of the service), or set `gateway.max_connections` to \
             {places} or less",
            FileBudget::least_files(max_connections)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use serde_json::json;

    #[test]
    fn the_limit_is_held_against_the_connections() {
        assert_eq!(judge(Some(1_048_576), 10_000, "x").severity, Severity::Ok);
        assert_eq!(judge(None, 1_000_000, "x").severity, Severity::Ok);
        let few = judge(Some(1024), 10_000, "x");
        assert_eq!(few.severity, Severity::Warning);
        assert!(few.advice.unwrap().contains("`gateway.max_connections` to 448"));
        assert_eq!(judge(Some(10_100), 10_000, "x").severity, Severity::Warning, "the reserve and the rest count");
    }

    /// The limit of the gateway counts, not that of the process which asks.
    #[test]
    fn the_limit_of_a_running_gateway_is_the_one_that_counts() {
        let status = |bound: u64| json!({"command": "serve", "limits": [{"what": "open files", "bound": bound}]});
        let found = check_limit(10_000, &[json!({"command": "stdio"}), status(256)]);
        assert_eq!(found.severity, Severity::Warning);
        assert!(found.found.contains("256 allowed for the running gateway"), "{}", found.found);
        assert_eq!(check_limit(10_000, &[status(65_536)]).severity, Severity::Ok);
    }

    #[test]
    fn the_soft_limit_is_raised_to_what_is_configured() {
        assert_eq!(raised(Some(4096), 10_000), 4096);
        assert_eq!(raised(None, 10_000), WANTED);
        assert!(raised(None, 100_000) > 100_000);
    }
}
