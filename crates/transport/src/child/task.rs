//! A task that ends with its owner.

use std::future::Future;
use tokio::task::JoinHandle;

/// A spawned task. It may be awaited again after it has ended, and is aborted when dropped.
#[derive(Debug)]
pub(super) struct Task(Option<JoinHandle<()>>);

impl Task {
    pub(super) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(tokio::spawn(future)))
    }

    /// Waits until the task has ended, in whichever way. May be cancelled.
    pub(super) async fn done(&mut self) {
        if let Some(handle) = &mut self.0 {
            // A task that panicked has ended too; the runtime has said so on stderr.
            let _ = handle.await;
            self.0 = None;
        }
    }

    /// Ends the task; when this returns it does nothing any more.
    pub(super) async fn stop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.abort();
        }
        self.done().await;
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.abort();
        }
    }
}
