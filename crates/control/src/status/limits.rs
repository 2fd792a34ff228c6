//! Limits of a process and their usage.

use crate::open_files;
use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use signalbox_config::{BackendTarget, Config};
use signalbox_runtime::status::Status;
use std::collections::BTreeMap;

/// Name of the system setting that bounds open files, and with them connections.
const FILES: &str = "ulimit -n";

/// A limit and its usage.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ShownLimit {
    /// Name of the limited resource.
    pub what: String,
    pub used: u64,
    pub bound: u64,
    /// Configuration key or system setting that changes the bound.
    pub set_by: String,
}

/// Bounds set by the configuration.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    sessions: usize,
    connections: usize,
    children: BTreeMap<String, usize>,
}

impl Bounds {
    pub(super) fn of(config: &Config) -> Self {
        let processes = config.backends.iter().filter(|one| matches!(one.target, BackendTarget::Command { .. }));
        Self {
            sessions: config.gateway.max_sessions,
            connections: config.gateway.max_connections,
            children: processes.map(|one| (one.name.clone(), one.max_children)).collect(),
        }
    }

    /// Returns every bound with its usage.
    pub(super) fn used(&self, status: &Status) -> Vec<ShownLimit> {
        let limit = |what: String, used: u64, bound: u64, set_by: String| ShownLimit { what, used, bound, set_by };
        let places = open_files::budget(self.connections).clients.most;
        let mut limits = vec![
            limit(
                "sessions".to_owned(),
                status.sessions as u64,
                self.sessions as u64,
                "mcp.protocol.security.max_concurrent_sessions".to_owned(),
            ),
            limit(
                "connections".to_owned(),
                status.connections.max(0).unsigned_abs(),
                places as u64,
                if places < self.connections { FILES } else { "gateway.max_connections" }.to_owned(),
            ),
        ];
        if let (Some(used), Some(bound)) = (files_in_use(), getrlimit(Resource::Nofile).current) {
            limits.push(limit(open_files::SHOWN_AS.to_owned(), used, bound, FILES.to_owned()));
        }
        for backend in &status.backends {
            if let Some(bound) = self.children.get(&backend.name) {
                limits.push(limit(
                    format!("processes of {}", backend.name),
                    backend.connections as u64,
                    *bound as u64,
                    format!("backends.{}.max_children", backend.name),
                ));
            }
        }
        limits
    }
}

/// Returns the number of open files of this process, if the system reports it.
fn files_in_use() -> Option<u64> {
    Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn open_files_are_counted() {
        let before = files_in_use().unwrap();
        let _open = std::fs::File::open("/proc/self/status").unwrap();
        assert!(before > 0 && files_in_use().unwrap() > before);
    }
}
