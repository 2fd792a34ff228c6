//! Tokio runtimes that the gateway's tasks run on.

use signalbox_engine::lock::LockResultExt;
use std::sync::Mutex;
use tokio::runtime::Handle;

/// Handles of the runtimes: the first for background work, the others one per worker.
#[derive(Debug, Default)]
pub struct Runtimes(Mutex<Vec<Handle>>);

impl Runtimes {
    /// Adds a runtime. The first one is for background work.
    pub fn add(&self, runtime: Handle) {
        self.0.lock().unpoisoned().push(runtime);
    }

    /// Returns the runtime for background work, which delays no call.
    #[must_use]
    pub fn background(&self) -> Option<Handle> {
        self.0.lock().unpoisoned().first().cloned()
    }

    /// Returns the number of live tasks on all runtimes.
    #[must_use]
    pub fn tasks(&self) -> usize {
        let runtimes = self.0.lock().unpoisoned();
        runtimes.iter().map(|runtime| runtime.metrics().num_alive_tasks()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tasks_are_counted_while_they_live() {
        let runtimes = Runtimes::default();
        runtimes.add(Handle::current());
        let before = runtimes.tasks();
        let task = tokio::spawn(std::future::pending::<()>());
        assert_eq!(runtimes.tasks(), before + 1);
        task.abort();
        assert!(task.await.is_err());
        assert_eq!(runtimes.tasks(), before);
    }

    #[test]
    fn the_first_is_the_one_in_the_background() {
        let build = || tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (first, second, runtimes) = (build(), build(), Runtimes::default());
        assert!(runtimes.background().is_none());
        runtimes.add(first.handle().clone());
        runtimes.add(second.handle().clone());
        assert_eq!(runtimes.background().unwrap().id(), first.handle().id());
    }
}
