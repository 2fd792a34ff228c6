//! A controlled run as several parts of a process hold it: the runner, the API and the view.

use super::control::{Next, ReplayControl, State};
use signalbox_engine::lock::LockResultExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// The shared control of a run.
#[derive(Debug)]
pub struct ReplayHandle {
    control: Mutex<ReplayControl>,
    news: watch::Sender<()>,
}

impl ReplayHandle {
    /// Shares a control.
    #[must_use]
    pub fn new(control: ReplayControl) -> Arc<Self> {
        Arc::new(Self { control: Mutex::new(control), news: watch::Sender::new(()) })
    }

    /// Looks at it.
    pub fn look<T>(&self, look: impl FnOnce(&ReplayControl) -> T) -> T {
        look(&self.control.lock().unpoisoned())
    }

    /// Does something with it and tells everybody who waits for news.
    pub fn act<T>(&self, act: impl FnOnce(&mut ReplayControl) -> T) -> T {
        let done = act(&mut self.control.lock().unpoisoned());
        self.news.send_replace(());
        done
    }

    /// What hears of every change from now on.
    #[must_use]
    pub fn news(&self) -> watch::Receiver<()> {
        self.news.subscribe()
    }

    /// Waits until this is so, or the time is over. True if it is so.
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

    /// Waits until the run is stopped.
    pub(super) async fn stopped(&self) {
        let mut news = self.news();
        while self.look(ReplayControl::state) != State::Stopped {
            if news.changed().await.is_err() {
                return;
            }
        }
    }

    /// What the runner does next. Only a change of the state is news: the runner itself waits for news.
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
