//! Which children are alive, for a shutdown that must leave none behind.

use super::group::Group;
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// How long processes may take to vanish once they were killed.
pub(super) const KILLED_WAIT: Duration = Duration::from_secs(1);

/// Knows the live children of all connectors that share it. Clones are the same reaper.
#[derive(Clone, Debug, Default)]
pub struct Reaper {
    groups: Arc<watch::Sender<BTreeMap<u32, Arc<Group>>>>,
}

impl Reaper {
    /// A reaper that knows no children yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// How many children have not ended with all their descendants.
    #[must_use]
    pub fn live(&self) -> usize {
        self.groups.borrow().len()
    }

    /// Waits until every child is gone with its descendants, and kills what is left at the deadline. True if nothing
    /// had to be killed. It closes no link: a child whose link is open is given the whole time.
    pub async fn all_gone(&self, within: Duration) -> bool {
        if self.emptied(within).await {
            return true;
        }
        let left: Vec<Arc<Group>> = self.groups.borrow().values().cloned().collect();
        tracing::warn!(children = left.len(), "child processes did not end in time and are killed");
        for group in left {
            group.signal(Signal::KILL);
        }
        self.emptied(KILLED_WAIT).await;
        false
    }

    /// Enters the group of a child that was just started, by the number of its leader.
    pub(super) fn register(&self, pid: u32, group: Arc<Group>) -> Registration {
        self.groups.send_modify(|groups| {
            groups.insert(pid, Arc::clone(&group));
        });
        Registration { reaper: self.clone(), pid, group }
    }

    async fn emptied(&self, within: Duration) -> bool {
        let mut groups = self.groups.subscribe();
        let empty = groups.wait_for(BTreeMap::is_empty);
        timeout(within, empty).await.is_ok()
    }
}

/// A live child in its reaper's books. Dropping it kills what is left of the group.
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
            // The number may have been given to a newer child already.
            if groups.get(&self.pid).is_some_and(|group| Arc::ptr_eq(group, &self.group)) {
                groups.remove(&self.pid);
            }
        });
    }
}
