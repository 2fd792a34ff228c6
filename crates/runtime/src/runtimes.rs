//! The runtimes that the gateway's tasks live on, for telling how many there are.

use std::sync::{Mutex, PoisonError};
use tokio::runtime::Handle;

/// The runtimes: one for what is looked after in the background, and one for each worker.
#[derive(Debug, Default)]
pub struct Runtimes(Mutex<Vec<Handle>>);

impl Runtimes {
    /// Counts the tasks of this one too.
    pub fn add(&self, runtime: Handle) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(runtime);
    }

    /// Tasks that have not ended.
    #[must_use]
    pub fn tasks(&self) -> usize {
        let runtimes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
}
