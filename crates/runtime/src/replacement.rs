//! Another set of backends while the gateway runs.
//!
//! Backends that stay keep everything: connections, processes, lists, calls in flight. One that goes, or in whose place
//! another comes, takes no further call, may finish those in flight for a while, and is then stopped.

use crate::backend::Backend;
use crate::backends::Backends;
use crate::gateway::Gateway;
use crate::settings::Settings;
use signalbox_engine::catalog::Changed;
use signalbox_engine::lock::LockResultExt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// How often it is looked whether a backend that retires is done.
const LOOK: Duration = Duration::from_millis(50);

/// What a replacement did, by the names of backends.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Replaced {
    /// Those that were not there.
    pub added: Vec<Arc<str>>,
    /// Those that are not there any more.
    pub removed: Vec<Arc<str>>,
    /// Those in whose place another one is.
    pub changed: Vec<Arc<str>>,
}

impl Gateway {
    /// Serves these backends from now on, in this order. Those that are the same `Arc` as before are not touched; the others
    /// are started, and what is gone or has a successor is stopped when its calls are done, after `Settings::drain` at the latest.
    /// Sessions go on and are told which lists changed.
    ///
    /// Does nothing once the gateway is shutting down.
    pub fn replace(self: &Arc<Self>, next: Vec<Arc<Backend>>) -> Replaced {
        let _turn = self.replacing.lock().unpoisoned();
        let mut done = Replaced::default();
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
        self.begin(&fresh, &done.added);
        self.tell_lists_changed(changed, None);
        let drain = self.settings().drain;
        for backend in retired {
            tokio::spawn(Arc::clone(self).see_off(backend, drain));
        }
        let gateway = Arc::clone(self);
        tokio::spawn(async move { gateway.catalog.save().await });
        done
    }

    /// Starts backends. Those without a predecessor are told which log levels sessions have set.
    fn begin(&self, fresh: &[Arc<Backend>], added: &[Arc<str>]) {
        for backend in fresh {
            tokio::spawn(Arc::clone(backend).supervise());
        }
        let added: Vec<_> = fresh.iter().filter(|backend| added.contains(&backend.name)).collect();
        if added.is_empty() {
            return;
        }
        for session in self.sessions.all() {
            let Some(level) = session.log_level() else { continue };
            for backend in &added {
                backend.set_level(&session, level);
            }
        }
    }

    /// Waits until a backend is done with its calls, then stops and forgets it.
    async fn see_off(self: Arc<Self>, backend: Arc<Backend>, within: Duration) {
        let until = Instant::now() + within;
        while !backend.let_go() && Instant::now() < until {
            tokio::time::sleep(LOOK).await;
        }
        backend.stop_retired();
        let _turn = self.replacing.lock().unpoisoned();
        let before = self.backends().clone();
        let left = before.retiring().iter().filter(|one| !Arc::ptr_eq(one, &backend)).cloned().collect();
        self.set_backends(Backends::new(before.to_vec()).with_retiring(left));
    }

    /// Works with these bounds from now on.
    pub fn set_settings(&self, settings: Settings) {
        self.budget.resize(settings.memory);
        let before = self.settings.swap(Arc::new(settings));
        if before.callers != self.settings().callers {
            let changed = Changed { tools: true, prompts: true, resources: true };
            self.tell_lists_changed(changed, None);
        }
    }
}
