//! The state of `wrap` and `proxy`, which have no gateway: what passes, and how it is recorded.

use super::TapeStatus;
use super::traffic::{Recent, Traffic};
use serde::Serialize;
use signalbox_engine::metrics::MethodMetrics;
use signalbox_tape::Recorder;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

/// Which process passes bytes on.
#[derive(Clone, Debug, Serialize)]
pub struct Passage {
    /// `wrap` or `proxy`.
    pub command: &'static str,
    /// Where clients connect, if they do.
    pub url: Option<String>,
    /// The server: its command line, or its address.
    pub target: String,
    /// Where state is kept.
    pub data_dir: PathBuf,
}

#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    passage: &'a Passage,
    pid: u32,
    version: &'static str,
    uptime_seconds: u64,
    traffic: Traffic,
    #[serde(skip_serializing_if = "Option::is_none")]
    recording: Option<TapeStatus>,
}

/// What such a process tells about itself.
pub struct PassageOverview {
    passage: Passage,
    since: Instant,
    recent: Arc<Recent>,
    tape: Option<(String, Arc<Recorder>)>,
}

impl PassageOverview {
    /// Of a process that counts here, and records to the tape of this name. Needs a runtime, on which the traffic of the last
    /// minute is followed.
    #[must_use]
    pub fn new(passage: Passage, metrics: &Arc<MethodMetrics>, tape: Option<(String, Arc<Recorder>)>) -> Self {
        Self { passage, since: Instant::now(), recent: Recent::follow(metrics), tape }
    }

    /// The command that it runs.
    #[must_use]
    pub fn command(&self) -> &'static str {
        self.passage.command
    }

    /// Everything, as JSON.
    ///
    /// # Errors
    /// If that cannot be written.
    pub fn json(&self) -> serde_json::Result<String> {
        let recording = |(tape, recorder): &(String, Arc<Recorder>)| TapeStatus::new(tape.clone(), recorder.stats());
        serde_json::to_string(&Whole {
            passage: &self.passage,
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION"),
            uptime_seconds: self.since.elapsed().as_secs(),
            traffic: self.recent.traffic(),
            recording: self.tape.as_ref().map(recording),
        })
    }
}
