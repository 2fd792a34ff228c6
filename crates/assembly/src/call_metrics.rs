//! Metrics of tools and operations, with the memory of the processes behind the tools.

use crate::process_memory::resident;
use signalbox_config::{Config, Performance};
use signalbox_engine::catalog::{ListKind, NameStyle};
use signalbox_engine::fact::FinishedFact;
use signalbox_engine::operation_metrics::OperationMetrics;
use signalbox_engine::tool_metrics::{ToolMetrics, ToolReading};
use signalbox_engine::{Fact, FactSink};
use signalbox_runtime::Gateway;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// Least time between two measurements of process memory.
const LOOK: Duration = Duration::from_secs(1);

/// Metrics of one gateway.
pub struct CallMetrics {
    watch: Arc<ToolWatch>,
    operations: OperationMetrics,
    sentinel_names: AtomicBool,
}

/// Metrics per tool, with the gateway whose processes are measured.
struct ToolWatch {
    tools: ToolMetrics,
    gateway: OnceLock<Weak<Gateway>>,
    since: Instant,
    /// Earliest time of the next measurement, in milliseconds after `since`.
    next_look: AtomicU64,
}

impl CallMetrics {
    /// Returns empty metrics with the thresholds of this configuration.
    #[must_use]
    pub fn new(config: &Config) -> Arc<Self> {
        let watch = Arc::new(ToolWatch {
            tools: ToolMetrics::default(),
            gateway: OnceLock::new(),
            since: Instant::now(),
            next_look: AtomicU64::new(0),
        });
        let operations = OperationMetrics::default();
        let metrics = Self { watch, operations, sentinel_names: AtomicBool::new(false) };
        metrics.follow(config);
        Arc::new(metrics)
    }

    /// Sets the gateway whose tools and processes are measured.
    pub fn attach(&self, gateway: &Arc<Gateway>) {
        let _ = self.watch.gateway.set(Arc::downgrade(gateway));
    }

    /// Takes over the thresholds and names of a configuration.
    pub fn follow(&self, config: &Config) {
        let Performance { execution_time_warning, memory_usage_warning, sentinel_names } = config.performance;
        self.watch.tools.warn_above(execution_time_warning, memory_usage_warning);
        self.sentinel_names.store(sentinel_names, Ordering::Relaxed);
    }

    /// Returns the metrics of each tool, after measuring memory.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolReading> {
        self.watch.measure();
        self.watch.tools.read()
    }

    /// Returns the durations of client requests.
    #[must_use]
    pub fn operations(&self) -> &OperationMetrics {
        &self.operations
    }

    /// Returns `true` if metrics also appear under the names of Sentinel.
    #[must_use]
    pub fn has_sentinel_names(&self) -> bool {
        self.sentinel_names.load(Ordering::Relaxed)
    }
}

impl ToolWatch {
    fn add(self: &Arc<Self>, finished: &FinishedFact) {
        let wanted = self.tools.add(finished, |name| self.qualified(name));
        if !wanted || !self.is_time(finished.at) {
            return;
        }
        // Reading `/proc` is file I/O, so keep it off the task that reports facts.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let own = Arc::clone(self);
            runtime.spawn_blocking(move || own.measure());
        }
    }

    /// Returns `true` for one of the callers that ask once a measurement is due.
    fn is_time(&self, at: Instant) -> bool {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let now = millis(at.saturating_duration_since(self.since));
        let next = self.next_look.load(Ordering::Relaxed);
        let turn = (Ordering::Relaxed, Ordering::Relaxed);
        now >= next && self.next_look.compare_exchange(next, now + millis(LOOK), turn.0, turn.1).is_ok()
    }

    /// Returns the qualified name of a listed tool.
    fn qualified(&self, name: &str) -> Option<String> {
        let gateway = self.gateway.get()?.upgrade()?;
        let route = gateway.catalog.snapshot().tool(name)?;
        let style: NameStyle = ListKind::Tools.style();
        Some(style.qualify(&route.backend, &route.name))
    }

    fn measure(&self) {
        let Some(gateway) = self.gateway.get().and_then(Weak::upgrade) else { return };
        let backends = gateway.backends();
        self.tools.measure(|backend| resident(&backends.get(backend)?.pids()));
    }
}

impl FactSink for CallMetrics {
    fn fact(&self, fact: &Fact) {
        if let Fact::Finished(finished) = fact {
            self.operations.fact(fact);
            self.watch.add(finished);
        }
    }
}
