//! Replaces the set of backends while the gateway runs.
//!
//! Unchanged backends keep everything: connections, processes, lists, calls in flight. A removed or replaced backend
//! accepts no further call, has limited time to finish those in flight, and is then stopped.

use crate::backend::Backend;
use crate::backends::Backends;
use crate::gateway::Gateway;
use crate::settings::Settings;
use signalbox_engine::lock::LockResultExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Polling interval for the remaining calls of a retiring backend.
const POLL: Duration = Duration::from_millis(50);

/// Names of the backends that a replacement has changed.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BackendChanges {
    pub added: Vec<Arc<str>>,
    /// Backends that were removed without a successor.
    pub removed: Vec<Arc<str>>,
    /// Backends that have a successor.
    pub changed: Vec<Arc<str>>,
}

impl Gateway {
    /// Replaces the backends, in the given order. Backends that are the same `Arc` as before are not touched. The
    /// others are started; removed and replaced ones are stopped when their calls are done, after `Settings::drain` at
    /// the latest. Sessions continue and are told which lists changed.
    ///
    /// Does nothing once the gateway is shutting down.
    pub fn replace(self: &Arc<Self>, next: Vec<Arc<Backend>>) -> BackendChanges {
        let _turn = self.replacing.lock().unpoisoned();
        let mut done = BackendChanges::default();
        if self.is_draining() {
            return done;
        }
        let before = self.backends().clone();
        let next = Backends::new(next);
        let changed = self.catalog.reconfigure(&next);
        let (mut fresh, mut retired) = (Vec::new(), Vec::new());
        for backend in next.iter() {
            match before.get(&backend.name) {
                Some(same) if Arc::ptr_eq(same, backend) => continue,
                Some(_) => done.changed.push(Arc::clone(&backend.name)),
                None => done.added.push(Arc::clone(&backend.name)),
            }
            backend.attach(self);
            fresh.push(Arc::clone(backend));
        }
        for backend in before.iter() {
            let successor = next.get(&backend.name);
            if successor.is_some_and(|successor| Arc::ptr_eq(successor, backend)) {
                continue;
            }
            if successor.is_none() {
                done.removed.push(Arc::clone(&backend.name));
            }
            backend.retire(successor);
            self.reads.forget_backend(&backend.name);
            retired.push(Arc::clone(backend));
        }
        let retiring = before.retiring().iter().chain(&retired).cloned().collect();
        self.set_backends(next.with_retiring(retiring));
        self.start_added(&fresh, &done.added);
        self.notify_lists_changed(changed, None);
        let drain = self.settings().drain;
        for backend in retired {
            tokio::spawn(Arc::clone(self).drain_and_remove(backend, drain));
        }
        let gateway = Arc::clone(self);
        tokio::spawn(async move { gateway.catalog.save().await });
        done
    }

    /// Starts backends. Those without a predecessor get the log levels that sessions have set.
    fn start_added(&self, fresh: &[Arc<Backend>], added: &[Arc<str>]) {
        for backend in fresh {
            tokio::spawn(Arc::clone(backend).supervise());
        }
        let added: Vec<_> = fresh.iter().filter(|backend| added.contains(&backend.name)).collect();
        if added.is_empty() {
            return;
        }
        for session in self.sessions.all() {
            let Some(level) = session.log_level() else { continue };
            let sees = |backend: &str| {
                self.visibility().is_none_or(|visibility| visibility.shows_backend(&session.caller, backend))
            };
            for backend in &added {
                backend.set_level(&session, level, sees(&backend.name));
            }
        }
    }

    /// Waits until a retiring backend has finished its calls, then stops and removes it.
    async fn drain_and_remove(self: Arc<Self>, backend: Arc<Backend>, within: Duration) {
        let until = Instant::now() + within;
        while !backend.close_finished() && Instant::now() < until {
            tokio::time::sleep(POLL).await;
        }
        backend.stop_retired();
        let _turn = self.replacing.lock().unpoisoned();
        let before = self.backends().clone();
        let left = before.retiring().iter().filter(|one| !Arc::ptr_eq(one, &backend)).cloned().collect();
        self.set_backends(Backends::new(before.to_vec()).with_retiring(left));
    }

    /// Replaces the settings, and resizes the budgets that depend on them.
    pub fn set_settings(&self, settings: Settings) {
        self.budget.resize(settings.memory);
        self.catalog.set_memory(settings.memory);
        self.settings.store(Arc::new(settings));
    }
}
