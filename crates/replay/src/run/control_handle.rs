//! Shares a controlled run between the runner, the API and the view.

use super::control::{Next, ReplayControl, State};
use signalbox_engine::lock::LockResultExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// Shared [`ReplayControl`] whose changes can be awaited.
#[derive(Debug)]
pub struct ReplayHandle {
    control: Mutex<ReplayControl>,
    news: watch::Sender<()>,
}

impl ReplayHandle {
    /// Wraps a control for sharing.
    #[must_use]
    pub fn new(control: ReplayControl) -> Arc<Self> {
        Arc::new(Self { control: Mutex::new(control), news: watch::Sender::new(()) })
    }

    /// Reads the control under its lock.
    pub fn look<T>(&self, look: impl FnOnce(&ReplayControl) -> T) -> T {
        look(&self.control.lock().unpoisoned())
    }

    /// Changes the control and notifies all subscribers.
    pub fn act<T>(&self, act: impl FnOnce(&mut ReplayControl) -> T) -> T {
        let done = act(&mut self.control.lock().unpoisoned());
        self.news.send_replace(());
        done
    }

    /// Returns a receiver that is notified of every change.
    #[must_use]
    pub fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Waits until `so` holds. Returns `false` if `within` passes first.
    pub async fn until(&self, within: Duration, so: impl Fn(&ReplayControl) -> bool) -> bool {
        let mut news = self.news();
        let waiting = async {
            while !self.look(&so) {
                if news.changed().await.is_err() {
                    return;
                }
            }
        };
        tokio::time::timeout(within, waiting).await.is_ok()
    }

    /// Waits until the run has stopped.
    pub(super) async fn stopped(&self) {
        let mut news = self.news();
        while self.look(ReplayControl::state) != State::Stopped {
            if news.changed().await.is_err() {
                return;
            }
        }
    }

    /// Returns the runner's next action. Notifies only if the state changed or there is something to do: the runner
    /// itself waits for notifications.
    pub(super) fn next(&self, now: Duration) -> Next {
        let (before, next, after) = {
            let mut control = self.control.lock().unpoisoned();
            let before = control.state();
            let next = control.next(now);
            (before, next, control.state())
        };
        if before != after || !matches!(next, Next::Wait(_)) {
            self.news.send_replace(());
        }
        next
    }
}
