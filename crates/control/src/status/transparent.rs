//! State of `wrap` and `proxy`, which have no gateway: traffic and recording.

use super::TapeStatus;
use super::traffic::{Traffic, TrafficSampler};
use serde::Serialize;
use signalbox_engine::metrics::MethodMetrics;
use signalbox_tape::Recorder;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Properties of a process that forwards bytes.
#[derive(Clone, Debug, Serialize)]
pub struct Passage {
    /// Command that the process runs: `wrap` or `proxy`.
    pub command: &'static str,
    /// Address at which clients connect, if the process listens.
    pub url: Option<String>,
    /// Server: its command line, or its address.
    pub target: String,
    pub data_dir: PathBuf,
}

#[derive(Serialize)]
struct StatusReport<'a> {
    #[serde(flatten)]
    passage: &'a Passage,
    pid: u32,
    version: &'static str,
    uptime_seconds: u64,
    traffic: Traffic,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<TapeStatus>,
}

/// Reporter of the state of a forwarding process.
pub struct PassageOverview {
    passage: Passage,
    since: Instant,
    recent: Arc<TrafficSampler>,
    tape: Option<(String, Arc<Recorder>)>,
}

impl PassageOverview {
    /// Creates the reporter of a process that counts in `metrics` and records to `tape`. Needs a Tokio runtime, on
    /// which it samples the traffic of the last minute.
    #[must_use]
    pub fn new(passage: Passage, metrics: &Arc<MethodMetrics>, tape: Option<(String, Arc<Recorder>)>) -> Self {
        Self { passage, since: Instant::now(), recent: TrafficSampler::follow(metrics), tape }
    }

    /// Returns the command that the process runs.
    #[must_use]
    pub fn command(&self) -> &'static str {
        self.passage.command
    }

    /// Returns the whole state as JSON.
    ///
    /// # Errors
    /// If serialisation fails.
    pub fn json(&self) -> serde_json::Result<String> {
        let recording = |(tape, recorder): &(String, Arc<Recorder>)| TapeStatus::new(tape.clone(), recorder.stats());
        serde_json::to_string(&StatusReport {
            passage: &self.passage,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: self.since.elapsed().as_secs(),
            traffic: self.recent.traffic(),
            recording: self.tape.as_ref().map(recording),
        })
    }
}
