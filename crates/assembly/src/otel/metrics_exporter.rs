//! Exports metrics to a collector at intervals, from a thread of its own, which never delays a request.

use super::collector::{Collector, ExportDropCounter, METRICS_NOT_EXPORTED, instance};
use super::proto;
use crate::call_metrics::CallMetrics;
use crate::metric_family::{self, MetricFamily};
use crate::recording::unix_nanos;
use bytes::Bytes;
use signalbox_config::{Config, OtelMetrics};
use signalbox_runtime::Gateway;
use std::io;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Time that shutdown waits for the last metrics.
const LAST_METRICS: Duration = Duration::from_secs(2);

/// Exporter of metrics. Clones share it.
#[derive(Clone)]
pub struct MetricsExport {
    last: mpsc::Sender<oneshot::Sender<()>>,
}

impl MetricsExport {
    /// Starts the exporter of this configuration, if it has one, for the metrics of this gateway.
    ///
    /// # Errors
    /// If the system provides no thread.
    pub fn of(config: &Config, calls: &Arc<CallMetrics>, gateway: &Arc<Gateway>) -> io::Result<Option<Self>> {
        config.gateway.otel_metrics.as_ref().map(|otel| Self::start(otel, calls, gateway)).transpose()
    }

    fn start(otel: &OtelMetrics, calls: &Arc<CallMetrics>, gateway: &Arc<Gateway>) -> io::Result<Self> {
        let (last, asked) = mpsc::channel(1);
        let lost = ExportDropCounter::default();
        lost.count_at(Arc::downgrade(gateway));
        let exporter = Exporter {
            collector: Collector::new(otel.endpoint.clone(), otel.headers.clone()),
            service_name: otel.service_name.clone(),
            instance: instance(),
            since: unix_nanos(),
            counted: (Arc::clone(calls), Arc::downgrade(gateway)),
            lost,
        };
        let (runtime, every) = (tokio::runtime::Builder::new_current_thread().enable_all().build()?, otel.interval);
        std::thread::Builder::new()
            .name("otel-metrics".to_owned())
            .spawn(move || runtime.block_on(exporter.run(every, asked)))?;
        Ok(Self { last })
    }

    /// Exports the current metrics and waits up to two seconds.
    pub async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        let flushing = async {
            if self.last.send(done).await.is_ok() {
                let _ = waiting.await;
            }
        };
        if tokio::time::timeout(LAST_METRICS, flushing).await.is_err() {
            tracing::warn!("the last metrics were not exported in time");
        }
    }
}

struct Exporter {
    collector: Collector,
    service_name: String,
    instance: String,
    since: u64,
    counted: (Arc<CallMetrics>, Weak<Gateway>),
    lost: ExportDropCounter,
}

impl Exporter {
    /// Exports at intervals until all senders are gone. A failed export is not retried, because counters are cumulative
    /// and the next reading includes it.
    async fn run(mut self, every: Duration, mut asked: mpsc::Receiver<oneshot::Sender<()>>) {
        loop {
            let done = match tokio::time::timeout(every, asked.recv()).await {
                Ok(None) => return,
                Ok(Some(done)) => Some(done),
                Err(_) => None,
            };
            let Some(families) = self.read() else { return };
            let window = proto::Window { start: self.since, now: unix_nanos() };
            let body = proto::metrics_request(&self.service_name, &self.instance, window, &families);
            if let Err(error) = self.collector.post(Bytes::from(body)).await {
                self.lost.count(METRICS_NOT_EXPORTED, 1);
                self.collector.complain(&error, "metrics", 1);
            }
            if let Some(done) = done {
                let _ = done.send(());
            }
        }
    }

    /// Reads the current metrics, or returns `None` once the gateway is gone.
    fn read(&self) -> Option<Vec<MetricFamily>> {
        let (calls, gateway) = &self.counted;
        let gateway = gateway.upgrade()?;
        gateway.settle();
        let mut families = Vec::from(metric_family::of_tools(&calls.tools()));
        families.extend(metric_family::of_operations(calls, &gateway));
        Some(families)
    }
}
