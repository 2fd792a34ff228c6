//! How many files and connections the system lets us have open.

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
