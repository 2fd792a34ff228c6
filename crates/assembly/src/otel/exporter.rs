//! Exports spans to a collector from a thread of its own, which never delays a request.

use super::collector::{Collector, ExportDropCounter, SPAN_NOT_EXPORTED, instance};
use super::semantics::Places;
use super::tracer::Tracer;
use super::{Span, proto};
use bytes::Bytes;
use signalbox_config::{Config, Otel};
use signalbox_runtime::Gateway;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Maximum number of queued spans. Further ones are dropped and counted.
const QUEUE: usize = 4096;
/// Maximum number of spans in one request.
const BATCH: usize = 512;
/// Time that a span waits for others of its batch.
const LINGER: Duration = Duration::from_secs(1);
/// Maximum number of attempts per batch.
const TRIES: u32 = 3;
/// Time that shutdown waits for the last spans.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// Work for the exporter, in the order of its queue.
pub(super) enum Job {
    Span(Box<Span>),
    /// Replies once all earlier spans have been tried.
    Flush(oneshot::Sender<()>),
}

/// Exporter of one gateway's traces. Clones share it.
#[derive(Clone)]
pub struct Telemetry {
    tracer: Arc<Tracer>,
}

impl Telemetry {
    /// Starts the exporter. `pipe` is true if clients connect by standard input.
    ///
    /// # Errors
    /// If the system provides no thread.
    pub fn start(otel: &Otel, config: &Config, pipe: bool) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let lost = Arc::new(ExportDropCounter::default());
        let exporter = Exporter::new(otel.clone(), Arc::clone(&lost));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("otel-export".to_owned())
            .spawn(move || runtime.block_on(exporter.run(queue)))?;
        let tracer = Tracer { ratio: otel.sample_ratio, places: Places::new(config, pipe), jobs, lost };
        Ok(Self { tracer: Arc::new(tracer) })
    }

    /// Returns the subscriber to facts.
    #[must_use]
    pub fn tracer(&self) -> Arc<Tracer> {
        Arc::clone(&self.tracer)
    }

    /// Sets the gateway that counts dropped spans.
    pub fn count_at(&self, gateway: &Arc<Gateway>) {
        self.tracer.lost.count_at(Arc::downgrade(gateway));
    }

    /// Waits up to two seconds for the remaining spans.
    pub async fn flush(&self) {
        let (done, waiting) = oneshot::channel();
        let flushing = async {
            if self.tracer.jobs.send(Job::Flush(done)).await.is_ok() {
                let _ = waiting.await;
            }
        };
        if tokio::time::timeout(LAST_SPANS, flushing).await.is_err() {
            tracing::warn!("the last spans were not exported in time");
        }
    }
}

struct Exporter {
    collector: Collector,
    service_name: String,
    instance: String,
    lost: Arc<ExportDropCounter>,
}

impl Exporter {
    fn new(otel: Otel, lost: Arc<ExportDropCounter>) -> Self {
        let collector = Collector::new(otel.endpoint, otel.headers);
        Self { collector, service_name: otel.service_name, instance: instance(), lost }
    }

    /// Exports batches until all senders are gone.
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut batch = Vec::new();
        while let Some(job) = queue.recv().await {
            let mut asked = gather(job, &mut batch);
            let until = tokio::time::Instant::now() + LINGER;
            while batch.len() < BATCH && asked.is_none() {
                match tokio::time::timeout_at(until, queue.recv()).await {
                    Ok(Some(job)) => asked = gather(job, &mut batch),
                    Ok(None) | Err(_) => break,
                }
            }
            self.export(&std::mem::take(&mut batch), asked.is_some()).await;
            if let Some(done) = asked {
                let _ = done.send(());
            }
        }
    }

    /// Posts a batch with retries, or with a single attempt during a flush.
    async fn export(&mut self, batch: &[Span], ending: bool) {
        if batch.is_empty() {
            return;
        }
        let body = Bytes::from(proto::request(&self.service_name, &self.instance, batch));
        let mut tries = 0;
        loop {
            tries += 1;
            let Err(error) = self.collector.post(body.clone()).await else { return };
            if tries >= TRIES || ending || !error.may_pass() {
                self.lost.count(SPAN_NOT_EXPORTED, batch.len());
                return self.collector.complain(&error, "spans", batch.len());
            }
            tokio::time::sleep(LINGER).await;
        }
    }
}

/// Adds a span to the batch, or returns the reply channel of a flush.
fn gather(job: Job, batch: &mut Vec<Span>) -> Option<oneshot::Sender<()>> {
    match job {
        Job::Span(span) => {
            batch.push(*span);
            None
        }
        Job::Flush(done) => Some(done),
    }
}
