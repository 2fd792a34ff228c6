//! Calls that run now, counted by tool. A call that became a task runs until the task ends, or is no longer stored by
//! its backend.

use signalbox_engine::ExchangeId;
use signalbox_engine::keys::{KeyMap, TextMap};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Time for which a task counts unless it ends. Callers choose how long a task is stored, and a task may run on after
/// that.
const MIN_TASK_TIME: Duration = Duration::from_secs(60);
/// Time for which a task counts at most. Its end may never be heard of, and some tasks are stored forever.
const MAX_TASK_TIME: Duration = Duration::from_secs(3600);

/// Identity of a task.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct RunningTask {
    pub caller: Box<str>,
    /// In a session, another connection may use the same id.
    pub session: Option<Box<str>>,
    pub backend: Box<str>,
    pub task: Box<str>,
}

#[derive(Debug)]
struct RunningCall {
    tool: Box<str>,
    is_task: bool,
}

/// Running calls of the tools whose concurrency is bounded.
#[derive(Debug, Default)]
pub(crate) struct RunningCalls {
    calls: KeyMap<ExchangeId, RunningCall>,
    at_once: TextMap<Box<str>, u64>,
    /// Exchange that each task began with, and the time from which the task counts no more.
    tasks: HashMap<RunningTask, (ExchangeId, Instant)>,
}

impl RunningCalls {
    /// Returns the number of running calls of a tool.
    pub fn count(&self, tool: &str) -> u64 {
        self.at_once.get(tool).copied().unwrap_or(0)
    }

    /// Ends the tasks that are no longer stored.
    pub fn forget_old_tasks(&mut self, now: Instant) {
        let over = self.tasks.extract_if(|_, (_, until)| *until <= now).map(|(_, (exchange, _))| exchange);
        for exchange in over.collect::<Vec<_>>() {
            self.remove(exchange);
        }
    }

    pub fn begin(&mut self, exchange: ExchangeId, tool: &str) {
        let call = RunningCall { tool: tool.into(), is_task: false };
        if self.calls.insert(exchange, call).is_none() {
            *self.at_once.entry(tool.into()).or_default() += 1;
        }
    }

    /// Ends a call, unless it became a task.
    pub fn end(&mut self, exchange: ExchangeId) {
        if self.calls.get(&exchange).is_some_and(|call| !call.is_task) {
            self.remove(exchange);
        }
    }

    /// Counts a call until its task ends, or is no longer stored.
    pub fn become_task(&mut self, exchange: ExchangeId, task: RunningTask, stored: Option<Duration>, now: Instant) {
        let Some(call) = self.calls.get_mut(&exchange) else { return };
        call.is_task = true;
        let until = now + stored.unwrap_or(MAX_TASK_TIME).clamp(MIN_TASK_TIME, MAX_TASK_TIME);
        let former = self.tasks.insert(task, (exchange, until));
        if let Some((former, _)) = former.filter(|(former, _)| *former != exchange) {
            self.remove(former);
        }
    }

    pub fn end_task(&mut self, task: &RunningTask) {
        if let Some((exchange, _)) = self.tasks.remove(task) {
            self.remove(exchange);
        }
    }

    /// Ends the task that began with this exchange.
    pub fn end_task_of(&mut self, exchange: ExchangeId) {
        if self.calls.get(&exchange).is_some_and(|call| call.is_task) {
            self.tasks.retain(|_, (own, _)| *own != exchange);
            self.remove(exchange);
        }
    }

    pub fn has_tasks(&self) -> bool {
        !self.tasks.is_empty()
    }

    fn remove(&mut self, exchange: ExchangeId) {
        let Some(call) = self.calls.remove(&exchange) else { return };
        if let Some(count) = self.at_once.get_mut(&call.tool) {
            *count = count.saturating_sub(1);
            if *count == 0 {
                self.at_once.remove(&call.tool);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(running: &mut RunningCalls, now: Instant) -> u64 {
        running.forget_old_tasks(now);
        running.count("a/t")
    }

    fn task(id: &str) -> RunningTask {
        RunningTask { caller: "ada".into(), session: None, backend: "a".into(), task: id.into() }
    }

    #[test]
    fn a_task_counts_until_it_ends_or_is_no_longer_stored() {
        let (mut running, now) = (RunningCalls::default(), Instant::now());
        let minute = MIN_TASK_TIME;
        for (number, id, stored) in
            [(1, "one", Some(minute / 1000)), (2, "two", None), (3, "three", Some(100 * MAX_TASK_TIME))]
        {
            running.begin(ExchangeId(number), "a/t");
            running.become_task(ExchangeId(number), task(id), stored, now);
            running.end(ExchangeId(number));
        }
        running.begin(ExchangeId(4), "a/t");
        assert_eq!(count(&mut running, now), 4);
        running.end(ExchangeId(4));
        running.end_task(&task("unknown"));
        running.end_task_of(ExchangeId(4));
        assert_eq!(count(&mut running, now + minute - Duration::from_millis(1)), 3);
        assert_eq!(count(&mut running, now + minute), 2);
        running.end_task_of(ExchangeId(2));
        assert_eq!((count(&mut running, now), count(&mut running, now + MAX_TASK_TIME)), (1, 0));
        assert!(running.calls.is_empty() && running.at_once.is_empty() && !running.has_tasks(), "{running:?}");
    }

    #[test]
    fn an_id_that_is_used_again_ends_the_former_task() {
        let (mut running, now) = (RunningCalls::default(), Instant::now());
        for number in [1, 2] {
            running.begin(ExchangeId(number), "a/t");
            running.become_task(ExchangeId(number), task("one"), None, now);
        }
        assert_eq!(count(&mut running, now), 1);
        running.end_task(&task("one"));
        assert_eq!(count(&mut running, now), 0);
    }
}
