//! What is counted of tools and operations while a gateway runs, with the memory of the processes behind the tools.

use crate::process_memory::resident;
use signalbox_config::{Config, Performance};
use signalbox_engine::catalog::{ListKind, Style};
use signalbox_engine::fact::Finished;
use signalbox_engine::operation_metrics::OperationMetrics;
use signalbox_engine::tool_metrics::{ToolMetrics, ToolReading};
use signalbox_engine::{Fact, FactSink};
use signalbox_runtime::Gateway;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

/// The least time between two looks at the memory of processes.
const LOOK: Duration = Duration::from_secs(1);

/// The counts of one process.
pub struct CallMetrics {
    watch: Arc<ToolWatch>,
    operations: OperationMetrics,
    sentinel_names: AtomicBool,
}

/// The tools, and where their processes are found.
struct ToolWatch {
    tools: ToolMetrics,
    gateway: OnceLock<Weak<Gateway>>,
    since: Instant,
    /// When memory may be looked at again, in milliseconds since then.
    next_look: AtomicU64,
}

impl CallMetrics {
    /// Nothing counted yet.
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

    /// The gateway whose tools and processes these are.
    pub fn attach(&self, gateway: &Arc<Gateway>) {
        let _ = self.watch.gateway.set(Arc::downgrade(gateway));
    }

    /// Takes over the thresholds and names of a configuration.
    pub fn follow(&self, config: &Config) {
        let Performance { execution_time_warning, memory_usage_warning, sentinel_names } = config.performance;
        self.watch.tools.warn_above(execution_time_warning, memory_usage_warning);
        self.sentinel_names.store(sentinel_names, Ordering::Relaxed);
    }

    /// What is known of each tool, with the memory of its process as it is now.
    #[must_use]
    pub fn tools(&self) -> Vec<ToolReading> {
        self.watch.measure();
        self.watch.tools.read()
    }

    /// How long requests of clients took.
    #[must_use]
    pub fn operations(&self) -> &OperationMetrics {
        &self.operations
    }

    /// True if the names of Sentinel are wanted too.
    #[must_use]
    pub fn has_sentinel_names(&self) -> bool {
        self.sentinel_names.load(Ordering::Relaxed)
    }
}

impl ToolWatch {
    fn add(self: &Arc<Self>, finished: &Finished) {
        let wanted = self.tools.add(finished, |name| self.qualified(name));
        if !wanted || !self.is_time(finished.at) {
            return;
        }
        // Whoever tells facts does not wait for files, not even for those of `/proc`.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let own = Arc::clone(self);
            runtime.spawn_blocking(move || own.measure());
        }
    }

    /// True for one of those who ask at a time when memory has not been looked at for long enough.
    fn is_time(&self, at: Instant) -> bool {
        let millis = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let now = millis(at.saturating_duration_since(self.since));
        let next = self.next_look.load(Ordering::Relaxed);
        let turn = (Ordering::Relaxed, Ordering::Relaxed);
        now >= next && self.next_look.compare_exchange(next, now + millis(LOOK), turn.0, turn.1).is_ok()
    }

    /// The qualified name of a listed tool.
    fn qualified(&self, name: &str) -> Option<String> {
        let gateway = self.gateway.get()?.upgrade()?;
        let route = gateway.catalog.snapshot().tool(name)?;
        let style: Style = ListKind::Tools.style();
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
