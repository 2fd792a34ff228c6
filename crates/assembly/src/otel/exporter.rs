//! Posting spans to a collector, from a thread that nothing else waits for.

use super::collector::{Collector, NotExported, SPAN_NOT_EXPORTED, instance};
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

/// Most spans that wait to be exported; more are dropped and counted.
const QUEUE: usize = 4096;
/// Most spans in one request.
const BATCH: usize = 512;
/// How long a span may wait for others to be sent with.
const LINGER: Duration = Duration::from_secs(1);
/// How often a batch is tried.
const TRIES: u32 = 3;
/// How long the last spans may take when the gateway ends.
const LAST_SPANS: Duration = Duration::from_secs(2);

/// What the exporter is asked for.
pub(super) enum Job {
    /// Export this.
    Span(Box<Span>),
    /// Say when everything that came before has been tried.
    Flush(oneshot::Sender<()>),
}

/// The traces of one gateway. Clones are the same.
#[derive(Clone)]
pub struct Telemetry {
    tracer: Arc<Tracer>,
}

impl Telemetry {
    /// Starts the exporter. `pipe` says that clients come by standard input.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(otel: &Otel, config: &Config, pipe: bool) -> io::Result<Self> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let lost = Arc::new(NotExported::default());
        let exporter = Exporter::new(otel.clone(), Arc::clone(&lost));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new()
            .name("otel-export".to_owned())
            .spawn(move || runtime.block_on(exporter.run(queue)))?;
        let tracer = Tracer { ratio: otel.sample_ratio, places: Places::new(config, pipe), jobs, lost };
        Ok(Self { tracer: Arc::new(tracer) })
    }

    /// The subscriber to facts.
    #[must_use]
    pub fn tracer(&self) -> Arc<Tracer> {
        Arc::clone(&self.tracer)
    }

    /// What is lost is counted by this gateway.
    pub fn count_at(&self, gateway: &Arc<Gateway>) {
        self.tracer.lost.count_at(Arc::downgrade(gateway));
    }

    /// Waits a moment for the spans that are left.
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
    lost: Arc<NotExported>,
}

impl Exporter {
    fn new(otel: Otel, lost: Arc<NotExported>) -> Self {
        let collector = Collector::new(otel.endpoint, otel.headers);
        Self { collector, service_name: otel.service_name, instance: instance(), lost }
    }

    /// Exports until nobody is left who could ask for it.
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

    /// Tries a batch a few times, once only when somebody waits for the end.
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

/// Adds a span to the batch, or gives back who waits for the end of it.
fn gather(job: Job, batch: &mut Vec<Span>) -> Option<oneshot::Sender<()>> {
    match job {
        Job::Span(span) => {
            batch.push(*span);
            None
        }
        Job::Flush(done) => Some(done),
    }
}
