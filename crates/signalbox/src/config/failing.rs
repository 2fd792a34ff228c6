//! How a backend that fails is treated, as configured.

use super::error::ConfigError;
use super::read::Table;
use signalbox_engine::BreakerRules;
use signalbox_runtime::FailureRules;

/// The rules in a backend's table.
pub(super) fn rules(table: &Table<'_>) -> Result<FailureRules, ConfigError> {
    Ok(FailureRules { breaker: breaker(&table.table("breaker")?)? })
}

/// The breaker. What stands beside `enabled = false` is checked, so that it can be switched on again.
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
