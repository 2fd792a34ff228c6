//! The process group of a child: the child and every descendant that has not left it.

use rustix::process::{Pid, Signal, WaitOptions};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// A process group that we started. Once it is known to be gone it is never signalled again, because its id may have
/// been reused.
#[derive(Debug)]
pub(crate) struct Group {
    id: Pid,
    gone: AtomicBool,
}

impl Group {
    /// Returns the group that this process leads.
    pub(crate) fn led_by(pid: u32) -> Option<Self> {
        let id = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Some(Self { id, gone: AtomicBool::new(false) })
    }

    /// Sends a signal to every member.
    pub(crate) fn signal(&self, signal: Signal) {
        if self.gone.load(Ordering::Acquire) {
            return;
        }
        if let Err(error) = rustix::process::kill_process_group(self.id, signal)
            && error != rustix::io::Errno::SRCH
        {
            tracing::warn!(group = self.id.as_raw_pid(), %error, "a process group could not be signalled");
        }
    }

    /// Returns `true` while there are members. Call it only after the leader was waited for: it also reaps members that
    /// became our own children, as orphans do when the gateway is process 1 of a container.
    pub(super) fn survives(&self) -> bool {
        if self.gone.load(Ordering::Acquire) {
            return false;
        }
        while let Ok(Some(_)) = rustix::process::waitpgid(self.id, WaitOptions::NOHANG) {}
        let gone = rustix::process::test_kill_process_group(self.id) == Err(rustix::io::Errno::SRCH);
        if gone {
            self.forget();
        }
        !gone
    }

    /// Marks the group as gone, or as one that signals no longer reach.
    pub(crate) fn forget(&self) {
        self.gone.store(true, Ordering::Release);
    }
}

/// Time for processes to disappear after SIGKILL.
pub(super) const KILLED_WAIT: Duration = Duration::from_secs(1);

/// Registry of the live children of all connectors that share it. Clones share the same registry.
#[derive(Clone, Debug, Default)]
pub struct Reaper {
    groups: Arc<watch::Sender<BTreeMap<u32, Arc<Group>>>>,
}

impl Reaper {
    /// Creates an empty reaper.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of children that have not ended with all their descendants.
    #[must_use]
    pub fn live(&self) -> usize {
        self.groups.borrow().len()
    }

    /// Waits until every child and its descendants are gone, and kills the rest at the deadline. Returns `true` if
    /// nothing was killed. It closes no link: a child whose link is open gets the whole time.
    pub async fn all_gone(&self, within: Duration) -> bool {
        if self.wait_until_empty(within).await {
            return true;
        }
        let left: Vec<Arc<Group>> = self.groups.borrow().values().cloned().collect();
        tracing::warn!(children = left.len(), "child processes did not end in time and are killed");
        for group in left {
            group.signal(Signal::KILL);
        }
        self.wait_until_empty(KILLED_WAIT).await;
        false
    }

    /// Registers the group of a new child by the process id of its leader.
    pub(super) fn register(&self, pid: u32, group: Arc<Group>) -> Registration {
        self.groups.send_modify(|groups| {
            groups.insert(pid, Arc::clone(&group));
        });
        Registration { reaper: self.clone(), pid, group }
    }

    async fn wait_until_empty(&self, within: Duration) -> bool {
        let mut groups = self.groups.subscribe();
        let empty = groups.wait_for(BTreeMap::is_empty);
        timeout(within, empty).await.is_ok()
    }
}

/// Registration of a live child. Dropping it kills the rest of the group.
#[derive(Debug)]
pub(super) struct Registration {
    reaper: Reaper,
    pid: u32,
    group: Arc<Group>,
}

impl Registration {
    pub(super) fn group(&self) -> &Group {
        &self.group
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.group.signal(Signal::KILL);
        self.group.forget();
        self.reaper.groups.send_modify(|groups| {
            // The process id may have been reused for a newer child.
            if groups.get(&self.pid).is_some_and(|group| Arc::ptr_eq(group, &self.group)) {
                groups.remove(&self.pid);
            }
        });
    }
}
