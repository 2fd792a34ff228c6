//! Reads the restarts, pings and circuit breaker of a backend.

use super::error::ConfigError;
use super::read::Table;
use signalbox_engine::BreakerRules;
use signalbox_engine::health::PingRules;
use signalbox_runtime::FailureRules;

/// Reads the rules in a backend's table.
pub(super) fn rules(table: &Table<'_>) -> Result<FailureRules, ConfigError> {
    let max_restarts: u32 = table.count("max_restarts")?;
    Ok(FailureRules {
        breaker: breaker(&table.table("breaker")?)?,
        ping: ping(&table.table("ping")?)?,
        retries: table.count("retries")?,
        max_queue: table.count("max_queue")?,
        slow_start: table.duration("slow_start")?,
        max_restarts: match (table.flag("restart")?, max_restarts) {
            (false, _) => Some(0),
            (true, 0) => None,
            (true, most) => Some(most),
        },
    })
}

/// Reads the pings. All keys are checked even if pings are off.
fn ping(table: &Table<'_>) -> Result<Option<PingRules>, ConfigError> {
    let rules = PingRules {
        interval: table.duration("interval")?,
        doubt_interval: table.duration("doubt_interval")?,
        timeout: table.duration("timeout")?,
        failures: table.count("failures")?,
        successes: table.count("successes")?,
    };
    Ok(table.flag("enabled")?.then_some(rules))
}

/// Reads the breaker. Keys beside `enabled = false` are checked too, so that it can be switched on again.
fn breaker(table: &Table<'_>) -> Result<Option<BreakerRules>, ConfigError> {
    let rules = BreakerRules {
        failures: table.count("failures")?,
        percent: table.count("failure_percent")?,
        least_calls: table.count("min_calls")?,
        window: table.duration("window")?,
        recovery: table.duration("recovery")?,
        successes: table.count("successes")?,
    };
    Ok(table.flag("enabled")?.then_some(rules))
}
