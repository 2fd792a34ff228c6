//! How many files and connections the system lets us have open.

use crate::doctor::finding::Finding;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Enough for the largest number of connections that can be configured by default, on both sides.
pub const WANTED: u64 = 65_536;

/// Raises the soft limit toward the hard one: the usual 1024 is less than a few hundred clients need, each of whom costs a
/// connection of its own and often one to a backend. Failing to is only logged.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    if limit.current.is_none_or(|current| current >= wanted) {
        return;
    }
    let raised = Rlimit { current: Some(wanted), maximum: limit.maximum };
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => tracing::debug!(files = wanted, "the limit of open files is raised"),
        Err(error) => tracing::warn!(%error, files = limit.current, "the limit of open files cannot be raised"),
    }
}

const CHECK: &str = "open files";
/// What the gateway needs besides connections: pipes of children, its sockets, its logs.
const BESIDES: u64 = 64;

/// Is the limit enough for the connections that are allowed?
pub(crate) fn check_limit(max_connections: usize) -> Finding {
    let limit = getrlimit(Resource::Nofile);
    judge(limit.current, limit.maximum, max_connections as u64)
}

/// The soft limit is raised toward the hard one at the start of `serve`.
fn judge(current: Option<u64>, maximum: Option<u64>, connections: u64) -> Finding {
    let raised = maximum.map_or(WANTED, |maximum| maximum.min(WANTED));
    let Some(allowed) = current.map(|current| current.max(raised)) else {
        return Finding::ok(CHECK, "the system sets no limit");
    };
    if allowed >= connections.saturating_add(BESIDES) {
        return Finding::ok(CHECK, format!("{allowed} allowed, for at most {connections} connections of clients"));
    }
    Finding::warning(
        CHECK,
        format!("{allowed} allowed, which is too few for {connections} connections of clients"),
        format!(
            "raise the limit (`ulimit -Hn`, or `LimitNOFILE=` of the service), or set `gateway.max_connections` to {} or less",
            allowed.saturating_sub(BESIDES)
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;

    #[test]
    fn the_limit_is_held_against_the_connections() {
        assert_eq!(judge(Some(1024), Some(1_048_576), 10_000).severity, Severity::Ok);
        assert_eq!(judge(None, None, 1_000_000).severity, Severity::Ok);
        let few = judge(Some(256), Some(4096), 10_000);
        assert_eq!(few.severity, Severity::Warning);
        assert!(few.advice.unwrap().contains("`gateway.max_connections` to 4032"));
    }
}
