//! Outcome of reloads, for the answer to `reload`, `signalbox status` and `/metrics`.

use super::ReloadError;
use serde::Serialize;
use signalbox_engine::lock::LockResultExt;
use signalbox_runtime::Gateway;
use signalbox_wire::timestamp;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

/// Changes of one reload.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Summary {
    /// Number of the current configuration, 1 at the start.
    pub generation: u64,
    /// False if nothing changed.
    pub changed: bool,
    /// Names of added backends.
    pub added: Vec<String>,
    /// Names of removed backends.
    pub removed: Vec<String>,
    /// Names of restarted backends.
    pub replaced: Vec<String>,
    /// Names of backends that run on with changed settings.
    pub retuned: Vec<String>,
    /// Keys of other changed settings.
    pub settings: Vec<&'static str>,
    /// Warnings about the file, and about names in it that match nothing.
    pub warnings: Vec<String>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.changed {
            return write!(f, "nothing has changed (generation {})", self.generation);
        }
        write!(f, "now using generation {}", self.generation)?;
        for (what, names) in [
            ("added", &self.added),
            ("removed", &self.removed),
            ("restarted", &self.replaced),
            ("retuned", &self.retuned),
        ] {
            if !names.is_empty() {
                write!(f, "; {what}: {}", names.join(", "))?;
            }
        }
        if !self.settings.is_empty() {
            write!(f, "; settings: {}", self.settings.join(", "))?;
        }
        Ok(())
    }
}

/// State of the configuration for `signalbox status`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReloadReport {
    /// Number of the current configuration, 1 at the start.
    pub generation: u64,
    /// Time at which the configuration was loaded.
    pub loaded_at: String,
    /// Number of accepted reloads, including those without a change.
    pub reloads: u64,
    /// Number of refused reloads.
    pub refused: u64,
    /// Reason why the last reload was refused, or the keys that need a restart. `None` after a reload that applied
    /// everything.
    pub last_error: Option<String>,
    /// True if everything except those keys is in force.
    pub partly: bool,
    /// Time of the last error.
    pub last_error_at: Option<String>,
}

fn now() -> String {
    timestamp::rfc3339(timestamp::seconds_of(SystemTime::now()))
}

/// Report with the gateway's counters, which are updated together.
pub(super) struct ReloadRecord {
    gateway: Arc<Gateway>,
    report: Mutex<ReloadReport>,
}

impl ReloadRecord {
    pub(super) fn new(gateway: &Arc<Gateway>) -> Self {
        let report = ReloadReport {
            generation: 1,
            loaded_at: now(),
            reloads: 0,
            refused: 0,
            last_error: None,
            partly: false,
            last_error_at: None,
        };
        gateway.counters.config_generation.store(report.generation, Ordering::Relaxed);
        Self { gateway: Arc::clone(gateway), report: Mutex::new(report) }
    }

    pub(super) fn report(&self) -> ReloadReport {
        self.lock().clone()
    }

    /// Returns the summary of a reload that has changed nothing yet.
    pub(super) fn unchanged(&self) -> Summary {
        Summary { generation: self.lock().generation, ..Summary::default() }
    }

    /// Records the outcome of a reload, and numbers a changed configuration.
    pub(super) fn note(&self, done: &mut Result<Summary, ReloadError>) {
        let counters = &self.gateway.counters;
        let now = now();
        let mut report = self.lock();
        match done {
            Ok(summary) => {
                report.reloads += 1;
                report.generation += u64::from(summary.changed);
                summary.generation = report.generation;
                report.loaded_at = now;
                (report.last_error, report.last_error_at, report.partly) = (None, None, false);
                counters.reloads.fetch_add(1, Ordering::Relaxed);
                counters.config_generation.store(report.generation, Ordering::Relaxed);
                counters.config_outdated.store(false, Ordering::Relaxed);
            }
            Err(ReloadError::Partly { summary, .. }) => {
                report.reloads += 1;
                report.generation += u64::from(summary.changed);
                summary.generation = report.generation;
                report.loaded_at.clone_from(&now);
                counters.reloads.fetch_add(1, Ordering::Relaxed);
                counters.config_generation.store(report.generation, Ordering::Relaxed);
                counters.config_outdated.store(true, Ordering::Relaxed);
                (report.last_error, report.last_error_at) = (done.as_ref().err().map(ToString::to_string), Some(now));
                report.partly = true;
            }
            Err(error) => {
                report.refused += 1;
                report.partly = false;
                (report.last_error, report.last_error_at) = (Some(error.to_string()), Some(now));
                counters.reloads_refused.fetch_add(1, Ordering::Relaxed);
                counters.config_outdated.store(true, Ordering::Relaxed);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, ReloadReport> {
        self.report.lock().unpoisoned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_is_one_line() {
        let nothing = Summary { generation: 3, ..Summary::default() };
        assert_eq!(nothing.to_string(), "nothing has changed (generation 3)");
        let some = Summary {
            generation: 4,
            changed: true,
            added: vec!["a".to_owned(), "b".to_owned()],
            replaced: vec!["c".to_owned()],
            settings: vec!["gateway.drain"],
            ..Summary::default()
        };
        assert_eq!(some.to_string(), "now using generation 4; added: a, b; restarted: c; settings: gateway.drain");
    }
}
