//! Directory of modern clients' tasks. Their requests have no session that could remember the backend of a task.

use crate::hosted_task::HostedTask;
use crate::settings::MAX_STAY;
use signalbox_engine::bridge::tasks::TaskState;
use signalbox_engine::lock::LockResultExt;
use signalbox_engine::{PeerId, Principal};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum number of tasks in the directory.
pub const MAX_TASKS: usize = 10_000;
/// Maximum number of tasks of one principal.
pub const MAX_TASKS_EACH: usize = 1_000;
/// Maximum number of names tried for a task whose own is taken.
const MAX_NAMES: u32 = 1_000;

struct TaskEntry {
    backend: Arc<str>,
    /// The task itself, if a legacy backend has it. Requests about tasks of a modern backend are routed like any
    /// others.
    hosted: Option<Arc<HostedTask>>,
    until: Instant,
}

/// Directory of tasks, by principal and name.
#[derive(Default)]
pub struct TaskDirectory {
    entries: Mutex<HashMap<Principal, HashMap<Box<str>, TaskEntry>>>,
}

impl TaskDirectory {
    /// Returns the backend at which this principal has a task of this name.
    #[must_use]
    pub fn home(&self, principal: &Principal, name: &str) -> Option<Arc<str>> {
        self.lock().get(principal)?.get(name).map(|entry| Arc::clone(&entry.backend))
    }

    /// Returns the task of a legacy backend that this principal knows by this name.
    #[must_use]
    pub fn hosted(&self, principal: &Principal, name: &str) -> Option<Arc<HostedTask>> {
        self.lock().get(principal)?.get(name)?.hosted.clone().filter(|task| !task.is_lost())
    }

    /// Returns the task that has this id on this connection.
    #[must_use]
    pub fn at(&self, peer: PeerId, principal: &Principal, id: &str) -> Option<Arc<HostedTask>> {
        let entries = self.lock();
        let mut tasks = entries.get(principal)?.values().filter_map(|entry| entry.hosted.as_ref());
        tasks.find(|task| task.peer_id == peer && *task.id == *id).cloned()
    }

    /// Returns true if a task is in progress behind this connection.
    #[must_use]
    pub fn holds(&self, peer: PeerId) -> bool {
        let entries = self.lock();
        let mut tasks = entries.values().flat_map(HashMap::values).filter_map(|entry| entry.hosted.as_ref());
        tasks.any(|task| task.peer_id == peer && task.is_live())
    }

    /// Records the backend of a modern task. Returns false if the limit is reached.
    #[must_use]
    pub fn note(&self, principal: &Principal, state: &TaskState, backend: Arc<str>) -> bool {
        let until = crate::clock::now() + state.ttl.map_or(MAX_STAY, Duration::from_millis).min(MAX_STAY);
        let mut entries = self.lock();
        let known = entries.get(principal).and_then(|own| own.get(state.id.as_str()));
        if known.is_some_and(|entry| entry.hosted.is_some()) {
            return true;
        }
        let room = has_room(&mut entries, principal);
        if room {
            let own = entries.entry(principal.clone()).or_default();
            own.insert(state.id.as_str().into(), TaskEntry { backend, hosted: None, until });
        }
        room
    }

    /// Records a task of a legacy backend and returns the name by which clients know it: its id, unless another task of
    /// the same principal has that. Returns `None` if the limit is reached.
    #[must_use]
    pub fn host(&self, task: &Arc<HostedTask>, backend: &Arc<str>) -> Option<Box<str>> {
        let until = crate::clock::now() + task.stay().unwrap_or(MAX_STAY).min(MAX_STAY);
        let mut entries = self.lock();
        if !has_room(&mut entries, task.user.principal()) {
            return None;
        }
        let own = entries.entry(task.user.principal().clone()).or_default();
        let free = |name: &str| !own.contains_key(name);
        let name = if free(&task.id) {
            task.id.clone()
        } else {
            (2..MAX_NAMES).map(|number| format!("{}~{number}", task.id).into_boxed_str()).find(|name| free(name))?
        };
        own.insert(name.clone(), TaskEntry { backend: Arc::clone(backend), hosted: Some(Arc::clone(task)), until });
        Some(name)
    }

    /// Removes the tasks of a principal.
    pub fn forget(&self, principal: &Principal) {
        self.lock().remove(principal);
    }

    /// Removes tasks that have expired, or were lost with their connection.
    pub fn sweep(&self) {
        remove_expired(&mut self.lock());
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Principal, HashMap<Box<str>, TaskEntry>>> {
        self.entries.lock().unpoisoned()
    }
}

fn remove_expired(entries: &mut HashMap<Principal, HashMap<Box<str>, TaskEntry>>) {
    let now = crate::clock::now();
    entries.retain(|_, own| {
        own.retain(|_, entry| entry.until > now && !entry.hosted.as_ref().is_some_and(|task| task.is_lost()));
        !own.is_empty()
    });
}

fn has_room(entries: &mut HashMap<Principal, HashMap<Box<str>, TaskEntry>>, principal: &Principal) -> bool {
    let full = |entries: &HashMap<Principal, HashMap<Box<str>, TaskEntry>>| {
        entries.get(principal).map_or(0, HashMap::len) >= MAX_TASKS_EACH
            || entries.values().map(HashMap::len).sum::<usize>() >= MAX_TASKS
    };
    if full(entries) {
        remove_expired(entries);
    }
    !full(entries)
}
