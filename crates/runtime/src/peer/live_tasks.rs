//! Tasks that a backend works on behind a connection, and that would end with its process. They are inferred from the
//! backend's messages, in every revision.

use crate::settings::MAX_STAY;
use signalbox_engine::bridge::tasks::{TaskState, is_terminal};
use signalbox_engine::lock::LockResultExt;
use signalbox_wire::{Envelope, json, meta};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Maximum number of tasks that are tracked by name. While one of them lives, further ones make no difference.
const MAX_KNOWN: usize = 1_024;

/// Live tasks of a connection.
#[derive(Default)]
pub(super) struct LiveTasks {
    /// False if the backend creates no tasks, so that its messages need not be parsed.
    expected: AtomicBool,
    until: Mutex<HashMap<Box<str>, Instant>>,
}

impl LiveTasks {
    /// Sets whether the backend creates tasks at all.
    pub(super) fn set_expected(&self, expected: bool) {
        self.expected.store(expected, Ordering::Relaxed);
    }

    /// Reads an answer of the backend, which may start or end a task.
    pub(super) fn observe_answer(&self, message: &Envelope) {
        let Some(result) = message.result().filter(|_| self.are_expected()) else { return };
        if let Some(state) = TaskState::read(result) {
            return self.update(state);
        }
        // The result of a task names the task.
        let span = json::path(result, &[meta::META, meta::RELATED_TASK, "taskId"]);
        if let Some(task) = span.and_then(|span| json::string(span.of(result))) {
            self.lock().remove(&*task);
        }
    }

    /// Reads a message that may carry the state of a task.
    pub(super) fn observe_state(&self, state: Option<&[u8]>) {
        if let Some(state) = state.filter(|_| self.are_expected()).and_then(TaskState::read) {
            self.update(state);
        }
    }

    fn update(&self, state: TaskState) {
        let mut tasks = self.lock();
        if is_terminal(state.status) {
            tasks.remove(&*state.id);
            return;
        }
        let now = crate::clock::now();
        if tasks.len() >= MAX_KNOWN {
            tasks.retain(|_, until| *until > now);
        }
        if tasks.len() < MAX_KNOWN {
            let stay = state.ttl.map_or(MAX_STAY, Duration::from_millis).min(MAX_STAY);
            tasks.insert(state.id.into(), now + stay);
        }
    }

    fn are_expected(&self) -> bool {
        self.expected.load(Ordering::Relaxed)
    }

    /// Returns true if the backend works on a task.
    pub(super) fn any(&self, now: Instant) -> bool {
        self.lock().values().any(|until| *until > now)
    }

    /// Returns true if the backend works on this task.
    pub(super) fn has(&self, task: &str, now: Instant) -> bool {
        self.lock().get(task).is_some_and(|until| *until > now)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Box<str>, Instant>> {
        self.until.lock().unpoisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(result: &str) -> Envelope {
        Envelope::parse(format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#).into()).unwrap()
    }

    fn made() -> Envelope {
        answer(r#"{"task":{"taskId":"t","status":"working","createdAt":"c","ttl":60000}}"#)
    }

    #[test]
    fn a_task_lives_until_its_end_is_told_or_its_time_is_over() {
        let now = crate::clock::now();
        for end in [
            r#"{"taskId":"t","status":"completed","createdAt":"c"}"#,
            r#"{"resultType":"complete","taskId":"t","status":"cancelled","createdAt":"c","result":{}}"#,
            r#"{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
        ] {
            let tasks = LiveTasks::default();
            tasks.set_expected(true);
            tasks.observe_answer(&made());
            assert!(tasks.any(now) && !tasks.any(now + Duration::from_secs(120)));
            tasks.observe_answer(&answer(r#"{"content":[]}"#));
            // What is said in the course of a task names it too.
            tasks.observe_state(Some(
                br#"{"level":"info","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t"}}}"#,
            ));
            assert!(tasks.any(now));
            tasks.observe_answer(&answer(end));
            assert!(!tasks.any(now), "{end}");
        }
    }

    #[test]
    fn nothing_is_looked_at_where_no_task_is_expected() {
        let tasks = LiveTasks::default();
        tasks.observe_answer(&made());
        assert!(!tasks.any(crate::clock::now()));
    }
}
