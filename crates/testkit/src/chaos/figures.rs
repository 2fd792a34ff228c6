//! What a gateway holds at a moment, to be compared with what it held before.

use std::fmt;

use anyhow::Context as _;

use super::processes;
use crate::gateway::GatewayProcess;
use crate::scene;

/// By how much the memory of a gateway may be larger after a storm than before, in KiB: what an allocator keeps of its
/// peak.
pub const MEMORY_MARGIN: u64 = 64 * 1024;

/// What is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Figures {
    /// Memory that is really there, in KiB.
    pub memory: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Child processes.
    pub children: u64,
    /// Threads.
    pub threads: u64,
    /// Tasks of the gateway's runtimes.
    pub tasks: u64,
    /// Sessions.
    pub sessions: u64,
    /// Connections of clients.
    pub connections: u64,
    /// Requests that wait for an answer.
    pub in_flight: u64,
}

impl Figures {
    /// What this gateway holds.
    ///
    /// # Errors
    /// When it does not tell.
    pub async fn of(gateway: &GatewayProcess) -> anyhow::Result<Self> {
        let pid = gateway.process.pid().context("the gateway has ended")?;
        let status = scene::status(&gateway.data_dir()).await?;
        let told = |key: &str| status[key].as_u64().with_context(|| format!("no {key} in the status"));
        Ok(Self {
            memory: processes::figure(pid, "VmRSS"),
            descriptors: processes::descriptors(pid) as u64,
            children: processes::children(pid).len() as u64,
            threads: processes::figure(pid, "Threads"),
            tasks: told("tasks")?,
            sessions: told("sessions")?,
            connections: told("connections")?,
            in_flight: told("in_flight")?,
        })
    }

    /// Whether nobody is connected and nothing is under way.
    pub fn is_quiet(&self) -> bool {
        self.sessions == 0 && self.connections == 0 && self.in_flight == 0
    }

    /// What is more than it was, in words; nothing where all is back.
    pub fn beyond(&self, before: &Self) -> Vec<String> {
        let pairs = [
            ("memory in KiB", self.memory, before.memory + MEMORY_MARGIN),
            ("descriptors", self.descriptors, before.descriptors),
            ("child processes", self.children, before.children),
            ("threads", self.threads, before.threads),
            ("tasks", self.tasks, before.tasks),
            ("sessions", self.sessions, before.sessions),
            ("connections", self.connections, before.connections),
            ("requests in flight", self.in_flight, before.in_flight),
        ];
        let more = pairs.into_iter().filter(|(_, after, most)| after > most);
        more.map(|(what, after, most)| format!("{what}: {after}, at most {most} were expected")).collect()
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} KiB, {} descriptors, {} children, {} threads, {} tasks, {} sessions, {} connections, {} in flight",
            self.memory,
            self.descriptors,
            self.children,
            self.threads,
            self.tasks,
            self.sessions,
            self.connections,
            self.in_flight
        )
    }
}
