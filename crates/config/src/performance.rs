//! Thresholds for warnings in metrics, and further names of metrics.

use crate::error::ConfigError;
use crate::read::Table;
use std::time::Duration;

/// Thresholds of `mcp.protocol.performance`, and `gateway.metrics`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Performance {
    /// Duration above which a tool call is counted as slow.
    pub execution_time_warning: Option<Duration>,
    /// Memory, in bytes, above which a server's process is counted as large after a call.
    pub memory_usage_warning: Option<u64>,
    /// `true` if `/metrics` also shows the names of Sentinel.
    pub sentinel_names: bool,
}

pub(crate) fn check(protocol: &Table<'_>, gateway: &Table<'_>) -> Result<Performance, ConfigError> {
    let table = protocol.table("performance")?;
    Ok(Performance {
        execution_time_warning: table.seconds("execution_time_warning")?,
        memory_usage_warning: Some(table.count::<u64>("memory_usage_warning")?).filter(|bytes| *bytes > 0),
        sentinel_names: gateway.table("metrics")?.flag("sentinel_names")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<Performance, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        Ok(Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default())?.config.performance)
    }

    /// Proves G-30.
    #[test]
    fn thresholds_are_read_and_absent_ones_are_none() {
        assert_eq!(load("").unwrap(), Performance::default());
        let read = load(
            "[mcp.protocol.performance]\nexecution_time_warning = '1500ms'\nmemory_usage_warning = 268435456\n\
             [gateway.metrics]\nsentinel_names = true\n",
        );
        let wanted = Performance {
            execution_time_warning: Some(Duration::from_millis(1_500)),
            memory_usage_warning: Some(256 << 20),
            sentinel_names: true,
        };
        assert_eq!(read.unwrap(), wanted);
        assert!(load("[mcp.protocol.performance]\nmemory_usage_warning = 0\n").unwrap().memory_usage_warning.is_none());
        assert!(load("[mcp.protocol.performance]\nexecution_time_warning = 0\n").is_err());
    }
}
