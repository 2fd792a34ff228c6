//! Recording: whether the store can be opened, and whether a running process can write.

use super::finding::Finding;
use serde_json::Value;
use signalbox_assembly::recording::StorePlace;
use signalbox_config::Config;
use std::time::Duration;

const CHECK: &str = "recording";
/// Timeout for opening a store.
const WITHIN: Duration = Duration::from_secs(5);

/// Opens the configured store, if there is one.
pub(super) async fn check(config: &Config) -> Option<Finding> {
    if !config.record.enabled {
        return Some(Finding::note(CHECK, "nothing is recorded: `record.enabled` is false"));
    }
    let place = StorePlace::of(&config.record, &config.data_dir);
    if let StorePlace::Sqlite(file) = &place
        && !file.exists()
    {
        return None;
    }
    let opening = tokio::task::spawn_blocking(move || place.open().and_then(|store| store.tapes()));
    Some(match tokio::time::timeout(WITHIN, opening).await {
        Ok(Ok(Ok(tapes))) => Finding::ok(CHECK, format!("the store can be used; tapes: {}", tapes.len())),
        Ok(Ok(Err(error))) => Finding::problem(CHECK, format!("nothing can be recorded: {error}"), error.advice()),
        Ok(Err(error)) => Finding::warning(CHECK, format!("the store could not be checked: {error}"), "try again"),
        Err(_) => Finding::warning(CHECK, "the store does not answer in time", "check that it can be reached"),
    })
}

/// Returns the finding from the status of a running process.
pub(super) fn from_status(status: &Value) -> Option<Finding> {
    let recording = status.get("recording")?;
    let (failing, missing) = (recording["failing"].as_str(), recording["gaps"].as_u64().unwrap_or(0));
    let running = format!("pid {}", status["pid"]);
    if let Some(why) = failing {
        let found = format!("{running} cannot record: {why}");
        return Some(Finding::problem(CHECK, found, "recording resumes by itself once that is fixed"));
    }
    let advice = "see `signalbox status`, and docs/recording.md about gaps";
    (missing > 0).then(|| Finding::warning(CHECK, format!("{running}: facts missing on the tape: {missing}"), advice))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::finding::Severity;
    use serde_json::json;

    #[test]
    fn a_process_that_cannot_record_is_a_problem() {
        let say =
            |recording: Value| from_status(&json!({"pid": 7, "recording": recording})).map(|found| found.severity);
        assert_eq!(say(json!({"failing": "no space left", "gaps": 0})), Some(Severity::Problem));
        assert_eq!(say(json!({"gaps": 3})), Some(Severity::Warning));
        assert_eq!(say(json!({"gaps": 0})), None);
    }
}
