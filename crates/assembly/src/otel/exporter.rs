//! Posting spans to a collector, from a thread that nothing else waits for.

use super::semantics::Places;
use super::tracer::Tracer;
use super::{Span, proto};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, USER_AGENT};
use http::{HeaderValue, Method, Request, StatusCode};
use http_body_util::Full;
use hyper_util::rt::TokioIo;
use signalbox_config::{Config, Otel};
use signalbox_runtime::Gateway;
use signalbox_wire::hex::hex;
use std::io;
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};

/// Most spans that wait to be exported; more are dropped and counted.
const QUEUE: usize = 4096;
/// Most spans in one request.
const BATCH: usize = 512;
/// How long a span may wait for others to be sent with.
const LINGER: Duration = Duration::from_secs(1);
/// How long a collector may take for one request.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often a batch is tried.
const TRIES: u32 = 3;
/// The least time between two complaints about the collector.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
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
        let lost = Arc::new(DroppedSpans::default());
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

/// Why a batch was not taken.
#[derive(Debug, thiserror::Error)]
enum ExportError {
    #[error("it cannot be reached: {0}")]
    Unreachable(#[from] io::Error),
    #[error("it broke the connection: {0}")]
    Broken(#[from] hyper::Error),
    #[error("it does not answer in time")]
    TooSlow,
    #[error("it answers {0}")]
    Refused(StatusCode),
    #[error("the request could not be built")]
    Request(#[from] http::Error),
}

impl ExportError {
    /// Whether the same batch may be taken later. OTLP names the statuses.
    fn may_pass(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Broken(_) | Self::TooSlow => true,
            Self::Refused(status) => matches!(status.as_u16(), 429 | 502 | 503 | 504),
            Self::Request(_) => false,
        }
    }
}

struct Exporter {
    otel: Otel,
    instance: String,
    lost: Arc<DroppedSpans>,
    complained: Option<Instant>,
}

impl Exporter {
    fn new(otel: Otel, lost: Arc<DroppedSpans>) -> Self {
        let mut id = [0_u8; 16];
        // Without randomness the number of the process has to do.
        let instance = match getrandom::fill(&mut id) {
            Ok(()) => hex(&id),
            Err(_) => std::process::id().to_string(),
        };
        Self { otel, instance, lost, complained: None }
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
        let body = Bytes::from(proto::request(&self.otel.service_name, &self.instance, batch));
        let mut tries = 0;
        loop {
            tries += 1;
            let posted = tokio::time::timeout(PATIENCE, self.post(body.clone())).await;
            let error = match posted.unwrap_or(Err(ExportError::TooSlow)) {
                Ok(()) => return,
                Err(error) => error,
            };
            if tries >= TRIES || ending || !error.may_pass() {
                self.lost.count(NOT_EXPORTED, batch.len());
                return self.complain(&error, batch.len());
            }
            tokio::time::sleep(LINGER).await;
        }
    }

    async fn post(&self, body: Bytes) -> Result<(), ExportError> {
        let endpoint = &self.otel.endpoint;
        let host = endpoint.host().unwrap_or_default().trim_matches(['[', ']']);
        let stream = TcpStream::connect((host, endpoint.port_u16().unwrap_or(80))).await?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
        let connection = tokio::spawn(connection);
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = Method::POST;
        *request.uri_mut() =
            endpoint.path_and_query().map_or("/", |path| path.as_str()).parse().map_err(http::Error::from)?;
        let headers = request.headers_mut();
        headers.extend(self.otel.headers.clone());
        let authority = endpoint.authority().map_or("", |authority| authority.as_str());
        headers.insert(HOST, HeaderValue::from_str(authority).map_err(http::Error::from)?);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("signalbox/", env!("CARGO_PKG_VERSION"))));
        let answered = sender.send_request(request).await;
        // What the collector says besides its status is of no use here, and is not read.
        connection.abort();
        let status = answered?.status();
        if status.is_success() { Ok(()) } else { Err(ExportError::Refused(status)) }
    }

    /// Says at most once a minute what is wrong with the collector.
    fn complain(&mut self, error: &ExportError, spans: usize) {
        if self.complained.is_some_and(|before| before.elapsed() < COMPLAIN_EVERY) {
            return;
        }
        self.complained = Some(Instant::now());
        tracing::warn!(
            collector = %self.otel.endpoint,
            spans,
            "dropping spans because the collector does not accept them: {error}; reported at most once a minute"
        );
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

/// A span that found the queue full.
pub(super) const QUEUE_FULL: &str = "span_queue_full";
/// A span that the collector did not take.
pub(super) const NOT_EXPORTED: &str = "span_not_exported";

/// Counts among all that the gateway drops, once there is one.
#[derive(Default)]
pub(super) struct DroppedSpans(OnceLock<Weak<Gateway>>);

impl DroppedSpans {
    /// From here on, this gateway's counters are used.
    pub(super) fn count_at(&self, gateway: Weak<Gateway>) {
        let _ = self.0.set(gateway);
    }

    pub(super) fn count(&self, reason: &'static str, spans: usize) {
        if let Some(gateway) = self.0.get().and_then(Weak::upgrade) {
            (0..spans).for_each(|_| gateway.counters.dropped(reason));
        }
    }
}
