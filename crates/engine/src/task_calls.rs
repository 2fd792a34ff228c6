//! Memory of the call that created each task, so that a result that arrives through the task is judged as the result of
//! that call.

use crate::caller::Principal;
use crate::keys::{ExchangeId, SessionKey};
use crate::lock::LockResultExt;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};

/// Maximum number of tasks whose call is remembered; the oldest are dropped beyond it.
pub const MAX_TASK_CALLS: usize = 16_384;
/// Maximum length of a task id whose call is remembered, in bytes.
pub const MAX_TASK_ID: usize = 1024;

/// Call that created a task.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TaskCall {
    /// Session of the call.
    pub session: SessionKey,
    /// Exchange of the call, which has ended.
    pub exchange: ExchangeId,
    /// The client's name for the tool.
    pub tool: Box<str>,
    /// The backend's name for the tool.
    pub own_name: Box<str>,
}

/// Key of a task: its owner and its backend.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TaskKey {
    /// Principal on whose behalf it runs.
    pub principal: Principal,
    /// In the old era, the session whose connection knows the task; another connection may use the same id.
    pub session: Option<SessionKey>,
    /// Configured name of the backend.
    pub backend: Arc<str>,
    /// Id by which a client asks that backend for the task.
    pub task: Box<str>,
}

#[derive(Default, Debug)]
struct Inner {
    calls: HashMap<TaskKey, Arc<TaskCall>>,
    order: VecDeque<TaskKey>,
    /// Last principal that created a task with this id at this backend.
    makers: HashMap<(Arc<str>, Box<str>), Principal>,
}

/// Calls that created the clients' tasks.
#[derive(Default, Debug)]
pub struct TaskCalls(Mutex<Inner>);

impl TaskCalls {
    /// Remembers which call created a task.
    pub fn note(&self, key: TaskKey, call: TaskCall) {
        let mut inner = self.lock();
        if key.task.len() > MAX_TASK_ID || inner.calls.insert(key.clone(), Arc::new(call)).is_some() {
            return;
        }
        inner.makers.insert((Arc::clone(&key.backend), key.task.clone()), key.principal.clone());
        inner.order.push_back(key);
        if inner.order.len() > MAX_TASK_CALLS
            && let Some(oldest) = inner.order.pop_front()
        {
            inner.calls.remove(&oldest);
            let place = (oldest.backend, oldest.task);
            if inner.makers.get(&place) == Some(&oldest.principal) {
                inner.makers.remove(&place);
            }
        }
    }

    /// Returns true if this principal is known to have created a task with this id at this backend, in any session.
    #[must_use]
    pub fn is_of(&self, key: &TaskKey) -> bool {
        let place = (Arc::clone(&key.backend), key.task.clone());
        let inner = self.lock();
        inner.calls.contains_key(key) || inner.makers.get(&place) == Some(&key.principal)
    }

    /// Returns true if another caller is known to have created a task with this id at this backend. Call it only if the
    /// task's own call is not remembered: two connections may use the same id.
    #[must_use]
    pub fn is_of_another(&self, key: &TaskKey) -> bool {
        let place = (Arc::clone(&key.backend), key.task.clone());
        self.lock().makers.get(&place).is_some_and(|maker| *maker != key.principal)
    }

    /// Detaches the tasks of a principal whose account was deleted: a later account with the same name gets none of
    /// them.
    pub fn forget(&self, principal: &Principal) {
        let mut inner = self.lock();
        inner.calls.retain(|key, _| key.principal != *principal);
        inner.order.retain(|key| key.principal != *principal);
        for maker in inner.makers.values_mut().filter(|maker| *maker == principal) {
            *maker = Principal::gone(0);
        }
        // Nothing else removes these, so they are bounded like the calls.
        if inner.makers.len() > 2 * MAX_TASK_CALLS {
            inner.makers.retain(|_, maker| *maker != Principal::gone(0));
        }
    }

    /// Returns the call that created this task, if it is remembered.
    #[must_use]
    pub fn find(&self, key: &TaskKey) -> Option<Arc<TaskCall>> {
        self.lock().calls.get(key).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unpoisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(principal: &str, session: u64, task: &str) -> TaskKey {
        TaskKey {
            principal: Principal::named(principal),
            session: Some(SessionKey(session)),
            backend: "a".into(),
            task: task.into(),
        }
    }

    fn call(tool: &str) -> TaskCall {
        TaskCall { session: SessionKey(1), exchange: ExchangeId(1), tool: tool.into(), own_name: tool.into() }
    }

    #[test]
    fn a_task_of_one_session_is_not_that_of_another_with_the_same_id() {
        let calls = TaskCalls::default();
        calls.note(key("ann", 1, "1"), call("secret"));
        calls.note(key("ann", 2, "1"), call("harmless"));
        assert_eq!(&*calls.find(&key("ann", 1, "1")).unwrap().tool, "secret");
        assert_eq!(calls.find(&key("bob", 1, "1")), None);
        assert!(
            calls.is_of(&key("ann", 3, "1")) && !calls.is_of(&key("bob", 1, "1")) && !calls.is_of(&key("ann", 1, "2"))
        );
        assert!(calls.is_of_another(&key("bob", 1, "1")) && !calls.is_of_another(&key("ann", 3, "1")));
        assert!(!calls.is_of_another(&key("bob", 1, "2")), "nobody is known to have made it");
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let calls = TaskCalls::default();
        for number in 0..=MAX_TASK_CALLS {
            calls.note(key("ann", 1, &number.to_string()), call("x"));
        }
        calls.note(key("ann", 1, "1"), call("y"));
        calls.note(key("ann", 1, &"x".repeat(MAX_TASK_ID + 1)), call("y"));
        assert_eq!(calls.find(&key("ann", 1, "0")), None);
        assert_eq!(&*calls.find(&key("ann", 1, "1")).unwrap().tool, "y");
        let inner = calls.lock();
        assert_eq!((inner.order.len(), inner.calls.len()), (MAX_TASK_CALLS, MAX_TASK_CALLS));
        assert_eq!(inner.makers.len(), MAX_TASK_CALLS);
    }
}
