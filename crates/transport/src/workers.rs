//! One single-threaded runtime per core. Connections are assigned to them in turn.
//!
//! A call stays on the thread of its connection from the client's bytes to the backend's and back: no task moves
//! between threads, and no thread wakes another on the way.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

/// Worker threads. They end when this is dropped.
pub struct Workers {
    handles: Vec<Handle>,
    next: AtomicUsize,
    _running: watch::Sender<()>,
}

impl Workers {
    /// Starts `count` workers. Each calls `idle` whenever it is about to park.
    ///
    /// # Errors
    /// Returns an error if a thread or its runtime cannot be created.
    pub fn start(count: usize, idle: impl Fn() + Clone + Send + Sync + 'static) -> io::Result<Self> {
        let (running, watched) = watch::channel(());
        let mut handles = Vec::new();
        for index in 0..count.max(1) {
            let runtime =
                Builder::new_current_thread().enable_all().on_thread_park(catch_panics(idle.clone())).build()?;
            handles.push(runtime.handle().clone());
            let mut watched = watched.clone();
            std::thread::Builder::new().name(format!("worker-{index}")).spawn(move || {
                runtime.block_on(async move { while watched.changed().await.is_ok() {} });
                runtime.shutdown_background();
            })?;
        }
        Ok(Self { handles, next: AtomicUsize::new(0), _running: running })
    }

    /// Returns the runtimes of all workers.
    #[must_use]
    pub fn handles(&self) -> &[Handle] {
        &self.handles
    }

    /// Returns the runtime of the next worker in turn.
    #[must_use]
    pub fn turn(&self) -> &Handle {
        let index = self.next.fetch_add(1, Ordering::Relaxed) % self.handles.len();
        &self.handles[index]
    }
}

/// Catches panics in `idle`: one would end the worker with all its present and future connections.
fn catch_panics(idle: impl Fn() + Send + Sync) -> impl Fn() + Send + Sync {
    move || {
        if catch_unwind(AssertUnwindSafe(&idle)).is_err() {
            tracing::error!("the idle task of a worker panicked");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_worker_outlives_what_goes_wrong_while_it_is_idle() {
        let times = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&times);
        let idle = move || {
            let before = counted.fetch_add(1, Ordering::Relaxed);
            assert!(before % 2 == 1, "every other time");
        };
        let workers = Workers::start(1, idle).unwrap();
        // It has been idle, and it has failed, at least twice before the last task is done.
        for number in 0.. {
            let (sender, receiver) = std::sync::mpsc::channel();
            workers.turn().spawn(async move { sender.send(number) });
            assert_eq!(receiver.recv(), Ok(number));
            if times.load(Ordering::Relaxed) >= 4 {
                break;
            }
            std::thread::park_timeout(std::time::Duration::from_millis(1));
        }
    }
}
