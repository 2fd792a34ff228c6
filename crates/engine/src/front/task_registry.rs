//! Tasks of a session of 2025-11-25: their backends, their last known state, and the results that the gateway stores
//! when a backend answered at once.

use super::MAX_TASKS;
use crate::bridge::tasks::TaskState;
use bytes::Bytes;
use signalbox_wire::{Revision, timestamp};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Maximum number of bytes of results stored per session.
pub const MAX_KEPT_BYTES: usize = 16 << 20;
/// Maximum time a task is remembered, and the default if it names none.
pub const MAX_STAY: Duration = Duration::from_secs(24 * 3600);

/// Host of a task.
#[derive(Clone, Debug)]
pub(super) enum TaskHost {
    /// A backend of the old era. Requests about the task are passed on.
    Legacy,
    /// A backend of this revision of the new era. Requests about the task are translated.
    Modern(Revision),
    /// The gateway. The call ended at once with this result.
    Gateway(Bytes),
}

#[derive(Clone, Debug)]
pub(super) struct TaskEntry {
    pub backend: Arc<str>,
    pub host: TaskHost,
    /// Last known state; `None` for tasks whose requests are only passed on.
    pub state: Option<TaskState>,
    until: Instant,
}

impl TaskEntry {
    pub fn new(backend: Arc<str>, host: TaskHost, state: Option<TaskState>, now: Instant) -> Self {
        let stay = state.as_ref().and_then(|state| state.ttl).map_or(MAX_STAY, Duration::from_millis).min(MAX_STAY);
        Self { backend, host, state, until: now + stay }
    }

    fn bytes(&self) -> usize {
        match &self.host {
            TaskHost::Gateway(result) => result.len(),
            TaskHost::Legacy | TaskHost::Modern(_) => 0,
        }
    }
}

/// Tasks of one session, within limits on their number and size.
#[derive(Debug, Default)]
pub(super) struct TaskRegistry {
    entries: HashMap<Box<str>, TaskEntry>,
    /// Task ids, oldest first.
    order: VecDeque<Box<str>>,
    bytes: usize,
}

impl TaskRegistry {
    /// Returns the task with this id, unless it has expired.
    pub fn get(&self, task: &str, now: Instant) -> Option<&TaskEntry> {
        self.entries.get(task).filter(|entry| entry.until > now)
    }

    /// Returns true if a result of this size can be stored.
    pub fn has_room_for(bytes: usize) -> bool {
        bytes <= MAX_KEPT_BYTES
    }

    /// Adds a task. Returns the number of unexpired tasks dropped to make room.
    pub fn insert(&mut self, task: &str, entry: TaskEntry, now: Instant) -> usize {
        self.remove(task);
        let over: Vec<Box<str>> =
            self.entries.iter().filter(|(_, one)| one.until <= now).map(|(task, _)| task.clone()).collect();
        for task in over {
            self.remove(&task);
        }
        let mut forgotten = 0;
        while self.entries.len() >= MAX_TASKS || self.bytes + entry.bytes() > MAX_KEPT_BYTES {
            let Some(oldest) = self.order.front().cloned() else { break };
            self.remove(&oldest);
            forgotten += 1;
        }
        self.bytes += entry.bytes();
        self.order.push_back(task.into());
        self.entries.insert(task.into(), entry);
        forgotten
    }

    /// Updates the state of a task.
    pub fn seen(&mut self, task: &str, state: &TaskState) {
        if let Some(entry) = self.entries.get_mut(task) {
            entry.state = Some(state.clone());
        }
    }

    /// Returns the known states of all tasks with their backends, oldest first.
    pub fn states(&self, now: Instant) -> impl Iterator<Item = (&Arc<str>, &TaskState)> {
        self.order.iter().filter_map(move |task| {
            let entry = self.get(task, now)?;
            Some((&entry.backend, entry.state.as_ref()?))
        })
    }

    fn remove(&mut self, task: &str) {
        if let Some(entry) = self.entries.remove(task) {
            self.bytes -= entry.bytes();
            self.order.retain(|one| **one != *task);
        }
    }
}

/// Formats milliseconds since 1970 as the JSON string used in tasks.
pub(super) fn timestamp_token(unix_ms: u64) -> Bytes {
    Bytes::from(format!("\"{}\"", timestamp::rfc3339_millis(unix_ms)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(kept: usize, now: Instant) -> TaskEntry {
        TaskEntry::new("a".into(), TaskHost::Gateway(Bytes::from(vec![0; kept])), None, now)
    }

    #[test]
    fn the_oldest_are_forgotten_when_there_are_too_many_or_too_much() {
        let now = Instant::now();
        let mut task_registry = TaskRegistry::default();
        for number in 0..MAX_TASKS {
            assert_eq!(task_registry.insert(&number.to_string(), entry(1, now), now), 0);
        }
        assert_eq!(task_registry.insert("one more", entry(1, now), now), 1);
        assert!(task_registry.get("0", now).is_none() && task_registry.get("1", now).is_some());
        assert_eq!(task_registry.insert("all", entry(MAX_KEPT_BYTES, now), now), MAX_TASKS);
        assert!(task_registry.get("one more", now).is_none() && task_registry.get("all", now).is_some());
        assert!(!TaskRegistry::has_room_for(MAX_KEPT_BYTES + 1));
    }

    #[test]
    fn a_task_is_remembered_for_as_long_as_it_says() {
        let now = Instant::now();
        let state = TaskState::read(br#"{"taskId":"t","status":"working","createdAt":"c","ttl":1000}"#).unwrap();
        let mut task_registry = TaskRegistry::default();
        task_registry.insert("t", TaskEntry::new("a".into(), TaskHost::Legacy, Some(state), now), now);
        assert_eq!(task_registry.states(now).count(), 1);
        let later = now + Duration::from_millis(1000);
        assert!(task_registry.get("t", later).is_none());
        assert_eq!(task_registry.insert("u", entry(1, later), later), 0, "what is over its time makes room unasked");
        assert_eq!(task_registry.order, [Box::from("u")]);
    }

    #[test]
    fn moments_are_written_as_dates() {
        assert_eq!(timestamp_token(1_785_196_799_999), "\"2026-07-27T23:59:59.999Z\"");
    }
}
