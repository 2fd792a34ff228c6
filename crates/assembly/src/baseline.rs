//! Comparison of live calls with a recorded tape.

use crate::live_feed::LiveFeed;
use crate::recording::Recording;
use crate::tape_backend;
use signalbox_config::Config;
use signalbox_engine::FactSink;
use signalbox_replay::{Baseline, BaselineError};
use std::sync::Arc;
use std::time::Duration;

/// Time that shutdown waits for pending comparisons.
const STOP_WITHIN: Duration = Duration::from_secs(2);

/// Starts the comparison if the configuration names a tape. Differences go to watchers and to the tape being written.
pub(crate) fn start(
    config: &Config,
    live: &Arc<LiveFeed>,
    recording: Option<&Recording>,
) -> Result<Option<Arc<Baseline>>, BaselineError> {
    let Some(baseline) = &config.record.baseline else { return Ok(None) };
    let source = tape_backend::open(config, &baseline.tape)?;
    let mut told: Vec<Arc<dyn FactSink>> = vec![live.clone()];
    told.extend(recording.map(Recording::sink));
    let baseline = Baseline::start(source, baseline.settings.clone(), told)?;
    tracing::info!(tape = baseline.tape(), "calls are compared with this tape");
    baseline.holes().to_string().lines().for_each(|hole| tracing::warn!(baseline = baseline.tape(), "{hole}"));
    Ok(Some(Arc::new(baseline)))
}

/// Finishes pending comparisons within [`STOP_WITHIN`].
pub(crate) async fn stop(baseline: &Arc<Baseline>) {
    let baseline = Arc::clone(baseline);
    // Fails only if the comparison panicked, which leaves nothing to compare.
    let _ = tokio::task::spawn_blocking(move || baseline.stop(STOP_WITHIN)).await;
}
