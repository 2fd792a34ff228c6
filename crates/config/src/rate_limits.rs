//! The limits on how often callers may call.

use crate::error::ConfigError;
use crate::read::Table;

/// How many requests of one kind may come; `None` for any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestRates {
    /// In a second.
    pub per_second: Option<u64>,
    /// In a minute.
    pub per_minute: Option<u64>,
}

/// The limits of `mcp.protocol.rate_limits`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateLimits {
    /// Of all callers together.
    pub global: RequestRates,
    /// Of each caller.
    pub user: RequestRates,
    /// Of each tool.
    pub tool: RequestRates,
    /// Of each caller at each tool.
    pub user_tool: RequestRates,
}

pub(crate) fn check(table: &Table<'_>) -> Result<RateLimits, ConfigError> {
    let limit = |key: &str| Ok(Some(table.count::<u64>(key)?).filter(|limit| *limit > 0));
    let rates = |whose: &str| {
        Ok(RequestRates {
            per_second: limit(&format!("{whose}_requests_per_second"))?,
            per_minute: limit(&format!("{whose}_requests_per_minute"))?,
        })
    };
    Ok(RateLimits {
        global: rates("global")?,
        user: rates("user")?,
        tool: rates("tool")?,
        user_tool: rates("user_tool")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Overrides};
    use std::path::Path;

    fn load(text: &str) -> Result<RateLimits, ConfigError> {
        let env = |name: &str| (name == "HOME").then(|| "/home/ada".to_owned());
        Ok(Config::parse(Path::new("signalbox.toml"), text, &env, &Overrides::default())?.config.rate_limits)
    }

    /// G-35 to G-37: the table of the document, and nothing where there is none.
    #[test]
    fn g_35_to_37_every_limit_is_read_and_absent_ones_are_none() {
        assert_eq!(load("").unwrap(), RateLimits::default());
        let limits = load(
            "[mcp.protocol.rate_limits]\nglobal_requests_per_second = 1000\nglobal_requests_per_minute = 60000\n\
             user_requests_per_second = 10\nuser_requests_per_minute = 600\ntool_requests_per_second = 5\n\
             tool_requests_per_minute = 300\n",
        );
        let rates =
            |per_second, per_minute| RequestRates { per_second: Some(per_second), per_minute: Some(per_minute) };
        let (global, user, tool) = (rates(1_000, 60_000), rates(10, 600), rates(5, 300));
        assert_eq!(limits.unwrap(), RateLimits { global, user, tool, ..RateLimits::default() });
        assert_eq!(load("[mcp.protocol.rate_limits]\nuser_requests_per_second = 0\n").unwrap(), RateLimits::default());
        assert!(load("[mcp.protocol.rate_limits]\nuser_requests_per_second = -1\n").is_err());
    }
}
