//! The `countdown` tool: deliberately slow, with progress reports.

use std::time::Duration;

use serde_json::{Map, Value};
use signalbox_embedded::{Arguments, Progress};
use tokio::time::{Instant, sleep_until};

use super::fault::ToolFault;
use super::toolbox::Answer;

/// Allowed values to count down from.
pub(super) const FROM: std::ops::RangeInclusive<u64> = 1..=20;
/// Default value to count down from.
pub(super) const DEFAULT_FROM: u64 = 5;
/// Allowed duration of a step in milliseconds.
pub(super) const INTERVAL_MS: std::ops::RangeInclusive<u64> = 10..=2000;
/// Default duration of a step in milliseconds.
pub(super) const DEFAULT_INTERVAL_MS: u64 = 500;

/// Counts down, with a progress report for each step.
pub(super) async fn run(arguments: &Map<String, Value>, progress: &Progress) -> Result<Answer, ToolFault> {
    let (from, interval) = check(arguments)?;
    let mut next = Instant::now();
    for done in 1..=from {
        next += interval;
        sleep_until(next).await;
        progress.report(done, from, format!("{} to go", from - done)).await;
    }
    Ok(Answer::text(format!("Counted down from {from} to 0.")))
}

fn check(arguments: &Map<String, Value>) -> Result<(u64, Duration), ToolFault> {
    let mut reader = Arguments::new("countdown", arguments);
    reader.only(&["from", "interval_ms"]);
    let from = reader.whole("from", FROM).unwrap_or(DEFAULT_FROM);
    let interval = reader.whole("interval_ms", INTERVAL_MS).unwrap_or(DEFAULT_INTERVAL_MS);
    reader.finish()?;
    Ok((from, Duration::from_millis(interval)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bounds_and_defaults() {
        let run = |arguments: Value| check(arguments.as_object().expect("an object"));
        assert_eq!(run(json!({})), Ok((5, Duration::from_millis(500))));
        assert_eq!(run(json!({"from": 20, "interval_ms": 10})), Ok((20, Duration::from_millis(10))));
        for bad in [json!({"from": 0}), json!({"from": 21}), json!({"from": "3"}), json!({"from": 1.5})] {
            assert!(run(bad).is_err());
        }
        for bad in [json!({"interval_ms": 9}), json!({"interval_ms": 2001}), json!({"steps": 3})] {
            assert!(run(bad).is_err());
        }
    }
}
